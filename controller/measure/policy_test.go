package measure_test

import (
	"fmt"
	"testing"

	"ordeal/controller/measure"
	"ordeal/controller/policy"
	"ordeal/controller/result"

	"github.com/google/go-cmp/cmp"
)

// TestPublishedScores judges the published scans by point, as RateMyAgent does,
// and compares composite and breakdown with what it printed.
func TestPublishedScores(t *testing.T) {
	for i, want := range []map[string]string{
		{"score": "80.75", "latency": "14.02", "cost": "-", "concurrency": "-", "contract": "7.50", "behavior": "35.00",
			"failed": "[p95_latency_ms contract_invalid_accepted_max]"},
		// duplicates are withheld since 1.3.1: 30.23 before, printed as 10/100 since.
		{"score": "10.47", "latency": "0.00", "cost": "-", "concurrency": "-", "contract": "0.00", "behavior": "7.33",
			"failed": "[p95_latency_ms error_rate_max contract_crash_rate_max contract_invalid_accepted_max recovery_rate_min]"},
	} {
		sc := &published[i].scan
		t.Run(sc.name, func(t *testing.T) {
			probes, caveats := measure.Probes(measure.Input{Spec: sc.spec(), Survey: sc.survey(), Summary: sc.summary()})
			p := policy.Default()
			p.Decision = policy.ByPoint
			out := policy.Evaluate(p, policy.Input{Probes: probes, Caveats: caveats, Requests: int64(sc.requests)})
			got := map[string]string{"score": points(out.Verdict.UncappedScore)}
			for _, d := range out.Breakdown {
				if _, asked := want[d.Dimension]; asked {
					got[d.Dimension] = points(d.Points)
				}
			}
			failed := []string{}
			for _, c := range out.Checks {
				if c.Status == result.Fail {
					failed = append(failed, c.Key)
				}
			}
			got["failed"] = fmt.Sprint(failed)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if out.Verdict.Passed == nil || *out.Verdict.Passed {
				t.Errorf("passed %v, want a fail", out.Verdict.Passed)
			}
		})
	}
}

func points(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}
