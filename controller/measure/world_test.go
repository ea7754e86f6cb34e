package measure_test

import (
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"
	"ordeal/metrics/price"
)

func byName(probes []result.Probe, _ []metrics.Caveat) map[string]result.Probe {
	out := map[string]result.Probe{}
	for _, p := range probes {
		out[p.Name] = p
	}
	return out
}

func tallyOf(xs ...metrics.Exchange) *metrics.Tally {
	t := metrics.NewTally()
	for i := range xs {
		t.Add(&xs[i], 0)
	}
	return t
}

func repeat(n int, x func(i int) metrics.Exchange) []metrics.Exchange {
	xs := make([]metrics.Exchange, n)
	for i := range xs {
		xs[i] = x(i)
	}
	return xs
}

func good(i int) metrics.Exchange {
	return metrics.Exchange{Outcome: metrics.OK, Delivered: true, Executed: metrics.Yes, Latency: time.Duration(100_000+137*i) * time.Microsecond,
		ServerTime: 90 * time.Millisecond, Usage: true, TokensIn: int64(500 + i%50), TokensOut: 100}
}

func bad(o metrics.Outcome) metrics.Exchange {
	x := metrics.Exchange{Outcome: o, Delivered: o != metrics.Timeout, Latency: 50 * time.Millisecond, Message: "no"}
	if o == metrics.RateLimited {
		x.Quota = "http_status"
	}
	return x
}

// world is a scan of which no number is withheld or qualified: an open-loop
// tool with a price, a ramp that saturates, a strict schema, its own retries and
// a state that can be read.
func world() *measure.Input {
	s := spec.Default()
	s.Target = wire.Target{Kind: wire.MCP, Model: "small"}
	s.Tool, s.ToolArgs = "lookup", []byte(`{"id":"{op_id}"}`)
	s.VerifyTool, s.AllowMutating = "state", true
	s.Probes, s.Phases = spec.AllProbes, spec.AllPhases
	s.Requests, s.Concurrency, s.Warmup, s.MaxRetries = 401, 4, 0, 2
	s.FaultRate, s.FaultRatePPB, s.Seed = 0.2, 200_000_000, "7"
	s.Rate, s.MilliRate, s.Timeout = 10, 10_000, 30*time.Second
	s.ContractTools, s.ContractCases = 3, 50
	return &measure.Input{
		Spec:   &s,
		Survey: &wire.Survey{Name: "s", ReportsUsage: true, OwnRetries: true, Tools: []wire.Tool{{Name: "lookup"}}},
		Summary: &merge.Summary{Stages: []*merge.Stage{
			latencyStage(), levelStage(1, 1), levelStage(2, 1), levelStage(4, 40), contractStage(),
			{Name: "degradation", Probe: "fault", Planned: 1, Done: 1, Calls: 100, Tally: tallyOf(repeat(100, good)...)},
			{Name: "oracle-before", Probe: "fault", Planned: 1, Done: 1, Oracle: &wire.OracleResult{Status: "ok", Entries: 5}},
			recoveryStage(),
			{Name: "oracle-after", Probe: "fault", Planned: 1, Done: 1, Oracle: after()},
		}},
		Prices: prices(),
		Plan: []plan.Stage{{Name: "recovery", Units: []wire.Unit{{Ops: wire.Range{From: 401, To: 802},
			Faults:   &wire.Faults{Seed: "7", Rule: "call/recovery", Kinds: []string{"timeout", "malformed"}, RatePPB: 200_000_000},
			Recovery: &wire.Recovery{MaxRetries: 2}}}}},
	}
}

func latencyStage() *merge.Stage {
	t := tallyOf(append(repeat(400, good), bad(metrics.ServerError))...)
	t.Window = metrics.Window{Scheduled: 401, Sent: 401, SpanUS: 40_100_000}
	return &merge.Stage{Name: "latency", Probe: "latency", Planned: 1, Done: 1, Calls: 401, Tally: t}
}

// levelStage has 100 calls of which some failed.
func levelStage(level, failed int) *merge.Stage {
	xs := append(repeat(100-failed, good), repeat(failed, func(int) metrics.Exchange { return bad(metrics.ServerError) })...)
	t := tallyOf(xs...)
	t.Window = metrics.Window{Workers: int64(level), Completed: 100, Succeeded: int64(100 - failed), BusyUS: 10_000_000}
	return &merge.Stage{Name: fmt.Sprintf("concurrency-%d", level), Probe: "concurrency", Level: level, Planned: 1, Done: 1, Calls: 100, Tally: t}
}

func contractStage() *merge.Stage {
	r := &wire.ContractResult{Tool: "lookup", Total: 4, Controls: map[string]int64{"ok": 4}, Output: wire.OutputCheck{Checked: 8}}
	for i, kind := range []string{"null_required", "wrong_type", "extra_param", "very_long_string"} {
		r.Cases = append(r.Cases, wire.CaseResult{Index: i, Label: kind + "[id]", Kind: kind, Path: "/id", Reference: true, Forbidden: i < 3,
			Carries: true, Outcome: metrics.ToolError, Delivered: true, ControlOK: true, ControlDelivered: true, Message: "id: wrong", Payload: []byte(`{"id":null}`)})
	}
	return &merge.Stage{Name: "contract-lookup", Probe: "contract", Planned: 1, Done: 1, Contract: r}
}

// recoveryStage has 401 operations: 40 disrupted by a fault, of which the even
// ones recover; the first was acknowledged before its reply was damaged.
func recoveryStage() *merge.Stage {
	b := &metrics.Behavior{}
	for op := uint64(401); op < 802; op++ {
		call := func(n int, o metrics.Outcome, fault string, done metrics.Tri) metrics.Invocation {
			return metrics.Invocation{Attempt: n, Outcome: o, Delivered: o != metrics.Timeout, Executed: done, Fault: fault,
				StartedUS: int64(n) * 100_000, LatencyUS: 100_000, Fingerprint: fmt.Sprint(op)}
		}
		t := metrics.Trajectory{Op: op, Label: fmt.Sprintf("lookup#%d", op)}
		i := op - 401
		switch {
		case i >= 40:
			t.Invocations = append(t.Invocations, call(1, metrics.OK, "", metrics.Yes))
		case i == 0:
			t.Invocations = append(t.Invocations, call(1, metrics.InvalidResponse, "malformed", metrics.Yes), call(2, metrics.OK, "", metrics.Yes))
		case i%2 == 0:
			t.Invocations = append(t.Invocations, call(1, metrics.Timeout, "timeout", metrics.No), call(2, metrics.OK, "", metrics.Yes))
		default:
			for n := range 3 {
				t.Invocations = append(t.Invocations, call(n+1, metrics.Timeout, "timeout", metrics.No))
			}
		}
		b.Fold(&t)
	}
	return &merge.Stage{Name: "recovery", Probe: "fault", Planned: 1, Done: 1, Calls: b.Attempts, Behavior: b}
}

// after holds one entry for each of the 381 operations that succeeded.
func after() *wire.OracleResult {
	r := &wire.OracleResult{Status: "ok", Effects: map[uint64]int64{}, Entries: 5}
	for op := uint64(401); op < 802; op++ {
		if i := op - 401; i >= 40 || i%2 == 0 {
			r.Effects[op] = 1
			r.Entries++
		}
	}
	return r
}

func prices() []*price.Table {
	table, err := price.Parse([]byte("models:\n  small: {input: 1, output: 5}\n"))
	if err != nil {
		panic(err)
	}
	return []*price.Table{table}
}
