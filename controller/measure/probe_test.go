package measure_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

func shown(p result.Probe, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		switch v := p.Metrics[name].Value.(type) {
		case float64:
			out[name] = fmt.Sprintf("%.4g", v)
		default:
			out[name] = fmt.Sprint(v)
		}
	}
	return out
}

func wantShown(t *testing.T, p result.Probe, want map[string]string) {
	t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	if diff := cmp.Diff(want, shown(p, names...)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", p.Name, diff)
	}
}

func findingOf(p result.Probe, id string) *result.Finding {
	if i := slices.IndexFunc(p.Findings, func(f result.Finding) bool { return f.ID == id }); i >= 0 {
		return &p.Findings[i]
	}
	return nil
}

func probesOf(in *measure.Input) map[string]result.Probe { return byName(measure.Probes(*in)) }

func TestQuotaLeavesReliability(t *testing.T) {
	in := world()
	limited := bad(metrics.RateLimited)
	limited.Quota, limited.QuotaLimit, limited.QuotaWindow, limited.RetryAfter = "http_status", 100, time.Minute, 2*time.Second
	answers(in, slices.Concat(repeat(90, good), repeat(100, func(int) metrics.Exchange { return limited }), failing(10))...)
	tallyAt(in, "latency").Quota.WaitedUS, tallyAt(in, "latency").Quota.Waits = 5_000_000, 3
	p := probesOf(in)["latency"]
	wantShown(t, p, map[string]string{
		"error_rate": "0.1", "error_rate_raw": "0.55", "rate_limited": "100", "requests": "200", "failures": "110",
		"quota_detected": "true", "quota_limit": "100", "quota_window_s": "60", "quota_retry_after_s": "2", "quota_backoff_s": "5",
	})
	if n := p.Metrics["error_rate"].N; n != 100 {
		t.Errorf("error_rate over %d attempts, want the 100 that were not refused for quota", n)
	}
	if f := findingOf(p, "latency.quota"); f == nil || f.Evidence != "100 http_status" {
		t.Errorf("finding %+v", f)
	}
}

func TestTimeoutsDoNotMakeATargetFaster(t *testing.T) {
	in := world()
	in.Spec.Rate = 0
	answers(in, append(repeat(90, good), repeat(10, func(int) metrics.Exchange { return bad(metrics.Timeout) })...)...)
	p := probesOf(in)["latency"]
	wantShown(t, p, map[string]string{"p95_incl_timeouts_s": "30", "timeouts": "10", "p95_s": "0.1116"})
	if iv := p.Metrics["p95_s"].Interval; iv == nil || iv.Hi > 0.1122 || iv.Lo < 0.1 {
		t.Errorf("interval of p95 %+v", iv)
	}
}

// TestOpenIntervalEndsAtWhatCanBeObserved: twenty successes bound p95 from below
// only.
func TestOpenIntervalEndsAtWhatCanBeObserved(t *testing.T) {
	for _, row := range []struct {
		name    string
		rate    float64
		virtual bool
		want    float64
	}{{"ClosedLoop", 0, false, 30}, {"OpenLoop", 10, false, math.Inf(1)}, {"VirtualClock", 0, true, math.Inf(1)}} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			in.Spec.Rate, in.Survey.Virtual = row.rate, row.virtual
			answers(in, repeat(20, good)...)
			m := probesOf(in)["latency"].Metrics["p95_s"]
			if m.Interval == nil || m.Interval.Hi != row.want || !slices.Contains(m.Caveats, "latency.no_upper_bound") {
				t.Errorf("p95 %+v, want an interval up to %v and its caveat", m, row.want)
			}
		})
	}
}

func TestOpenLoop(t *testing.T) {
	in := world()
	tally := metrics.NewTally()
	for i := range 100 {
		x := good(i)
		late := time.Duration(0)
		if i >= 80 {
			late = 5 * time.Second
		}
		tally.Add(&x, late)
	}
	tally.Window = metrics.Window{Scheduled: 120, Sent: 100, Dropped: 20, SpanUS: 12_000_000}
	in.Summary.Stage("latency").Tally = tally
	p := probesOf(in)["latency"]
	wantShown(t, p, map[string]string{
		"requested_rate_rps": "10", "achieved_rate_rps": "8.333", "dropped": "20", "dropped_rate": "0.1667",
		"lateness_p50_s": "0", "lateness_p95_s": "5", "p95_s": "5.113", "service_p95_s": "0.1129", "p50_s": "0.1067",
	})
	if findingOf(p, "latency.rate_not_sustained") == nil {
		t.Error("no finding about the rate")
	}
}

func TestSaturationIsDecidedByInterval(t *testing.T) {
	for _, row := range []struct {
		name               string
		failed             []int // of 100 at 1, 2, 4, 8 callers
		saturation, point  string
		sustained, highest string
	}{
		{"None", []int{0, 1, 2, 5}, "<nil>", "<nil>", "8", "0.05"},
		{"Clear", []int{0, 0, 30, 60}, "4", "4", "2", "0.6"},
		{"PointOnly", []int{0, 0, 7, 5}, "<nil>", "4", "8", "0.07"},        // 7 of 100 may be 5 %
		{"LuckAtALowLevel", []int{0, 12, 1, 0}, "<nil>", "2", "8", "0.12"}, // load cannot make a target better
		{"SustainedStaysBelow", []int{0, 20, 20, 4}, "2", "2", "1", "0.2"}, // the clean level above does not count
		{"BrokenAtOnce", []int{50, 50, 50, 50}, "1", "1", "0", "0.5"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			in.Spec.Concurrency, in.Summary = 8, &merge.Summary{}
			for i, failed := range row.failed {
				in.Summary.Stages = append(in.Summary.Stages, levelStage(1<<i, failed))
			}
			p := probesOf(in)["concurrency"]
			wantShown(t, p, map[string]string{"saturation_point": row.saturation, "point_saturation": row.point,
				"max_sustained_concurrency": row.sustained, "max_error_rate": row.highest})
		})
	}
}

func TestGoodputIsMeasuredInTheSteadyWindow(t *testing.T) {
	in := world()
	in.Summary = &merge.Summary{Stages: []*merge.Stage{levelStage(1, 0), levelStage(2, 0), levelStage(4, 0)}}
	tallyAt(in, "concurrency-2").Window = metrics.Window{Workers: 2, Completed: 100, Succeeded: 90, BusyUS: 10_000_000}
	tallyAt(in, "concurrency-4").Window = metrics.Window{Workers: 4, Completed: 11, Succeeded: 11, BusyUS: 100}
	p := probesOf(in)["concurrency"]
	levels, ok := p.Metrics["levels"].Value.([]measure.Level)
	if !ok || len(levels) != 3 {
		t.Fatalf("levels %v", p.Metrics["levels"].Value)
	}
	if got := *levels[1].ThroughputRPS; got != 18 { // 2 callers, 90 successes in 10 s of their time
		t.Errorf("goodput %v, want 18/s", got)
	}
	if levels[2].ThroughputRPS != nil || levels[2].Steady || levels[2].Note == "" {
		t.Errorf("an unsteady level has goodput: %+v", levels[2])
	}
	wantShown(t, p, map[string]string{"peak_throughput_rps": "18", "peak_throughput_at": "2"})
}

func TestFateOfACase(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		name string
		c    wire.CaseResult
		want string
	}{
		{"Accepted", wire.CaseResult{Delivered: true}, "accepted"},
		{"Rejected", wire.CaseResult{Delivered: true, Outcome: metrics.ProtocolError}, "rejected"},
		{"Exit", wire.CaseResult{Outcome: metrics.Connection, Alive: &yes, Exit: "signal: killed"}, "crashed"},
		{"Gone", wire.CaseResult{Outcome: metrics.Connection, Alive: &no}, "crashed"},
		{"SessionLost", wire.CaseResult{Outcome: metrics.Connection, Alive: &yes, Reconnect: &yes}, "crashed"},
		{"Hang", wire.CaseResult{Outcome: metrics.Timeout, Alive: &yes}, "unanswered"},
		{"NobodyLooked", wire.CaseResult{Outcome: metrics.Timeout}, "crashed"},
		{"AnsweredThenDied", wire.CaseResult{Delivered: true, Outcome: metrics.ToolError, Alive: &yes, Exit: "exit status 1"}, "crashed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			row.c.Kind, row.c.Reference = "wrong_type", true
			cases(in).Cases = []wire.CaseResult{row.c}
			p := probesOf(in)["contract"]
			got, ok := p.Metrics["cases"].Value.([]measure.Case)
			if !ok || len(got) != 1 || got[0].Fate != row.want {
				t.Errorf("cases %+v, want %s", got, row.want)
			}
			wantShown(t, p, map[string]string{"crashes": map[bool]string{true: "1", false: "0"}[row.want == "crashed"]})
		})
	}
}

func TestViolationsCarryTheShortestReproducer(t *testing.T) {
	in := world()
	for i := range 2 {
		c := &cases(in).Cases[i]
		c.Outcome, c.Payload = metrics.OK, []byte(fmt.Sprintf(`{"id":%s}`, []string{"12345", "null"}[i]))
	}
	p := probesOf(in)["contract"]
	wantShown(t, p, map[string]string{"accepted_invalid": "2", "accepted_invalid_rate": "0.6667"})
	f := findingOf(p, "contract.accepted_invalid")
	if f == nil || f.Severity != result.Critical || f.Evidence != `tools/call {"name":"lookup","arguments":{"id":null}}` {
		t.Errorf("finding %+v", f)
	}
}

// TestOptionalFieldsCanBeViolated: a tool that requires nothing still declares.
func TestOptionalFieldsCanBeViolated(t *testing.T) {
	in := world()
	in.Survey.Tools[0].Required = 0
	cases(in).Cases[0].Outcome = metrics.OK
	wantShown(t, probesOf(in)["contract"], map[string]string{"accepted_invalid": "1"})
}

func TestEffects(t *testing.T) {
	for _, row := range []struct {
		name  string
		bring func(after *wire.OracleResult)
		want  map[string]string
	}{
		{"Clean", func(*wire.OracleResult) {}, map[string]string{"duplicate_mutations": "0", "lost_effects": "0", "effects_without_acknowledged_delivery": "0", "unattributed_effects": "0"}},
		{"Duplicate", func(r *wire.OracleResult) { r.Effects[401] = 3; r.Entries += 2 }, map[string]string{"duplicate_mutations": "2", "lost_effects": "0"}},
		{"DuplicateAndLostDoNotCancel", func(r *wire.OracleResult) { r.Effects[401] = 2; delete(r.Effects, 500) }, map[string]string{"duplicate_mutations": "1", "lost_effects": "1"}},
		{"EffectOfAFailure", func(r *wire.OracleResult) { r.Effects[402] = 1; r.Entries++ }, map[string]string{"duplicate_mutations": "0", "lost_effects": "0", "effects_without_acknowledged_delivery": "1"}},
		{"EffectOfAFailureHidesNoLoss", func(r *wire.OracleResult) { r.Effects[402] = 1; delete(r.Effects, 500) }, map[string]string{"duplicate_mutations": "0", "lost_effects": "1"}},
		{"Foreign", func(r *wire.OracleResult) { r.Entries += 4 }, map[string]string{"duplicate_mutations": "0", "unattributed_effects": "4"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			row.bring(in.Summary.Stage("oracle-after").Oracle)
			row.want["effect_oracle_status"], row.want["duplicate_opportunities"] = "ok", "1"
			wantShown(t, probesOf(in)["behavior"], row.want)
		})
	}
}

func TestSurvivabilityAndIdeal(t *testing.T) {
	in := world()
	b := behaviorOf(in)
	b.CleanAttempts, b.CleanFailed = 400, 40
	p := probesOf(in)["behavior"]
	wantShown(t, p, map[string]string{"survivability": "0.9", "recovery_floor": "0.96", "clean_failed": "40"})
	drawn, err := schedule.Build("7", []schedule.Rule{{ID: "call/recovery", Kinds: []schedule.Kind{schedule.Timeout, schedule.Malformed}, RatePPB: 200_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	ideal := drawn.Replay(401, 802, 2)
	want, _ := ideal.RecoveryRate()
	if m := p.Metrics["recovery_ideal"]; m.Value != want || m.N != ideal.Disrupted || m.N < 50 {
		t.Errorf("recovery_ideal %+v, want %v of %d disrupted operations", m, want, ideal.Disrupted)
	}
	if iv := p.Metrics["survivability"].Interval; iv == nil || iv.Lo > 0.87 || iv.Lo < 0.86 {
		t.Errorf("interval %+v", iv)
	}
}

func TestLoopsAndBudgetsAreApart(t *testing.T) {
	in := world()
	p := probesOf(in)["behavior"]
	wantShown(t, p, map[string]string{"loops_detected": "0", "exhausted_budgets": "20"})
	if findingOf(p, "behavior.loops") != nil {
		t.Errorf("spent retries were called a loop: %+v", p.Findings)
	}
	behaviorOf(in).Loops = 2
	p = probesOf(in)["behavior"]
	wantShown(t, p, map[string]string{"loops_detected": "2", "exhausted_budgets": "20"})
	if findingOf(p, "behavior.loops") == nil {
		t.Errorf("findings %+v", p.Findings)
	}
}

// What the injector did is not charged to the target: an operation whose every
// attempt was faulted is no critical finding.
func TestUnrecoveredByDrawIsNoFailureOfTheTarget(t *testing.T) {
	in := world()
	b := behaviorOf(in)
	b.CleanFailed = 0
	p := probesOf(in)["behavior"]
	if f := findingOf(p, "behavior.unrecovered_by_draw"); f == nil || f.Severity != result.Info {
		t.Errorf("findings %+v, want unrecovered_by_draw as info", p.Findings)
	}
	b.CleanFailed = 1
	p = probesOf(in)["behavior"]
	if f := findingOf(p, "behavior.unrecovered"); f == nil || f.Severity != result.Critical {
		t.Errorf("findings %+v, want unrecovered as critical", p.Findings)
	}
}

func TestCost(t *testing.T) {
	in := world()
	answers(in, repeat(100, func(i int) metrics.Exchange { x := good(i); x.TokensIn = int64(2000 + i%2*400); return x })...)
	p := probesOf(in)["cost"]
	wantShown(t, p, map[string]string{
		"cost_per_request": "0.0027", "cost_per_1k_requests": "2.7", "cost_per_1m_requests": "2700", "pricing_source": "table",
		"static_prefix_tokens": "2000", "bloat_share": "0.9091", "bloat_detected": "true", "cacheable_savings_per_request": "0.0018", "io_ratio": "22",
	})
	iv := p.Metrics["cost_per_request"].Interval
	if iv == nil || iv.Lo > 0.00267 || iv.Lo < 0.00265 || iv.Hi < 0.00273 {
		t.Errorf("interval %+v", iv)
	}
	in.Spec.PriceIn, in.Spec.PriceOut = 2, 2
	wantShown(t, probesOf(in)["cost"], map[string]string{"pricing_source": "override", "cost_per_request": "0.0046"})
}

func TestShortPromptsAreNoBloat(t *testing.T) {
	for _, row := range []struct {
		name       string
		long, step int64
		want       string
	}{{"Short", 1000, 20, "false"}, {"MostlyVariable", 1100, 2000, "false"}, {"Long", 1100, 20, "true"}} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			answers(in, repeat(100, func(i int) metrics.Exchange {
				x := good(i)
				x.TokensIn = row.long + row.step*int64(min(i, 1))
				return x
			})...)
			wantShown(t, probesOf(in)["cost"], map[string]string{"bloat_detected": row.want})
		})
	}
}

func TestErrorRateUnderFaultCoversBothPasses(t *testing.T) {
	in := world()
	in.Summary.Stage("degradation").Tally = tallyOf(append(repeat(90, good), failing(10)...)...)
	m := probesOf(in)["fault"].Metrics["error_rate_under_fault"]
	if m.Value != 90./561 || m.N != 561 { // 80 of 461 attempts of the recovery pass, 10 of 100 of the other
		t.Errorf("got %v of %d", m.Value, m.N)
	}
}

// TestOwnCasesDoNotRaiseStrictness: they break a rule by construction.
func TestOwnCasesDoNotRaiseStrictness(t *testing.T) {
	in := world()
	own := cases(in).Cases[0]
	own.Kind, own.Reference = "enum_outsider", false
	cases(in).Cases = append(cases(in).Cases, own, own)
	p := probesOf(in)["contract"]
	wantShown(t, p, map[string]string{"schema_strictness": "0.75", "cases_run": "6",
		"reference_cases": "map[accepted:0 accepted_invalid:0 cases_run:4 crashed:0 rejected:4 unanswered:0]"})
}

func TestRateLimitedCaseProvesNothing(t *testing.T) {
	in := world()
	cases(in).Cases[1].Outcome = metrics.RateLimited
	p := probesOf(in)["contract"]
	if m := p.Metrics["accepted_invalid"]; m.N != 2 {
		t.Errorf("accepted_invalid over %d cases, want the 2 that were answered for themselves", m.N)
	}
	if !strings.Contains(p.Summary, "1 of the rejections for quota") {
		t.Errorf("summary %q hides that a rejection was for quota", p.Summary)
	}
}
