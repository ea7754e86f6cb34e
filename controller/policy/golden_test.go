package policy

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// TestGolden recomputes three published scorecards by point decisions.
func TestGolden(t *testing.T) {
	tests := []struct {
		name   string
		probes []result.Probe
		score  float64
		points map[string]float64
		failed string
	}{
		{"degraded, 40 requests, seed 1337", []result.Probe{
			probe("latency", values{"p95_s": of(7.98832, 40), "p99_s": of(nil, 40), "error_rate": of(0.0, 40)}),
			probe("cost", values{"cost_per_request": of(nil, 40)}),
			probe("concurrency", values{"max_sustained_concurrency": of(int64(16), 5)}),
			probe("contract", values{"crash_rate": of(0.0, 15), "accepted_invalid": of(int64(9), 9)}),
			probe("behavior", values{"recovery_rate": of(1.0, 10), "recovery_floor": of(0.91, 0), "retry_amplification": of(nil, 40), "duplicate_mutations": of(nil, 0)}),
		}, 80.75, map[string]float64{"latency": 14.02, "contract": 7.5, "behavior": 35}, "p95_latency_ms contract_invalid_accepted_max"},
		{"failing, 40 requests, seed 42, duplicates counted", failing(int64(0)), 30.23,
			map[string]float64{"latency": 0, "contract": 0, "behavior": 21.16}, "p95_latency_ms error_rate_max contract_crash_rate_max contract_invalid_accepted_max recovery_rate_min"},
		{"failing, 40 requests, seed 42, duplicates withheld", failing(nil), 10.47,
			map[string]float64{"latency": 0, "contract": 0, "behavior": 7.33}, "p95_latency_ms error_rate_max contract_crash_rate_max contract_invalid_accepted_max recovery_rate_min"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			p.Decision = ByPoint
			out := Evaluate(p, Input{Probes: tt.probes})
			if got := *out.Verdict.Score; math.Abs(got-tt.score) > 0.005 || passed(out) != "fail" {
				t.Errorf("%s with %.4f, want fail with %.2f", passed(out), got, tt.score)
			}
			for _, row := range out.Breakdown {
				want, scored := tt.points[row.Dimension]
				if scored != (row.Points != nil) || scored && math.Abs(*row.Points-want) > 0.005 {
					t.Errorf("%s = %v points, want %v", row.Dimension, deref(row.Points), want)
				}
			}
			var failed []string
			for _, c := range out.Checks {
				if c.Status == result.Fail {
					failed = append(failed, c.Key)
				}
			}
			if got := strings.Join(failed, " "); got != tt.failed {
				t.Errorf("failed: %s, want %s", got, tt.failed)
			}
			if byInterval := Evaluate(Default(), Input{Probes: tt.probes}); *byInterval.Verdict.UncappedScore != *out.Verdict.UncappedScore || passed(byInterval) != "fail" {
				t.Errorf("by interval: %s with %.4f", passed(byInterval), *byInterval.Verdict.UncappedScore)
			}
		})
	}
}

func failing(duplicates any) []result.Probe {
	return []result.Probe{
		probe("latency", values{"p95_s": of(44.55827, 27), "p99_s": of(nil, 27), "error_rate": of(13.0/40, 40)}),
		probe("contract", values{"crash_rate": of(2.0/15, 15), "accepted_invalid": of(int64(6), 9)}),
		probe("behavior", values{"recovery_rate": of(4.0/21, 21), "recovery_floor": of(0.91, 0), "retry_amplification": of(nil, 40), "duplicate_mutations": metrics.Measured{Value: duplicates, N: 40}}),
	}
}

// TestPointVectors holds point decisions to results computed with RateMyAgent
// 1.9.0 from drawn policies and metrics.
func TestPointVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/point_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Policy
		Inapplicable []string
		Metrics      map[string]map[string]any
		Score        *float64
		Uncapped     *float64
		Passed       *bool
		GradedWeight float64 `json:"graded_weight"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 30 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for i, v := range vectors {
		var in Input
		for name, numbers := range v.Metrics {
			p := probe(name, values{})
			p.Applicable = !slices.Contains(v.Inapplicable, name)
			for metric, value := range numbers {
				p.Metrics[metric] = of(value, 0)
			}
			in.Probes = append(in.Probes, p)
		}
		v.Policy.Decision = ByPoint
		got := Evaluate(&v.Policy, in).Verdict
		near := cmpopts.EquateApprox(0, 1e-9)
		if diff := cmp.Diff([]any{v.Score, v.Uncapped, v.Passed, v.GradedWeight}, []any{got.Score, got.UncappedScore, got.Passed, got.GradedWeight}, near); diff != "" {
			t.Errorf("vector %d (-want +got):\n%s", i, diff)
		}
	}
}
