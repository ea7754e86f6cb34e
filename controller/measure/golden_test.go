package measure_test

import (
	"fmt"
	"testing"

	"ordeal/controller/measure"
	"ordeal/controller/result"

	"github.com/google/go-cmp/cmp"
)

// published scans of RateMyAgent 1.2 to 1.9, drawn anew by their recipe.
var published = []struct {
	scan scan
	want map[string]string
}{
	{scan{degradedScan, 40, 16, 1, 2, 0.3}, map[string]string{
		"latency.p50_s %.5f":                       "3.35544",
		"latency.p95_s %.5f":                       "7.98832",
		"latency.p99_s %v":                         "<nil>",
		"latency.observed_p99_s %.5f":              "8.47661",
		"latency.error_rate_raw %.3f":              "0.000",
		"cost.mean_input_tokens %.3f":              "647.075",
		"cost.mean_output_tokens %.0f":             "120",
		"cost.cost_per_request %v":                 "<nil>",
		"concurrency.peak_littles_law_rps %.4f":    "4.4154",
		"concurrency.max_sustained_concurrency %v": "16",
		"concurrency.saturation_point %v":          "<nil>",
		"contract.cases_run %v":                    "15",
		"contract.accepted %v":                     "15",
		"contract.rejected %v":                     "0",
		"contract.crash_rate %.3f":                 "0.000",
		"contract.accepted_invalid %v":             "9",
		"fault.calls %v":                           "93",
		"fault.injected %v":                        "20",
		"fault.injected_by_kind %v":                "map[connection_refused:4 malformed:2 rate_limit:5 server_error:6 timeout:3]",
		"fault.injection_rate %.2f":                "0.22",
		"fault.degraded_error_rate %.2f":           "0.20",
		"fault.degraded_p95_s %.5f":                "8.02706",
		"fault.retry_amplification %.2f":           "1.30",
		"behavior.disrupted %v":                    "10",
		"behavior.recovered %v":                    "10",
		"behavior.recovery_rate %.3f":              "1.000",
		"behavior.recovery_floor %.3f":             "0.910",
		"behavior.caller_retry_amplification %.2f": "1.30",
		"behavior.retry_amplification %v":          "<nil>",
		"behavior.duplicate_mutations %v":          "<nil>",
		"behavior.duplicate_deliveries %v":         "0",
		"behavior.survivability %.3f":              "1.000",
	}},
	{scan{failingScan, 40, 16, 1, 2, 0.3}, map[string]string{
		"latency.p50_s %.5f":                       "12.53972",
		"latency.p95_s %.3f":                       "44.558",
		"latency.observed_p99_s %.2f":              "46.44",
		"latency.successes %v":                     "27",
		"latency.error_rate_raw %.3f":              "0.325",
		"latency.errors_by_kind %v":                "map[rate_limit:4 server_error:5 timeout:4]",
		"latency.tail_ratio %.1f":                  "3.7",
		"latency.tool_call_overhead_s %.2f":        "1.00",
		"cost.mean_input_tokens %.0f":              "652",
		"concurrency.levels_tested %v":             "[1 2 4 8]",
		"concurrency.point_saturation %v":          "1",
		"concurrency.max_sustained_concurrency %v": "0",
		"concurrency.peak_littles_law_rps %.1f":    "0.2",
		"contract.cases_run %v":                    "15",
		"contract.crashes %v":                      "2",
		"contract.crash_rate %.3f":                 "0.133",
		"contract.accepted_invalid %v":             "6",
		"contract.rejected %v":                     "6",
		"contract.accepted %v":                     "7",
		"contract.control_calls %v":                "15",
		"contract.control_undelivered %v":          "0",
		"contract.outcome_by_case %v":              "map[empty_string:crashed missing_required:accepted null_required:accepted very_long_string:crashed wrong_type:accepted]",
		"contract.required_fields_probed %v":       "[echo.query search.query summarize.query]",
		"fault.calls %v":                           "119",
		"fault.injected %v":                        "27",
		"fault.injected_by_kind %v":                "map[connection_refused:9 malformed:3 rate_limit:7 server_error:4 timeout:4]",
		"fault.injection_rate %.3f":                "0.227",
		"fault.degraded_error_rate %.3f":           "0.475",
		"fault.degraded_p95_s %.2f":                "44.56",
		"behavior.attempts %v":                     "78",
		"behavior.disrupted %v":                    "21",
		"behavior.recovered %v":                    "4",
		"behavior.recovery_rate %.3f":              "0.190",
		"behavior.caller_retry_amplification %.2f": "1.95",
		"behavior.exhausted_budgets %v":            "17",
		"behavior.loops_detected %v":               "0",
		"behavior.mean_recovery_latency_s %.1f":    "19.2",
		"behavior.final_status_counts %v":          "map[failed:17 success:23]",
	}},
	{scan{healthyScan, 20, 5, 1, 2, 0.2}, map[string]string{
		"latency.p50_s %.6f":                       "0.337635",
		"latency.p95_s %.6f":                       "0.442310",
		"fault.calls %v":                           "44",
		"fault.injected_by_kind %v":                "map[malformed:2 server_error:2 timeout:1]",
		"behavior.disrupted %v":                    "2",
		"behavior.recovered %v":                    "2",
		"behavior.caller_retry_amplification %.2f": "1.15",
		"behavior.recovery_floor %.2f":             "0.96",
		"contract.accepted_invalid %v":             "9",
	}},
	{scan{bloatedScan, 20, 5, 1, 2, 0.2}, map[string]string{
		"cost.mean_input_tokens %.1f": "3937.8",
		"cost.min_input_tokens %v":    "3901",
		"cost.bloat_share %.2f":       "0.99",
		"cost.bloat_detected %v":      "true",
	}},
}

func TestPublishedScans(t *testing.T) {
	for _, row := range published {
		t.Run(row.scan.name, func(t *testing.T) {
			probes := measured(t, &row.scan)
			got := map[string]string{}
			for key := range row.want {
				var probe, metric, format string
				if _, err := fmt.Sscanf(key, "%s %s", &metric, &format); err != nil {
					t.Fatalf("row %q: %v", key, err)
				}
				for i, r := range metric {
					if r == '.' {
						probe, metric = metric[:i], metric[i+1:]
						break
					}
				}
				got[key] = fmt.Sprintf(format, probes[probe].Metrics[metric].Value)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("published numbers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPublishedRamp compares the error rates of the failing scan's levels.
func TestPublishedRamp(t *testing.T) {
	levels, ok := measured(t, &published[1].scan)["concurrency"].Metrics["levels"].Value.([]measure.Level)
	if !ok {
		t.Fatal("no levels")
	}
	got := map[int]string{}
	for _, l := range levels {
		got[l.Concurrency] = fmt.Sprintf("%.1f%% p95 %.2fs %.1f/s", 100**l.ErrorRateRaw, *l.P95S, *l.LittlesLawRPS)
	}
	want := map[int]string{
		1: "35.0% p95 44.56s 0.0/s", 2: "35.0% p95 42.75s 0.1/s",
		4: "40.0% p95 32.79s 0.2/s", 8: "50.0% p95 42.55s 0.2/s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

func TestPublishedSummaries(t *testing.T) {
	got := map[string]string{}
	for name, p := range measured(t, &published[0].scan) {
		got[name] = p.Summary
	}
	want := map[string]string{
		"latency":     "p50 3.36s, p95 7.99s, p99 - of 40 requests, 0.0% failed",
		"cost":        "647 tokens in and 120 out per request; no price known: give --price-in and --price-out",
		"concurrency": "16 callers sustained, no saturation up to 16",
		"contract":    "15 malformed calls to 3 tools: 0 rejected, 15 accepted, 0 crashed",
		"fault":       "20 faults in 93 calls; under faults p95 8.03s, 20% failed",
		"behavior":    "10 of 10 disrupted operations recovered (100%) within 2 retries, 1.30 calls per operation; retries and faults are ours: the phase falls only if the server also fails",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summaries (-want +got):\n%s", diff)
	}
}

func measured(t *testing.T, sc *scan) map[string]result.Probe {
	t.Helper()
	return byName(measure.Probes(measure.Input{Spec: sc.spec(), Survey: sc.survey(), Summary: sc.summary()}))
}
