package report

import (
	"io"
	"strings"
	"testing"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// A row without value and reason tells nothing, and the cost probe reads the
// calls of the latency probe: neither is printed.
func TestReportLeavesOutEmptyAndRepeatedRows(t *testing.T) {
	doc := degraded()
	doc.Probes = []result.Probe{
		{Name: "latency", Phase: "baseline", Applicable: true, Metrics: values{
			"requests": num(40, "count", 40), "successes": num(39, "count", 40), "quota_limit": {Unit: "count", N: 40},
			"p99_s": withheld("s", "latency.p99_below_100"), "errors_by_kind": {N: 1, Value: map[string]any{"timeout": 1}}}},
		{Name: "cost", Phase: "baseline", Applicable: true, Metrics: values{
			"requests": num(40, "count", 40), "successes": num(38, "count", 40), "mean_input_tokens": num(20, "tokens", 40),
			"errors_by_kind": {N: 1, Value: map[string]any{"timeout": 1}}}},
	}
	text := string(rendered(t, func(w io.Writer) error { return Markdown(w, doc) }))
	latency, cost, found := strings.Cut(text, "### Cost")
	cost, _, _ = strings.Cut(cost, "## Phase 2")
	if !found || strings.Contains(latency, "quota limit") || !strings.Contains(latency, "| requests | 40 |") || !strings.Contains(latency, "| p99 | - ~ |") {
		t.Errorf("latency:\n%s", latency)
	}
	if strings.Contains(cost, "| requests |") || strings.Contains(cost, "errors by kind") || !strings.Contains(cost, "| successes | 38 |") {
		t.Errorf("cost:\n%s", cost)
	}
}

// The cap is told once, with the score it came from.
func TestCapIsToldOnce(t *testing.T) {
	doc := degraded()
	doc.Verdict.Score, doc.Verdict.UncappedScore = ptr(49.0), ptr(78.66)
	doc.Verdict.CapReason = "absolute check failed (contract_crash_rate_max)"
	want := "Score: 49/100  (capped from 78.6: absolute check failed\n               (contract_crash_rate_max); policy production-default)\n"
	if text := string(rendered(t, func(w io.Writer) error { return Scorecard(w, doc, ScorecardOptions{}) })); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

func TestSummaryOfWhatDoesNotApply(t *testing.T) {
	for summary, want := range map[string]string{
		"": "not applicable to this target", "the scan injects no faults": "not applicable: the scan injects no faults",
		"not measured: the target rejected the arguments": "not measured: the target rejected the arguments",
	} {
		if got := summaryText(result.Probe{Summary: summary, Metrics: map[string]metrics.Measured{}}); got != want {
			t.Errorf("%q: %q, want %q", summary, got, want)
		}
	}
}
