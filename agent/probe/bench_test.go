package probe

import (
	"context"
	"testing"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
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

// BenchmarkPacer runs b.N arrivals at 1,000/s in real time against a target
// that answers at once, and reports how late they were sent.
func BenchmarkPacer(b *testing.B) {
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return ok() }}
	u := loadUnit(uint64(b.N), wire.Load{Workers: 4, Level: 4, MilliRate: 1_000_000})
	res := Run(b.Context(), Env{Target: f}, u, nil)
	lag, late := &res.Generator.Lag, &res.Tally.Late
	b.ReportMetric(float64(lag.Quantile(500)), "lag-p50-us")
	b.ReportMetric(float64(lag.Quantile(990)), "lag-p99-us")
	b.ReportMetric(float64(late.Quantile(500)), "late-p50-us")
	b.ReportMetric(float64(late.Quantile(990)), "late-p99-us")
	b.ReportMetric(float64(res.Generator.CPUMilli), "cpu-us/tick") // at 1,000 ticks a second
}

func benchmarkUnit(b *testing.B, u wire.Unit) {
	env := mockEnv(b, "degraded")
	u.Ops = wire.Range{To: uint64(b.N)}
	b.ReportAllocs()
	if res := Run(b.Context(), env, &u, nil); res.Failure != nil {
		b.Fatal(res.Failure.Message)
	}
}
