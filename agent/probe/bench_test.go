package probe

import (
	"testing"
	"time"

	"ordeal/agent/wire"
)

// BenchmarkLoadMock is one operation of a closed loop, all in: draws, tally,
// merge.
func BenchmarkLoadMock(b *testing.B) {
	call := mockCall()
	call.OpIDSalt = "" // the same arguments for all, as a load has them
	benchmarkUnit(b, wire.Unit{Kind: wire.LoadUnit, Call: call, Load: &wire.Load{Workers: 8, Level: 8}})
}

// BenchmarkLoadMockOpID derives an id for every operation.
func BenchmarkLoadMockOpID(b *testing.B) {
	benchmarkUnit(b, wire.Unit{Kind: wire.LoadUnit, Call: mockCall(), Load: &wire.Load{Workers: 8, Level: 8}})
}

// BenchmarkOpenMock is one arrival of an open loop in virtual time.
func BenchmarkOpenMock(b *testing.B) {
	call := mockCall()
	call.OpIDSalt = ""
	benchmarkUnit(b, wire.Unit{Kind: wire.LoadUnit, Call: call, Load: &wire.Load{Workers: 1, Level: 1, MilliRate: 100_000}})
}

// BenchmarkRecoveryMock is one operation with its retries.
func BenchmarkRecoveryMock(b *testing.B) {
	call := mockCall()
	call.OpIDSalt = ""
	benchmarkUnit(b, wire.Unit{Kind: wire.RecoveryUnit, Call: call, Faults: mockFaults(200_000_000),
		Recovery: &wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second}})
}

func benchmarkUnit(b *testing.B, u wire.Unit) {
	env := mockEnv(b, "degraded")
	u.Ops = wire.Range{To: uint64(b.N)}
	b.ReportAllocs()
	if res := Run(b.Context(), env, &u, nil); res.Failure != nil {
		b.Fatal(res.Failure.Message)
	}
}
