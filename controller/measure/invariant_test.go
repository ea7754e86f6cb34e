package measure_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// scored are the metrics a policy may read: when one has no value, a caveat
// says why.
var scored = map[string][]string{
	"latency":     {"p95_s", "p99_s", "error_rate"},
	"cost":        {"cost_per_request"},
	"concurrency": {"max_sustained_concurrency"},
	"contract":    {"crash_rate", "accepted_invalid"},
	"fault":       {"recovery_rate"},
	"behavior":    {"recovery_rate", "retry_amplification", "duplicate_mutations", "survivability", "recovery_ideal"},
}

func checkInvariants(t *testing.T, probes []result.Probe, caveats []metrics.Caveat) {
	t.Helper()
	byID := map[string]metrics.Caveat{}
	for _, c := range caveats {
		byID[c.ID] = c
		if c.Reason == "" || c.Metrics == nil || c.Scope == "" {
			t.Errorf("incomplete caveat %+v", c)
		}
	}
	for _, p := range probes {
		if p.Summary == "" || p.Findings == nil {
			t.Errorf("%s: summary %q, findings %v", p.Name, p.Summary, p.Findings)
		}
		for _, name := range scored[p.Name] {
			if m := p.Metrics[name]; m.Value == nil && len(m.Caveats) == 0 {
				t.Errorf("%s.%s is missing without a reason", p.Name, name)
			}
		}
		for name, m := range p.Metrics {
			checkMetric(t, p.Name+"."+name, m, byID)
		}
		for _, f := range p.Findings {
			if f.Message == "" || !slices.Contains([]result.Severity{result.Critical, result.Warning, result.Info}, f.Severity) {
				t.Errorf("%s: finding %+v", p.Name, f)
			}
		}
	}
	for _, c := range caveats {
		for _, name := range c.Metrics {
			at := slices.IndexFunc(probes, func(p result.Probe) bool { return p.Name == c.Probe })
			if m := probes[at].Metrics[name]; !slices.Contains(m.Caveats, c.ID) || c.Effect != metrics.Annotate && m.Value != nil {
				t.Errorf("caveat %s (%s) on %s: %+v", c.ID, c.Effect, name, m)
			}
		}
	}
	if _, err := json.Marshal(probes); err != nil {
		t.Errorf("probes cannot be written: %v", err) // NaN and Inf end here
	}
	if _, err := json.Marshal(caveats); err != nil {
		t.Errorf("caveats cannot be written: %v", err)
	}
}

func checkMetric(t *testing.T, name string, m metrics.Measured, byID map[string]metrics.Caveat) {
	t.Helper()
	if m.N < 0 {
		t.Errorf("%s: n is %d", name, m.N)
	}
	for _, id := range m.Caveats {
		if _, known := byID[id]; !known {
			t.Errorf("%s names caveat %s, which does not exist", name, id)
		}
	}
	v, number := m.Number()
	if number && (m.Unit == "rate" || m.Unit == "s") && m.N == 0 && v != 0 {
		t.Errorf("%s: %v over no observation", name, v)
	}
	if m.Unit == "rate" && number && (v < 0 || v > 1) {
		t.Errorf("%s: rate %v", name, v)
	}
	if iv := m.Interval; iv != nil && (!number || iv.Lo > v+1e-9 || iv.Hi < v-1e-9) {
		t.Errorf("%s: %v outside its interval %+v", name, m.Value, *iv)
	}
}

// chance builds inputs nobody would write down: every count, outcome and gap by
// lot.
type chance struct{ *rand.Rand }

func (c chance) half() bool { return c.IntN(2) == 0 }

func (c chance) exchange() metrics.Exchange {
	outcomes := metrics.Outcomes()
	x := good(c.IntN(1000))
	if c.IntN(3) == 0 {
		x = bad(outcomes[c.IntN(len(outcomes))])
		x.ByText, x.Truncated = c.half(), c.half()
	}
	x.Usage = x.Usage && c.IntN(4) > 0
	x.TokensIn = int64(c.IntN(3) * c.IntN(3000))
	x.Latency *= time.Duration(c.IntN(40))
	if c.IntN(50) == 0 {
		x.Quota, x.QuotaLimit, x.RetryAfter = "header", int64(c.IntN(9)), time.Second
	}
	return x
}

func (c chance) tally() *metrics.Tally {
	if c.IntN(12) == 0 {
		return nil
	}
	t := tallyOf(repeat([]int{0, 1, 2, 19, 50, 150, 400}[c.IntN(7)], func(int) metrics.Exchange { return c.exchange() })...)
	t.Window = metrics.Window{Workers: c.Int64N(9), Completed: c.Int64N(200), BusyUS: c.Int64N(2) * c.Int64N(1e7),
		Scheduled: c.Int64N(400), Sent: c.Int64N(400), Dropped: c.Int64N(3), SpanUS: c.Int64N(2) * c.Int64N(1e8)}
	t.Window.Succeeded = c.Int64N(t.Window.Completed + 1)
	if c.IntN(3) == 0 {
		t.Faults = map[string]int64{"timeout": c.Int64N(30)}
	}
	return t
}

func (c chance) behavior() *metrics.Behavior {
	b := &metrics.Behavior{BackoffUnwaited: c.Int64N(2)}
	for op := range uint64(c.IntN(120)) {
		t := trajectory(op, 1+c.IntN(3), []metrics.Outcome{metrics.OK, metrics.Timeout}[c.IntN(2)], []string{"", "timeout"}[c.IntN(2)])
		b.Fold(t)
	}
	return b
}

func (c chance) contract(tool string) *wire.ContractResult {
	r := &wire.ContractResult{Tool: tool, Controls: map[string]int64{"ok": c.Int64N(5), "rejected": c.Int64N(3), "undelivered": c.Int64N(2)},
		Output: wire.OutputCheck{Checked: 5 * c.Int64N(2)}, LeftOut: c.IntN(2)}
	yes := c.half()
	for i := range c.IntN(30) {
		x := c.exchange()
		k := wire.CaseResult{Index: i, Label: "k[id]", Kind: []string{"wrong_type", "extra_param"}[c.IntN(2)], Path: "/id", Reference: c.half(), Forbidden: c.half(),
			Carries: c.half(), Outcome: x.Outcome, Delivered: x.Delivered, ByText: c.half(), ControlOK: c.half(), ControlDelivered: c.half()}
		if c.half() {
			k.Alive, k.Payload = &yes, []byte(`{"id":1}`)
		}
		r.Cases = append(r.Cases, k)
	}
	return r
}

func (c chance) oracle() *wire.OracleResult {
	r := &wire.OracleResult{Status: []string{"ok", "failed"}[c.IntN(5)/4], Entries: c.Int64N(200), Effects: map[uint64]int64{}}
	for range c.IntN(60) * c.IntN(2) {
		r.Effects[uint64(c.IntN(120))] = c.Int64N(3)
	}
	return r
}

func (c chance) input() measure.Input {
	in := world()
	sum := &merge.Summary{}
	add := func(st *merge.Stage) {
		st.Planned, st.Done = 2, 1+c.IntN(2)
		st.Generator.Saturated = c.IntN(8) == 0
		switch c.IntN(8) {
		case 0:
			st.Gang = lossy(c.half(), 4, c.IntN(4))
		case 1:
			st.Gang = apart(time.Duration(c.Int64N(1e9)))
		case 2:
			if st.Withheld = withheldAgents(); st.Tally != nil {
				st.Withheld[0].Requests = st.Tally.Measured() / 2
			}
		}
		if c.IntN(8) > 0 {
			sum.Stages = append(sum.Stages, st)
		}
	}
	for _, name := range []string{"latency", "cost"} {
		add(&merge.Stage{Name: name, Probe: name, Tally: c.tally(), Failures: []wire.Failure{{Message: "gone"}}})
	}
	for _, level := range []int{1, 2, 4} {
		add(&merge.Stage{Name: "concurrency", Probe: "concurrency", Level: level, Tally: c.tally()})
	}
	add(&merge.Stage{Name: "contract-lookup", Probe: "contract", Contract: c.contract("lookup")})
	add(&merge.Stage{Name: "contract-x", Probe: "contract"})
	add(&merge.Stage{Name: "degradation", Probe: "fault", Tally: c.tally()})
	add(&merge.Stage{Name: "recovery", Probe: "fault", Behavior: c.behavior(), Tally: c.tally()})
	for _, name := range []string{"oracle-stale", "oracle-before", "oracle-after"} {
		add(&merge.Stage{Name: name, Probe: "fault", Oracle: c.oracle()})
	}
	in.Summary = sum
	in.Survey.OwnRetries, in.Survey.Virtual, in.Survey.ReportsUsage = c.half(), c.half(), c.half()
	in.Spec.AllowMutating = c.half()
	if c.half() {
		in.Spec.Rate = 0
	}
	if c.half() {
		in.Plan = []plan.Stage{}
	}
	if c.half() {
		in.Preflight = &wire.Preflight{Outcome: metrics.ToolError, Delivered: true}
	}
	return *in
}

func TestInvariantsHoldForAnyRun(t *testing.T) {
	for seed := range uint64(200) {
		in := chance{rand.New(rand.NewPCG(seed, 1))}.input()
		probes, caveats := measure.Probes(in)
		checkInvariants(t, probes, caveats)
		again, _ := measure.Probes(in)
		if diff := cmp.Diff(probes, again, cmp.AllowUnexported(measure.Level{}, measure.Case{})); diff != "" {
			t.Fatalf("seed %d: measured twice, two results (-first +second):\n%s", seed, diff)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestInvariantsOfWorldAndPublishedScans(t *testing.T) {
	probes, caveats := measure.Probes(*world())
	checkInvariants(t, probes, caveats)
	for _, row := range published {
		probes, caveats := measure.Probes(measure.Input{Spec: row.scan.spec(), Survey: row.scan.survey(), Summary: row.scan.summary()})
		checkInvariants(t, probes, caveats)
	}
}

// TestNothingObserved is a run that was stopped before its first call.
func TestNothingObserved(t *testing.T) {
	in := world()
	in.Summary = &merge.Summary{}
	probes, caveats := measure.Probes(*in)
	checkInvariants(t, probes, caveats)
	if len(probes) != 6 {
		t.Errorf("%d probes, want all six with the reason of their silence", len(probes))
	}
}

func TestOnlySelectedProbesAreMeasured(t *testing.T) {
	in := world()
	in.Spec.Probes, in.Spec.Phases = []string{"latency", "fault", "behavior"}, []string{"baseline", "behavior"}
	probes, _ := measure.Probes(*in)
	var got []string
	for _, p := range probes {
		got = append(got, p.Name+" "+p.Phase)
	}
	if diff := cmp.Diff([]string{"latency baseline", "behavior behavior"}, got); diff != "" {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
}
