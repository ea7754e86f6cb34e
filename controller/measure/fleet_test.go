package measure_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/controller/policy"
	"ordeal/controller/result"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// TestDegradedLeavesTheVerdict: a gang that lost a part is never a pass and never
// a zero, whatever its tally holds.
func TestDegradedLeavesTheVerdict(t *testing.T) {
	statuses := func(in *measure.Input) map[string]result.Status {
		probes, caveats := measure.Probes(*in)
		out := map[string]result.Status{}
		for _, c := range policy.Evaluate(policy.Default(), policy.Input{Probes: probes, Caveats: caveats}).Checks {
			out[c.Key] = c.Status
			if c.Status == result.NA && (c.Observed != nil || c.Score != nil || c.Interval != nil) {
				t.Errorf("%s is n/a and shows %v", c.Key, c)
			}
		}
		return out
	}
	keys := []string{"p95_latency_ms", "p99_latency_ms", "error_rate_max", "cost_per_request_max"}
	for _, key := range keys {
		if s := statuses(world())[key]; s == result.NA {
			t.Fatalf("%s is not measured without any loss", key)
		}
	}
	in := world()
	in.Summary.Stage("latency").Gang = lossy(true, 1000, 750)
	got := statuses(in)
	for _, key := range keys {
		if got[key] != result.NA {
			t.Errorf("%s is %s after an agent was lost twice, want n/a", key, got[key])
		}
	}
	p := probesOf(in)["latency"]
	if p.Error == "" || !strings.Contains(p.Summary, "75.0% of the arrivals, planned 100.0%") {
		t.Errorf("summary %q, error %q", p.Summary, p.Error)
	}
	if c := caveatOf(t, in, "latency.degraded"); !strings.Contains(c.Reason, "75.0% of the arrivals, planned 100.0% (eu-1, eu-2)") {
		t.Errorf("reason %q", c.Reason)
	}
}

func levelsOf(t *testing.T, p result.Probe) map[int]measure.Level {
	t.Helper()
	list, ok := p.Metrics["levels"].Value.([]measure.Level)
	if !ok {
		t.Fatalf("levels %v", p.Metrics["levels"].Value)
	}
	out := map[int]measure.Level{}
	for _, l := range list {
		out[l.Concurrency] = l
	}
	return out
}

// TestDegradedLevel shows what it achieved beside what was planned and has no say
// in what the target sustains.
func TestDegradedLevel(t *testing.T) {
	in := world()
	in.Spec.Concurrency, in.Summary = 8, &merge.Summary{}
	for i, failed := range []int{0, 0, 0, 40} { // the last level would saturate
		in.Summary.Stages = append(in.Summary.Stages, levelStage(1<<i, failed))
	}
	in.Summary.Stage("concurrency-8").Gang = lossy(false, 8, 6)
	p := probesOf(in)["concurrency"]
	wantShown(t, p, map[string]string{"max_sustained_concurrency": "4", "saturation_point": "<nil>", "levels_tested": "[1 2 4]", "requests": "300", "failures": "0", "max_error_rate": "0"})
	l := levelsOf(t, p)[8]
	if l.Achieved == nil || *l.Achieved != 6 || l.Note != "6 of 8 callers, lost twice (eu-1, eu-2); left out" {
		t.Errorf("level %+v", l)
	}
	if l.ErrorRate != nil || l.ErrorRateRaw != nil || l.Fitted != nil || l.P95S != nil || l.ThroughputRPS != nil || l.LittlesLawRPS != nil || l.Requests != 100 {
		t.Errorf("a degraded level has numbers: %+v", l)
	}
	if levelsOf(t, p)[4].Fitted == nil {
		t.Error("the levels that were measured have lost their fit")
	}
	if want := "4 callers sustained, no saturation up to 4; left out for lost agents: 8 callers (6 took part)"; p.Summary != want {
		t.Errorf("summary %q, want %q", p.Summary, want)
	}
	for _, id := range []string{"concurrency.ceiling", "concurrency.stopped_early"} {
		if _, caveats := measure.Probes(*in); slices.Contains(ids(caveats), id) {
			t.Errorf("%s: the ramp did not end below its top", id)
		}
	}
	c := caveatOf(t, in, "concurrency.degraded_levels")
	if !strings.HasPrefix(c.Reason, "An agent was lost twice at 8 callers (6 took part).") {
		t.Errorf("reason %q", c.Reason)
	}
}

// TestDegradedFirstLevel: the next level is not the unloaded target.
func TestDegradedFirstLevel(t *testing.T) {
	in := world()
	in.Summary.Stage("concurrency-1").Gang = lossy(false, 1, 0)
	p := probesOf(in)["concurrency"]
	wantShown(t, p, map[string]string{"baseline_p95_s": "<nil>", "latency_knee_at": "<nil>", "max_sustained_concurrency": "2", "saturation_point": "4"})
	*in.Summary.Stage("concurrency-2") = *levelStage(2, 60)
	p = probesOf(in)["concurrency"]
	wantShown(t, p, map[string]string{"max_sustained_concurrency": "<nil>", "saturation_point": "2"})
	if findingOf(p, "concurrency.broken_at_once") != nil || findingOf(p, "concurrency.saturation") == nil {
		t.Errorf("findings %+v: whether one caller breaks it is unknown", p.Findings)
	}
	if !strings.HasPrefix(p.Summary, "unknown how many callers are sustained, saturation at 2") {
		t.Errorf("summary %q", p.Summary)
	}
}

// TestDegradedElsewhere: neither the repetition under faults nor the baseline error
// is made of a load that was not asked for.
func TestDegradedElsewhere(t *testing.T) {
	in := world()
	in.Summary.Stage("degradation").Gang = lossy(true, 1000, 500)
	in.Summary.Stage("degradation").Tally = tallyOf(failing(100)...)
	p := probesOf(in)["fault"]
	wantShown(t, p, map[string]string{"degraded_error_rate": "<nil>", "degraded_p95_s": "<nil>", "error_rate_under_fault": "<nil>", "recovery_rate": "0.5"})
	in.Summary.Stage("latency").Gang = lossy(true, 1000, 500)
	in.Summary.Stage("latency").Tally = tallyOf(failing(100)...)
	wantShown(t, probesOf(in)["behavior"], map[string]string{"recovery_rate_baseline_error": "<nil>", "recovery_rate": "0.5"})
}

// TestStartSkew is said from a twentieth of the time on in which all had work, the
// bound of the clocks included.
func TestStartSkew(t *testing.T) {
	// levelStage(4): 10 s of four callers are 2.5 s; the bound of two members is 100 ms.
	for _, row := range []struct {
		skew time.Duration
		said bool
	}{{24 * time.Millisecond, false}, {26 * time.Millisecond, true}} {
		in := world()
		in.Summary.Stage("concurrency-4").Gang = apart(row.skew)
		_, caveats := measure.Probes(*in)
		if got := slices.Contains(ids(caveats), "concurrency.start_skew"); got != row.said {
			t.Errorf("%v apart: said %v", row.skew, got)
		}
	}
	in := world()
	in.Summary.Stage("concurrency-4").Gang = apart(time.Second)
	if c := caveatOf(t, in, "concurrency.start_skew"); !strings.Contains(c.Reason, "1.00s ± 0.10s of 2.50s in concurrency 4") {
		t.Errorf("reason %q", c.Reason)
	}
}

// TestWithheldAgentIsNamed, and lateness is over the requests that have one.
func TestWithheldAgentIsNamed(t *testing.T) {
	in := world()
	tally := metrics.NewTally()
	for i := range 100 {
		x := good(i)
		late := time.Duration(0)
		if i >= 90 {
			late = 5 * time.Second
		}
		tally.Add(&x, late)
	}
	tally.Window = metrics.Window{Scheduled: 200, Sent: 200, SpanUS: 20_000_000}
	tally.Outcomes[metrics.OK] += 100 // of an agent whose times are withheld
	st := in.Summary.Stage("latency")
	st.Tally, st.Withheld = tally, []merge.Withheld{{Agent: "eu-2", Reason: "woken 40 ms late", Requests: 100}}
	p := probesOf(in)["latency"]
	if m := p.Metrics["lateness_p95_s"]; m.N != 100 || fmt.Sprint(m.Value) != "5" {
		t.Errorf("lateness %+v: a withheld call is not one in time", m)
	}
	if p.Metrics["p95_s"].N != 100 || p.Metrics["error_rate"].N != 200 {
		t.Errorf("p95 of %d, error rate of %d", p.Metrics["p95_s"].N, p.Metrics["error_rate"].N)
	}
	if c := caveatOf(t, in, "latency.generator_withheld"); !strings.Contains(c.Reason, "eu-2 in latency (woken 40 ms late, 100 requests)") {
		t.Errorf("reason %q", c.Reason)
	}
}

func TestCutByLeaseIsSaid(t *testing.T) {
	in := world()
	st := in.Summary.Stage("latency")
	st.Partial, st.Released = true, map[string]int64{"lease": 2, "no further calls were granted": 1}
	want := "Stage latency was cut short because agents no longer heard from the controller (2 units), no further calls were granted (1 unit); what is shown is about the part that ran."
	if c := caveatOf(t, in, "latency.partial.latency"); c.Reason != want {
		t.Errorf("reason %q, want %q", c.Reason, want)
	}
}

func share(agents string, ok, failed int64, ms int64) *merge.Share {
	sh := &merge.Share{Agents: map[string]bool{}, Operations: ok + failed, Outcomes: metrics.Counts{metrics.OK: ok, metrics.Timeout: failed}}
	for id := range strings.FieldsSeq(agents) {
		sh.Agents[id] = true
	}
	for i := range ok {
		sh.Latency.Record(ms*1000 + i)
	}
	return sh
}

// TestBreakdown: counts are of everything, times of what all zones did together.
func TestBreakdown(t *testing.T) {
	gang := &merge.Gang{Planned: 4, Achieved: 4}
	sum := &merge.Summary{By: "zone", Stages: []*merge.Stage{
		{Name: "latency", Groups: map[string]*merge.Share{"eu": share("e1", 500, 0, 1), "us": share("u1", 10, 0, 900)}},
		{Name: "concurrency-1", Gang: gang, Groups: map[string]*merge.Share{"eu": share("e1", 40, 0, 1)}},
		{Name: "concurrency-4", Gang: gang, Groups: map[string]*merge.Share{"eu": share("e1 e2", 100, 0, 20), "us": share("u1", 90, 10, 40), merge.None: share("x", 19, 1, 30)}},
		{Name: "concurrency-8", Gang: lossy(false, 8, 4), Groups: map[string]*merge.Share{"eu": share("e2", 40, 0, 1), "us": share("u2", 40, 0, 1), merge.None: share("x", 40, 0, 1)}},
	}}
	b := measure.Fleet(sum, nil).Breakdown
	if b == nil || b.Label != "zone" || len(b.Groups) != 3 {
		t.Fatalf("breakdown %+v", b)
	}
	if diff := cmp.Diff([]string{"concurrency-4"}, b.Stages); diff != "" {
		t.Errorf("compared over (-want +got):\n%s", diff)
	}
	got := []string{}
	for _, g := range b.Groups {
		p50, _ := g.P50.Number()
		failed, _ := g.ErrorRate.Number()
		got = append(got, fmt.Sprintf("%s %d agents %d operations %v p50 %.3f of %d p95 %v p99 %v errors %.2f of %d", g.Value, g.Agents, g.Operations, g.Outcomes,
			p50, g.P50.N, g.P95.Value != nil, g.P99.Value != nil, failed, g.ErrorRate.N))
	}
	want := []string{
		"eu 2 agents 680 operations map[ok:680] p50 0.020 of 100 p95 true p99 true errors 0.00 of 100",
		"us 2 agents 150 operations map[ok:140 timeout:10] p50 0.040 of 90 p95 true p99 false errors 0.10 of 100",
		"(none) 1 agents 60 operations map[ok:59 timeout:1] p50 0.030 of 19 p95 false p99 false errors 0.05 of 20",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	sum.Stages = sum.Stages[:1]
	if b := measure.Fleet(sum, nil).Breakdown; !slices.Equal(b.Stages, []string{"latency"}) {
		t.Errorf("without a gang of all: %v", b.Stages)
	}
	sum.By = ""
	if b := measure.Fleet(sum, nil).Breakdown; b != nil {
		t.Errorf("nobody asked: %+v", b)
	}
}

func TestFleetSection(t *testing.T) {
	st := levelStage(4, 0)
	st.Gang = apart(3 * time.Millisecond)
	st.Gang.Agents[1].Start.Due, st.Gang.Attempts, st.Gang.Lost, st.Gang.Repeated = int64(time.Millisecond), 2, []string{"eu-3"}, 40
	st.Withheld = withheldAgents()
	sum := &merge.Summary{Calls: 500, Reissued: 41, Ignored: 3, Stages: []*merge.Stage{levelStage(1, 0), st},
		Fleet: []merge.AgentShare{{ID: "eu-1", Units: 2, Operations: 150, Offset: -250 * time.Microsecond, Bound: 30 * time.Microsecond}, {ID: "eu-3", Lost: true}}}
	f := measure.Fleet(sum, func(agent string) (string, map[string]string) {
		if agent == "eu-1" {
			return "0.2.0", map[string]string{"zone": "eu"}
		}
		return "", nil
	})
	number := func(v float64) *float64 { return &v }
	want := &result.Fleet{Calls: 500, Reissued: 41, Ignored: 3, Outliers: []result.Outlier{},
		Agents: []result.FleetAgent{
			{ID: "eu-1", Version: "0.2.0", Labels: map[string]string{"zone": "eu"}, Units: 2, Operations: 150, ClockOffsetUS: number(-250), ClockBoundUS: number(30)},
			{ID: "eu-3", Version: "unknown", Lost: true}},
		Gangs: []result.Gang{{Stage: "concurrency-4", Agents: 2, Of: "callers", Planned: 4, Achieved: 4, Attempts: 2, Lost: []string{"eu-3"}, Repeated: 40,
			SkewUS: number(3000), SkewBoundUS: number(100_000), LateUS: number(2000)}},
		Withheld: []result.WithheldAgent{{Agent: "eu-2", Stage: "concurrency-4", Reason: "cpu 99%", Requests: 25}}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("fleet (-want +got):\n%s", diff)
	}
}

// TestThroughTheMerger: what agents send comes out as zones and as an outlier.
func TestThroughTheMerger(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	m := merge.Merger{By: "zone", Labels: func(agent string) map[string]string { return map[string]string{"zone": agent[:2]} }}
	agents := []string{"ap-1", "ap-2", "eu-1", "eu-2", "sa-1", "sa-2", "us-1", "us-2"}
	var planned []merge.Planned
	for _, a := range agents {
		planned = append(planned, merge.Planned{Unit: "u-" + a, Operations: 120})
	}
	st := m.Stage("concurrency-8", "concurrency", 8, planned)
	for _, a := range agents {
		tally := metrics.NewTally()
		for range 120 {
			x := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Latency: time.Duration(50+rng.IntN(20)) * time.Millisecond}
			if a == "us-2" {
				x.Latency *= 4
			}
			tally.Add(&x, 0)
		}
		m.Add(&wire.Result{Stage: "concurrency-8", Unit: "u-" + a, Incarnation: 1, Final: true, Agent: a, Calls: 120, Tally: tally})
	}
	m.Gang("concurrency-8", merge.Gang{Planned: 8, Achieved: 8, Attempts: 1})
	st.Took(time.Second)
	f := measure.Fleet(m.Summary(), nil)
	if len(f.Outliers) != 1 || f.Outliers[0].Agent != "us-2" || f.Outliers[0].What != result.Slower || f.Compared != 8 {
		t.Errorf("outliers %+v of %d", f.Outliers, f.Compared)
	}
	if f.Breakdown == nil || len(f.Breakdown.Groups) != 4 || f.Breakdown.Groups[3].Value != "us" {
		t.Fatalf("breakdown %+v", f.Breakdown)
	}
	if p95, _ := f.Breakdown.Groups[3].P95.Number(); p95 < 0.2 {
		t.Errorf("p95 of us is %v", p95)
	}
}
