package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/result"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// told are the messages of the findings with an id.
func told(p result.Probe, id string) []string {
	var out []string
	for _, f := range p.Findings {
		if f.ID == id {
			out = append(out, f.Message)
		}
	}
	return out
}

func caveatOf(t *testing.T, in *measure.Input, id string) metrics.Caveat {
	t.Helper()
	_, caveats := measure.Probes(*in)
	i := slices.IndexFunc(caveats, func(c metrics.Caveat) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("no caveat %s", id)
	}
	return caveats[i]
}

// TestProtocolNotesBecomeFindings: noise on stdout, odd answers to
// notifications, ids of another type reach the reader, from the survey and from
// every stage, once each.
func TestProtocolNotesBecomeFindings(t *testing.T) {
	in := world()
	in.Survey.Notes = []string{"the server answered a notification with HTTP 200", "line 7 on stdout is no JSON"}
	tallyAt(in, "latency").Notes = map[string]int64{"reply id has type string, request had integer": 4, "line 12 on stdout is no JSON": 2}
	tallyAt(in, "degradation").Notes = map[string]int64{"reply id has type string, request had integer": 3}
	want := []string{
		"Protocol: reply id has type string, request had integer (seen 7 times).",
		"Protocol: line 12 on stdout is no JSON (seen 3 times).",
		"Protocol: the server answered a notification with HTTP 200.",
	}
	probes := probesOf(in)
	if diff := cmp.Diff(want, told(probes["contract"], "contract.protocol")); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if f := findingOf(probes["contract"], "contract.protocol"); f.Severity != result.Warning {
		t.Errorf("severity %s", f.Severity)
	}
	in.Spec.Probes = []string{"latency"}
	if diff := cmp.Diff(want, told(probesOf(in)["latency"], "latency.protocol")); diff != "" {
		t.Errorf("without the contract probe (-want +got):\n%s", diff)
	}
}

func TestProtocolFindingsAreBounded(t *testing.T) {
	in := world()
	for i := range 14 {
		in.Survey.Notes = append(in.Survey.Notes, fmt.Sprintf("oddity %c", 'a'+i))
	}
	got := told(probesOf(in)["contract"], "contract.protocol")
	if len(got) != 11 || got[10] != "Protocol: and 4 more." {
		t.Errorf("%d findings, the last %q", len(got), got[len(got)-1])
	}
}

// TestNoiseIsNoFinding: what is three times as slow and still fast stays a
// metric.
func TestNoiseIsNoFinding(t *testing.T) {
	for _, row := range []struct {
		name  string
		slow  time.Duration
		found bool
	}{{"Below", 49 * time.Millisecond, false}, {"Above", 51 * time.Millisecond, true}} {
		t.Run(row.name, func(t *testing.T) {
			fast := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Latency: time.Millisecond}
			slow := fast
			slow.Latency = row.slow
			in := world()
			answers(in, append(slices.Repeat([]metrics.Exchange{fast}, 370), slices.Repeat([]metrics.Exchange{slow}, 30)...)...)
			for _, st := range in.Summary.OfProbe("concurrency") {
				window := st.Tally.Window
				if st.Tally = tallyOf(slices.Repeat([]metrics.Exchange{fast}, 100)...); st.Level > 1 {
					st.Tally = tallyOf(slices.Repeat([]metrics.Exchange{slow}, 100)...)
				}
				st.Tally.Window = window
			}
			probes := probesOf(in)
			wantShown(t, probes["latency"], map[string]string{"tail_ratio": fmt.Sprint(row.slow.Milliseconds())})
			wantShown(t, probes["concurrency"], map[string]string{"latency_knee_at": "2"})
			if got := findingOf(probes["latency"], "latency.heavy_tail") != nil; got != row.found {
				t.Errorf("heavy tail found: %v", got)
			}
			want := []string(nil)
			if row.found {
				want = []string{"At 2 callers p95 is 51.0ms, more than three times the 1.0ms at 1 caller: calls queue up behind each other."}
			}
			if diff := cmp.Diff(want, told(probes["concurrency"], "concurrency.latency_knee")); diff != "" {
				t.Errorf("knee (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithheldTimesAreNotTold: the summary must not show what the table does
// not have.
func TestWithheldTimesAreNotTold(t *testing.T) {
	in := world()
	in.Summary.Stage("latency").Generator = wire.Generator{Saturated: true, Reason: "cpu"}
	p := probesOf(in)["latency"]
	if p.Metrics["p95_s"].Value != nil || !strings.HasPrefix(p.Summary, "times withheld") || findingOf(p, "latency.heavy_tail") != nil {
		t.Errorf("summary %q, p95 %v", p.Summary, p.Metrics["p95_s"].Value)
	}
}

// TestFewAnswersStillHaveAP95: shown, annotated and with an interval to decide on.
func TestFewAnswersStillHaveAP95(t *testing.T) {
	in := world()
	in.Spec.Rate = 0
	answers(in, repeat(5, good)...)
	m := probesOf(in)["latency"].Metrics["p95_s"]
	if v, ok := m.Number(); !ok || v <= 0 || m.Interval == nil || !slices.Contains(m.Caveats, "latency.under_20") {
		t.Errorf("p95 %+v", m)
	}
}

func TestUnpricedTokensApply(t *testing.T) {
	in := world()
	in.Prices, in.Spec.PriceIn, in.Spec.PriceOut = nil, 0, 0
	p := probesOf(in)["cost"]
	if !p.Applicable || !strings.HasSuffix(p.Summary, "no price known: give --price-in and --price-out") {
		t.Errorf("applicable %v, summary %q", p.Applicable, p.Summary)
	}
}

// TestRemediesName what would help, with the number it takes.
func TestRemedies(t *testing.T) {
	yes := true
	tools := func(names ...string) []wire.Tool {
		var out []wire.Tool
		for _, name := range names {
			out = append(out, wire.Tool{Name: name, ReadOnly: &yes})
		}
		return out
	}
	for _, row := range []struct {
		name, id, want string
		bring          func(*measure.Input)
	}{
		{"ToolsCapped", "contract.tool_coverage", "--contract-tools 3", func(in *measure.Input) {
			in.Spec.AllowMutating, in.Survey.Tools = false, tools("lookup", "a", "b")
		}},
		{"ToolsUnsafe", "contract.tool_coverage", "--allow-mutating against a disposable target", func(in *measure.Input) {
			in.Spec.AllowMutating, in.Survey.Tools = false, append(tools("lookup"), wire.Tool{Name: "drop"})
		}},
		{"ToolsBoth", "contract.tool_coverage", "--contract-tools 2, and --allow-mutating against a disposable target", func(in *measure.Input) {
			in.Spec.AllowMutating, in.Survey.Tools = false, append(tools("lookup", "a"), wire.Tool{Name: "drop"})
		}},
		{"ManyCases", "contract.case_volume", "", func(in *measure.Input) { cases(in).Cases = slices.Repeat(cases(in).Cases, 5) }},
		{"CasesLeftOut", "contract.cases_capped", "--contract-cases 250", func(in *measure.Input) { cases(in).Total, cases(in).LeftOut = 250, 50 }},
		{"P95Unbounded", "latency.no_upper_bound", "--requests 72", func(in *measure.Input) { answers(in, repeat(20, good)...) }},
		{"P99Unbounded", "latency.no_upper_bound", "--requests 368", func(in *measure.Input) { answers(in, repeat(200, good)...) }},
		{"HalfFails", "latency.p99_below_100", "--requests 200", func(in *measure.Input) { answers(in, append(repeat(40, good), failing(40)...)...) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := world()
			row.bring(in)
			if got := caveatOf(t, in, row.id).Remedy; got != row.want {
				t.Errorf("remedy %q, want %q", got, row.want)
			}
		})
	}
}

// TestOneIntervalPerPage: texts quote the interval a policy decides on.
func TestOneIntervalPerPage(t *testing.T) {
	in := world()
	answers(in, repeat(100, good)...)
	if c := caveatOf(t, in, "latency.zero_failures"); c.Reason != "No failure in 100 requests does not make it 0%: the 95% interval reaches up to 3.7%." {
		t.Errorf("reason %q", c.Reason)
	}
}

func TestPartialStageIsQualified(t *testing.T) {
	for _, stage := range []string{"latency", "concurrency-2", "contract-lookup", "recovery", "degradation"} {
		in := world()
		in.Summary.Stage(stage).Partial = true
		probe := in.Summary.Stage(stage).Probe
		if c := caveatOf(t, in, probe+".partial."+stage); !strings.Contains(c.Reason, "cut short by a stop") {
			t.Errorf("%s: %q", stage, c.Reason)
		}
	}
}

func TestNumbersReadAsWritten(t *testing.T) {
	in := world()
	for _, st := range in.Summary.OfProbe("concurrency") {
		st.Tally.Window = metrics.Window{Workers: 1, Completed: 46_123, Succeeded: 46_123, BusyUS: 1_000_000}
	}
	if got := told(probesOf(in)["concurrency"], "concurrency.peak_goodput"); !slices.Equal(got, []string{"The best goodput is 46100 successes/s at 1 caller."}) {
		t.Errorf("goodput %q", got)
	}
	answers(in, repeat(5, good)...)
	if c := caveatOf(t, in, "latency.p99_below_100"); !strings.Contains(c.Reason, "estimates the 83rd at best") {
		t.Errorf("reason %q", c.Reason)
	}
	in.Spec.PriceIn, in.Spec.PriceOut = 0.01, 0.01
	if got := probesOf(in)["cost"].Summary; !strings.HasSuffix(got, "$0.00000602 each, $0.01 per 1,000") {
		t.Errorf("cost summary %q", got)
	}
	in.Survey.Tools = nil
	drop(in, "contract-lookup")
	if p := probesOf(in)["contract"]; p.Applicable || p.Summary != "the target offers no tools" {
		t.Errorf("contract without tools: applicable %v, %q", p.Applicable, p.Summary)
	}
}

// TestShortPrefixIsNamed: a large fixed share that no cache would take.
func TestShortPrefixIsNamed(t *testing.T) {
	in := world()
	if got := told(probesOf(in)["cost"], "cost.nothing_notable"); len(got) != 1 || !strings.HasSuffix(got[0], "; fixed prefix of 500 tokens, below the 1024 worth caching.") {
		t.Errorf("finding %q", got)
	}
}

// TestRecoveryIsToldOnce: by behavior, unless it is left out.
func TestRecoveryIsToldOnce(t *testing.T) {
	in := world()
	if got := probesOf(in)["fault"].Summary; strings.Contains(got, "recovered") {
		t.Errorf("fault repeats behavior: %q", got)
	}
	in.Spec.Probes = []string{"fault"}
	if got := probesOf(in)["fault"].Summary; !strings.Contains(got, "20 of 40 disrupted operations recovered") {
		t.Errorf("fault alone: %q", got)
	}
}
