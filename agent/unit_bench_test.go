package agent

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"ordeal/agent/probe"
	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// BenchmarkUnit is one operation of a mock as an agent works it: under a lease,
// unmetered, with its samples. cpu-ns/op is what counts on a shared machine.
func BenchmarkUnit(b *testing.B) {
	mock, err := target.Open(b.Context(), wire.Target{Kind: wire.Mock, Profile: "degraded", Seed: "1337", Timeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	call := wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: json.RawMessage(`{"query":"x"}`)}}}
	faults := &wire.Faults{Seed: "1337", Rule: "faults", Kinds: []string{"timeout", "rate_limit", "server_error", "malformed"}, RatePPB: 200_000_000}
	for name, u := range map[string]wire.Unit{
		"Closed":   {Kind: wire.LoadUnit, Load: &wire.Load{Workers: 8, Level: 8}},
		"Open":     {Kind: wire.LoadUnit, Load: &wire.Load{Workers: 1, Level: 1, MilliRate: 100_000}},
		"Recovery": {Kind: wire.RecoveryUnit, Faults: faults, Recovery: &wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second}},
	} {
		b.Run(name, func(b *testing.B) {
			u.ID, u.Call, u.Ops = "u", call, wire.Range{To: uint64(b.N)}
			term := &term{}
			term.end.Store(after(time.Now(), time.Hour))
			w := &work{ration: &ration{poke: func() {}}, term: term, ctx: context.Background()}
			s := &sampler{}
			b.ReportAllocs()
			cpu := probe.CPUTime()
			if res := probe.Run(b.Context(), probe.Env{Target: mock, Leave: w, Quota: w}, &u, s.add); res.Failure != nil {
				b.Fatal(res.Failure.Message)
			}
			b.ReportMetric(float64(probe.CPUTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}
