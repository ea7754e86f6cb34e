package measure_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/metrics"
)

func tallyAt(in *measure.Input, stage string) *metrics.Tally { return in.Summary.Stage(stage).Tally }

func cases(in *measure.Input) *wire.ContractResult {
	return in.Summary.Stage("contract-lookup").Contract
}

func behaviorOf(in *measure.Input) *metrics.Behavior { return in.Summary.Stage("recovery").Behavior }

func answers(in *measure.Input, xs ...metrics.Exchange) {
	w := tallyAt(in, "latency").Window
	in.Summary.Stage("latency").Tally = tallyOf(xs...)
	tallyAt(in, "latency").Window = w
}

func failing(n int) []metrics.Exchange {
	return repeat(n, func(int) metrics.Exchange { return bad(metrics.ServerError) })
}

// trajectory of n attempts of which only the last may succeed.
func trajectory(op uint64, n int, last metrics.Outcome, fault string) *metrics.Trajectory {
	t := &metrics.Trajectory{Op: op, Label: "lookup"}
	for i := range n {
		inv := metrics.Invocation{Attempt: i + 1, Outcome: metrics.Timeout, Fault: fault, Executed: metrics.No, LatencyUS: 1000}
		if i == n-1 {
			inv.Outcome, inv.Fault, inv.Executed = last, "", metrics.Yes
			if last != metrics.OK {
				inv.Fault = fault
			}
		}
		t.Invocations = append(t.Invocations, inv)
	}
	return t
}

func recoveryOf(in *measure.Input, ts ...*metrics.Trajectory) {
	b := &metrics.Behavior{}
	for _, t := range ts {
		b.Fold(t)
	}
	st := in.Summary.Stage("recovery")
	st.Behavior, st.Calls = b, b.Attempts
}

func many(n int, t func(op uint64) *metrics.Trajectory) []*metrics.Trajectory {
	ts := make([]*metrics.Trajectory, n)
	for i := range ts {
		ts[i] = t(uint64(i))
	}
	return ts
}

func drop(in *measure.Input, stage string) {
	for i, st := range in.Summary.Stages {
		if st.Name == stage {
			in.Summary.Stages = slices.Delete(in.Summary.Stages, i, i+1)
			return
		}
	}
}

// lossy is a gang that lost an agent, and another when it was repeated.
func lossy(arrivals bool, planned, achieved int) *merge.Gang {
	return &merge.Gang{Attempts: 2, Arrivals: arrivals, Planned: planned, Achieved: achieved, Degraded: true, Lost: []string{"eu-1", "eu-2"}}
}

// apart is a gang of two whose members began so far from each other.
func apart(skew time.Duration) *merge.Gang {
	at := func(id string, at time.Duration) merge.GangMember {
		return merge.GangMember{ID: id, Workers: 2, Bound: 50 * time.Millisecond, Start: &wire.Start{At: int64(at)}}
	}
	return &merge.Gang{Attempts: 1, Planned: 4, Achieved: 4, Agents: []merge.GangMember{at("eu-1", 0), at("eu-2", skew)}}
}

func withheldAgents() []merge.Withheld {
	return []merge.Withheld{{Agent: "eu-2", Reason: "cpu 99%", Requests: 25}}
}

// conditions under which a number is withheld or qualified: what brings each
// about, and a metric that shows it. An empty metric: the caveat is about the
// whole probe and leaves the numbers alone.
var conditions = []struct {
	id     string
	metric string
	effect metrics.Effect
	bring  func(in *measure.Input)
}{
	{"latency.did_not_run", "error_rate", metrics.Suppress, func(in *measure.Input) { drop(in, "latency") }},
	{"latency.partial.latency", "", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("latency").Planned = 2 }},
	{"latency.generator_saturated", "p95_s", metrics.Suppress, func(in *measure.Input) {
		in.Summary.Stage("latency").Generator = wire.Generator{Saturated: true, Reason: "cpu"}
	}},
	{"latency.degraded", "p95_s", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("latency").Gang = lossy(true, 1000, 750) }},
	{"latency.degraded", "error_rate", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("latency").Gang = lossy(true, 1000, 750) }},
	{"latency.start_skew", "p95_s", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("latency").Gang = apart(2 * time.Second) }},
	{"latency.generator_withheld", "p95_s", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("latency").Withheld = withheldAgents() }},
	{"cost.degraded", "cost_per_request", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("latency").Gang = lossy(true, 1000, 750) }},
	{"latency.payload_rejected", "error_rate", metrics.Suppress, func(in *measure.Input) {
		in.Preflight = &wire.Preflight{Outcome: metrics.ToolError, Delivered: true}
		answers(in, failing(10)...)
	}},
	{"latency.zero_failures", "error_rate", metrics.Annotate, func(in *measure.Input) { answers(in, repeat(400, good)...) }},
	{"latency.rate_limited_left_out", "error_rate", metrics.Annotate, func(in *measure.Input) {
		answers(in, append(repeat(400, good), bad(metrics.RateLimited), bad(metrics.ServerError))...)
	}},
	{"latency.only_rate_limited", "error_rate", metrics.Suppress, func(in *measure.Input) {
		answers(in, bad(metrics.RateLimited), bad(metrics.RateLimited))
	}},
	{"latency.capacity_is_quota", "error_rate", metrics.Annotate, func(in *measure.Input) {
		tallyAt(in, "latency").Quota.Seen = map[string]int64{"header": 3}
	}},
	{"concurrency.capacity_is_quota", "max_sustained_concurrency", metrics.Annotate, func(in *measure.Input) {
		tallyAt(in, "concurrency-2").Quota.Seen = map[string]int64{"header": 3}
	}},
	{"latency.decided_by_text", "error_rate", metrics.Annotate, func(in *measure.Input) { tallyAt(in, "latency").ByText = 4 }},
	{"latency.all_failed", "p95_s", metrics.Suppress, func(in *measure.Input) { answers(in, failing(10)...) }},
	{"latency.p99_below_100", "p99_s", metrics.Suppress, func(in *measure.Input) {
		answers(in, append(repeat(99, good), failing(1)...)...)
	}},
	{"latency.under_20", "p95_s", metrics.Annotate, func(in *measure.Input) { answers(in, append(repeat(19, good), failing(1)...)...) }},
	{"latency.no_upper_bound", "p99_s", metrics.Annotate, func(in *measure.Input) {
		answers(in, append(repeat(200, good), failing(1)...)...)
	}},
	{"latency.censored_timeouts", "p95_s", metrics.Annotate, func(in *measure.Input) {
		answers(in, append(repeat(400, good), repeat(40, func(int) metrics.Exchange { return bad(metrics.Timeout) })...)...)
	}},
	{"latency.rate_unknown", "achieved_rate_rps", metrics.Suppress, func(in *measure.Input) { tallyAt(in, "latency").Window.SpanUS = 0 }},
	{"latency.rate_not_sustained", "p95_s", metrics.Annotate, func(in *measure.Input) { tallyAt(in, "latency").Window.Dropped = 1 }},

	{"cost.no_usage", "cost_per_request", metrics.Inapplicable, func(in *measure.Input) {
		answers(in, repeat(50, func(i int) metrics.Exchange { x := good(i); x.Usage = false; return x })...)
	}},
	{"cost.no_price", "cost_per_request", metrics.Suppress, func(in *measure.Input) { in.Prices = nil }},
	{"cost.constant_prompt", "bloat_share", metrics.Suppress, func(in *measure.Input) {
		answers(in, repeat(50, func(i int) metrics.Exchange { x := good(i); x.TokensIn = 2000; return x })...)
	}},
	{"cost.cache_ignored", "cost_per_request", metrics.Annotate, func(in *measure.Input) { tallyAt(in, "latency").CachedIn = 100 }},

	{"concurrency.did_not_run", "max_sustained_concurrency", metrics.Suppress, func(in *measure.Input) {
		for _, level := range []string{"1", "2", "4"} {
			drop(in, "concurrency-"+level)
		}
	}},
	{"concurrency.degraded", "max_sustained_concurrency", metrics.Suppress, func(in *measure.Input) {
		for _, st := range in.Summary.OfProbe("concurrency") {
			st.Gang = lossy(false, st.Level, 0)
		}
	}},
	{"concurrency.degraded", "max_sustained_concurrency", metrics.Suppress, func(in *measure.Input) {
		in.Summary.Stage("concurrency-1").Gang = lossy(false, 1, 0)
		*in.Summary.Stage("concurrency-2") = *levelStage(2, 40)
	}},
	{"concurrency.degraded_levels", "levels", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("concurrency-4").Gang = lossy(false, 4, 3) }},
	{"concurrency.start_skew", "peak_throughput_rps", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("concurrency-4").Gang = apart(200 * time.Millisecond) }},
	{"concurrency.generator_withheld", "levels", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("concurrency-4").Withheld = withheldAgents() }},
	{"concurrency.ceiling", "max_sustained_concurrency", metrics.Annotate, func(in *measure.Input) {
		*in.Summary.Stage("concurrency-4") = *levelStage(4, 1)
	}},
	{"concurrency.stopped_early", "max_sustained_concurrency", metrics.Annotate, func(in *measure.Input) { in.Spec.Concurrency = 16 }},
	{"concurrency.no_steady_state", "peak_throughput_rps", metrics.Suppress, func(in *measure.Input) {
		for _, st := range in.Summary.OfProbe("concurrency") {
			st.Tally.Window.Completed = 2
		}
		tallyAt(in, "concurrency-1").Window.Workers = 2
	}},
	{"concurrency.unsteady_levels", "levels", metrics.Annotate, func(in *measure.Input) { tallyAt(in, "concurrency-4").Window.Completed = 11 }},
	{"concurrency.generator_saturated", "levels", metrics.Annotate, func(in *measure.Input) {
		in.Summary.Stage("concurrency-4").Generator = wire.Generator{Saturated: true, Reason: "lag"}
	}},
	{"concurrency.level_short_of_callers", "levels", metrics.Annotate, func(in *measure.Input) { tallyAt(in, "concurrency-4").Window.Workers = 3 }},
	{"concurrency.undecided_levels", "max_sustained_concurrency", metrics.Annotate, func(in *measure.Input) {
		*in.Summary.Stage("concurrency-2") = *levelStage(2, 7)
	}},
	{"concurrency.thin_knee", "latency_knee_at", metrics.Annotate, func(in *measure.Input) {
		in.Summary.Stage("concurrency-1").Tally = tallyOf(repeat(19, good)...)
	}},

	{"contract.real_args_unused", "", metrics.Annotate, func(in *measure.Input) { in.Spec.Tool = "other" }},
	{"contract.real_args_partial", "", metrics.Annotate, func(in *measure.Input) {
		st := contractStage()
		st.Name, st.Contract.Tool = "contract-list", "list"
		in.Summary.Stages = append(in.Summary.Stages, st)
	}},
	{"contract.tool_coverage", "", metrics.Annotate, func(in *measure.Input) {
		in.Survey.Tools = append(in.Survey.Tools, wire.Tool{Name: "list"})
	}},
	{"contract.no_tools", "crash_rate", metrics.Inapplicable, func(in *measure.Input) {
		in.Survey.Tools = nil
		drop(in, "contract-lookup")
	}},
	{"contract.no_case", "crash_rate", metrics.Suppress, func(in *measure.Input) { cases(in).Cases = nil }},
	{"contract.no_case", "accepted_invalid", metrics.Suppress, func(in *measure.Input) { drop(in, "contract-lookup") }},
	{"contract.session_dead", "crash_rate", metrics.Suppress, func(in *measure.Input) { cases(in).Controls = map[string]int64{"undelivered": 4} }},
	{"contract.flaky_controls", "crash_rate", metrics.Suppress, func(in *measure.Input) {
		cases(in).Controls = map[string]int64{"ok": 3, "undelivered": 1}
	}},
	{"contract.liveness_unknown", "crash_rate", metrics.Annotate, func(in *measure.Input) {
		cases(in).Cases[0].Outcome, cases(in).Cases[0].Delivered = metrics.Connection, false
	}},
	{"contract.thin_evidence", "accepted_invalid", metrics.Suppress, func(in *measure.Input) {
		cases(in).Controls = map[string]int64{"ok": 1, "undelivered": 3}
		for i := range 3 {
			cases(in).Cases[i].Outcome, cases(in).Cases[i].Delivered = metrics.Timeout, false
		}
	}},
	{"contract.nothing_forbidden", "accepted_invalid", metrics.Suppress, func(in *measure.Input) {
		for i := range cases(in).Cases {
			cases(in).Cases[i].Forbidden = false
		}
	}},
	{"contract.rejections_without_reason", "accepted_invalid", metrics.Annotate, func(in *measure.Input) { cases(in).Cases[1].Message = "" }},
	{"contract.decided_by_text", "accepted_invalid", metrics.Annotate, func(in *measure.Input) { cases(in).Cases[1].ByText = true }},
	{"contract.cases_rate_limited", "accepted_invalid", metrics.Annotate, func(in *measure.Input) { cases(in).Cases[1].Outcome = metrics.RateLimited }},
	{"contract.unattributable_cases", "accepted_invalid", metrics.Annotate, func(in *measure.Input) { cases(in).Cases[1].ControlOK = false }},
	{"contract.extra_key_unscored", "accepted_invalid", metrics.Annotate, func(in *measure.Input) { cases(in).Cases[2].ControlOK = false }},
	{"contract.low_strictness", "accepted_invalid", metrics.Annotate, func(in *measure.Input) {
		cases(in).Cases[0].Forbidden, cases(in).Cases[1].Forbidden = false, false
	}},
	{"contract.case_volume", "", metrics.Annotate, func(in *measure.Input) {
		cases(in).Cases = slices.Repeat(cases(in).Cases, 5)
	}},
	{"contract.cases_capped", "", metrics.Annotate, func(in *measure.Input) { cases(in).LeftOut = 7 }},

	{"fault.degraded", "degraded_p95_s", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("degradation").Gang = lossy(true, 1000, 750) }},
	{"fault.degraded", "recovery_rate", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("recovery").Gang = lossy(false, 4, 3) }},
	{"fault.generator_withheld", "degraded_p95_s", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("degradation").Withheld = withheldAgents() }},
	{"behavior.degraded", "recovery_rate", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("recovery").Gang = lossy(false, 4, 3) }},
	{"fault.none_injected", "recovery_rate", metrics.Suppress, func(in *measure.Input) {
		behaviorOf(in).Faults, tallyAt(in, "degradation").Faults = nil, nil
	}},
	{"fault.backoff_spent", "recovery_rate", metrics.Annotate, func(in *measure.Input) {
		in.Spec.BackoffBudget = 30 * time.Second
		behaviorOf(in).BackoffUnwaited = 3
	}},
	{"fault.nothing_disrupted", "recovery_rate", metrics.Suppress, func(in *measure.Input) {
		recoveryOf(in, many(20, func(op uint64) *metrics.Trajectory { return trajectory(op, 1, metrics.OK, "") })...)
		tallyAt(in, "degradation").Faults = map[string]int64{"timeout": 1}
	}},
	{"fault.quota_left_out", "recovery_rate", metrics.Annotate, func(in *measure.Input) { behaviorOf(in).QuotaOps = 3 }},
	{"behavior.quota_left_out", "recovery_rate", metrics.Annotate, func(in *measure.Input) { behaviorOf(in).QuotaOps = 3 }},
	{"behavior.nothing_disrupted", "recovery_rate", metrics.Suppress, func(in *measure.Input) {
		recoveryOf(in, many(20, func(op uint64) *metrics.Trajectory { return trajectory(op, 1, metrics.OK, "") })...)
	}},
	{"behavior.few_disrupted", "recovery_rate", metrics.Annotate, func(in *measure.Input) {
		recoveryOf(in, many(9, func(op uint64) *metrics.Trajectory { return trajectory(op, 2, metrics.OK, "timeout") })...)
	}},
	{"behavior.interval_spans_floor", "recovery_rate", metrics.Annotate, func(in *measure.Input) {
		recoveryOf(in, many(40, func(op uint64) *metrics.Trajectory { return trajectory(op, 2, metrics.OK, "timeout") })...)
	}},
	{"behavior.no_fault_phase", "duplicate_mutations", metrics.Inapplicable, func(in *measure.Input) { in.Spec.Phases = []string{"baseline", "behavior"} }},
	{"behavior.did_not_run", "recovery_rate", metrics.Suppress, func(in *measure.Input) { drop(in, "recovery") }},
	{"behavior.nothing_completed", "retry_amplification", metrics.Suppress, func(in *measure.Input) {
		recoveryOf(in, many(20, func(op uint64) *metrics.Trajectory { return trajectory(op, 3, metrics.Timeout, "timeout") })...)
	}},
	{"behavior.baseline_all_failed", "recovery_rate", metrics.Suppress, func(in *measure.Input) { answers(in, failing(10)...) }},
	{"behavior.own_retry_loop", "retry_amplification", metrics.Suppress, func(in *measure.Input) { in.Survey.OwnRetries = false }},
	{"behavior.no_clean_attempt", "survivability", metrics.Suppress, func(in *measure.Input) {
		recoveryOf(in, many(20, func(op uint64) *metrics.Trajectory { return trajectory(op, 3, metrics.Timeout, "timeout") })...)
	}},
	{"behavior.ideal_unknown", "recovery_ideal", metrics.Suppress, func(in *measure.Input) { in.Plan = nil }},
	{"behavior.oracle_absent", "duplicate_mutations", metrics.Suppress, func(in *measure.Input) { in.Spec.VerifyTool = "" }},
	{"behavior.oracle_unattributed", "duplicate_mutations", metrics.Suppress, func(in *measure.Input) { in.Spec.ToolArgs = []byte(`{"id":"7"}`) }},
	{"behavior.oracle_stale", "duplicate_mutations", metrics.Suppress, func(in *measure.Input) {
		in.Summary.Stage("oracle-before").Oracle.Effects = map[uint64]int64{401: 1}
	}},
	{"behavior.oracle_stale", "lost_effects", metrics.Suppress, func(in *measure.Input) {
		in.Summary.Stages = append(in.Summary.Stages, &merge.Stage{Name: "oracle-stale", Probe: "fault",
			Oracle: &wire.OracleResult{Status: "ok", Effects: map[uint64]int64{401: 1}}})
	}},
	{"behavior.oracle_failed", "duplicate_mutations", metrics.Suppress, func(in *measure.Input) { in.Summary.Stage("oracle-after").Oracle.Status = "failed" }},
	{"behavior.no_opportunity", "duplicate_mutations", metrics.Annotate, func(in *measure.Input) {
		for i := range behaviorOf(in).Kept {
			behaviorOf(in).Kept[i].Invocations[0].Executed = metrics.No
		}
	}},
	{"behavior.foreign_writes", "duplicate_mutations", metrics.Annotate, func(in *measure.Input) { in.Summary.Stage("oracle-after").Oracle.Entries += 2 }},
	{"behavior.trajectories_cut", "duplicate_opportunities", metrics.Annotate, func(in *measure.Input) {
		behaviorOf(in).Kept = behaviorOf(in).Kept[:30]
	}},
}

// always holds in a world without flaws: the count of effects has a scope.
var always = []string{"behavior.window_scope"}

func TestConditionsFlipNumbers(t *testing.T) {
	for _, row := range conditions {
		t.Run(row.id, func(t *testing.T) {
			probe := row.id[:strings.Index(row.id, ".")]
			before := byName(measure.Probes(*world()))[probe].Metrics[row.metric]
			if slices.Contains(before.Caveats, row.id) || row.metric != "" && before.Value == nil && row.metric != "latency_knee_at" {
				t.Fatalf("before: %+v, want a value without this caveat", before)
			}
			in := world()
			row.bring(in)
			probes, caveats := measure.Probes(*in)
			at := slices.IndexFunc(caveats, func(c metrics.Caveat) bool { return c.ID == row.id })
			if at < 0 {
				t.Fatalf("no caveat; there are %v", ids(caveats))
			}
			if c := caveats[at]; c.Effect != row.effect || c.Probe != probe || c.Reason == "" {
				t.Errorf("caveat %+v, want effect %s of %s", c, row.effect, probe)
			}
			if row.metric == "" {
				if caveats[at].Scope != metrics.ScopeProbe || len(caveats[at].Metrics) > 0 {
					t.Errorf("caveat %+v, want one about the whole probe", caveats[at])
				}
				return
			}
			after := byName(probes, nil)[probe].Metrics[row.metric]
			if !slices.Contains(after.Caveats, row.id) {
				t.Errorf("metric does not name its caveat: %+v", after)
			}
			if withheld := row.effect != metrics.Annotate; withheld && (after.Value != nil || after.Interval != nil) {
				t.Errorf("still shows %v %v", after.Value, after.Interval)
			} else if !withheld && after.Value == nil && row.metric != "latency_knee_at" {
				t.Errorf("annotated value is gone")
			}
			if back := byName(measure.Probes(*world()))[probe].Metrics[row.metric]; back.Value == nil && before.Value != nil {
				t.Errorf("the number did not come back")
			}
		})
	}
}

func ids(caveats []metrics.Caveat) []string {
	var out []string
	for _, c := range caveats {
		out = append(out, c.ID)
	}
	return out
}

func TestWorldIsUnqualified(t *testing.T) {
	_, caveats := measure.Probes(*world())
	for _, c := range caveats {
		if !slices.Contains(always, c.ID) {
			t.Errorf("%s: %s", c.ID, c.Reason)
		}
	}
}

// TestEveryCaveatHasACondition reads the constructors: one without a row above
// could withhold a number unseen.
func TestEveryCaveatHasACondition(t *testing.T) {
	files, err := filepath.Glob("caveat*.go")
	if err != nil {
		t.Fatal(err)
	}
	constructor := regexp.MustCompile(`(?:suppress|annotate|inapplicable)\("([a-z0-9_.]+)"`)
	found := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range constructor.FindAllSubmatch(src, -1) {
			found++
			id := string(m[1])
			known := slices.ContainsFunc(always, func(s string) bool { return strings.HasSuffix(s, "."+id) })
			for _, row := range conditions {
				_, name, _ := strings.Cut(row.id, ".")
				known = known || name == id || strings.HasPrefix(name, strings.TrimSuffix(id, ".")+".")
			}
			if !known {
				t.Errorf("%s: caveat %q has no condition in the table", file, id)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d constructors, the search is broken", found)
	}
}
