package policy

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDefault(t *testing.T) {
	got := Default()
	want := &Policy{
		Name:        "production-default",
		Description: "A tool or model endpoint that other software depends on in production.",
		Thresholds: map[string]float64{
			"p95_latency_ms": 5000, "p99_latency_ms": 10000, "error_rate_max": 0.05, "cost_per_request_max": 0.10,
			"contract_crash_rate_max": 0, "contract_invalid_accepted_max": 0,
			"recovery_rate_min": 0.90, "retry_amplification_max": 2, "duplicate_mutation_max": 0,
		},
		Weights:   map[string]float64{"latency": 20, "cost": 15, "concurrency": 15, "contract": 15, "behavior": 35},
		PassScore: 75, FailCap: 89, AbsoluteFailCap: 49, Decision: ByInterval,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
	got.Thresholds["p95_latency_ms"] = 1
	if Default().Thresholds["p95_latency_ms"] != 5000 {
		t.Error("a changed copy changed the default")
	}
}

func TestParseRateMyAgentFile(t *testing.T) {
	data, err := os.ReadFile("testdata/ratemyagent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, warnings, err := Parse("rma.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got, cmpopts.IgnoreFields(Policy{}, "Description")); diff != "" {
		t.Errorf("means something else than the default (-default +file):\n%s", diff)
	}
	if got.Description != "two lines of text" {
		t.Errorf("description = %q", got.Description)
	}
	want := []string{"rma.yaml:21: thresholds.concurrency_min has no effect: it compared the ceiling of the concurrency ramp with itself; remove it"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestParseFillsDefaults(t *testing.T) {
	got := parse(t, "thresholds: {p95_latency_ms: 1_500, error_rate_max: 1e-3}\nweights: {latency: 1}\nstrict: true\n")
	want := &Policy{Name: "unnamed", Thresholds: map[string]float64{"p95_latency_ms": 1500, "error_rate_max": 0.001},
		Weights: map[string]float64{"latency": 1}, PassScore: 75, FailCap: 89, AbsoluteFailCap: 49, Strict: true, Decision: ByInterval}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := parse(t, "thresholds: {error_rate_max: 0}\nweights: {}\n"); len(got.Weights) != 5 {
		t.Errorf("empty weights = %v, want the default", got.Weights)
	}
	aliased := parse(t, "thresholds: {p95_latency_ms: &x 700, p99_latency_ms: *x}\ndecision: point\n")
	if aliased.Thresholds["p99_latency_ms"] != 700 || aliased.Decision != ByPoint {
		t.Errorf("aliased = %+v", aliased)
	}
}

const validThresholds = "p95_latency_ms, p99_latency_ms, error_rate_max, cost_per_request_max, contract_crash_rate_max, " +
	"contract_invalid_accepted_max, recovery_rate_min, retry_amplification_max, duplicate_mutation_max"

func TestParseErrors(t *testing.T) {
	const ok = "thresholds: {error_rate_max: 0.1}\n"
	tests := []struct {
		name, yaml string
		want       []string
	}{
		{"Empty", "# nothing\n", []string{`p.yaml: the policy is empty; it needs at least a thresholds section`}},
		{"Null", "~\n", []string{`p.yaml: the policy is empty; it needs at least a thresholds section`}},
		{"Syntax", "a: b: c\n", []string{`p.yaml: not valid YAML: mapping values are not allowed in this context`}},
		{"NotAMapping", "- 1\n", []string{`p.yaml:1: a policy is a mapping of keys such as thresholds and pass_score`}},
		{"TwoDocuments", ok + "---\n" + ok, []string{`p.yaml:2: a second document begins; a policy is one document`}},
		{"NoThresholds", "name: x\n", []string{`p.yaml:1: thresholds: sets none, so nothing could be judged; valid keys: ` + validThresholds}},
		{"EmptyThresholds", "name: x\nthresholds:\n", []string{`p.yaml:2: thresholds: sets none, so nothing could be judged; valid keys: ` + validThresholds}},
		{"ThresholdList", "thresholds: [1]\n", []string{`p.yaml:1: thresholds: must be a mapping of keys to numbers`}},
		{"OnlyRetired", "thresholds:\n  concurrency_min: 4\n", []string{`p.yaml:2: thresholds: sets only concurrency_min, which is not judged any more; valid keys: ` + validThresholds}},
		{"UnknownThreshold", "thresholds:\n  p95_latency: 4\n", []string{`p.yaml:2: thresholds.p95_latency: unknown key (did you mean p95_latency_ms?); valid keys: ` + validThresholds + ", concurrency_min"}},
		{"UnknownKey", ok + "pass_mark: 4\n", []string{`p.yaml:2: pass_mark: unknown key; valid keys: name, description, thresholds, weights, pass_score, fail_cap, absolute_fail_cap, strict, decision`}},
		{"MergeKey", "thresholds:\n  <<: {error_rate_max: 1}\n", []string{`p.yaml:2: thresholds.<<: unknown key; valid keys: ` + validThresholds + ", concurrency_min"}},
		{"GivenTwice", "thresholds:\n  error_rate_max: 0.1\n  error_rate_max: 0.2\n", []string{`p.yaml:3: thresholds.error_rate_max: given twice, first in line 2`}},
		{"KeyOverTwoLines", ok + "\"a\\nb\": 1\n", []string{`p.yaml:2: "a\nb": unknown key; valid keys: name, description, thresholds, weights, pass_score, fail_cap, absolute_fail_cap, strict, decision`}},
		{"Text", "thresholds: {error_rate_max: low}\n", []string{`p.yaml:1: thresholds.error_rate_max: must be a number, got the text "low"`}},
		{"QuotedNumber", "thresholds: {error_rate_max: '0.1'}\n", []string{`p.yaml:1: thresholds.error_rate_max: must be a number, got the text "0.1"`}},
		{"Boolean", "thresholds: {error_rate_max: true}\n", []string{`p.yaml:1: thresholds.error_rate_max: must be a number, got true`}},
		{"NoValue", "thresholds: {error_rate_max: }\n", []string{`p.yaml:1: thresholds.error_rate_max: must be a number, got nothing`}},
		{"List", "thresholds: {error_rate_max: [1]}\n", []string{`p.yaml:1: thresholds.error_rate_max: must be a number, got a list`}},
		{"Negative", "thresholds: {error_rate_max: -0.1}\n", []string{`p.yaml:1: thresholds.error_rate_max: must not be negative, got -0.1`}},
		{"Infinite", "thresholds: {p99_latency_ms: .inf}\n", []string{`p.yaml:1: thresholds.p99_latency_ms: must be a finite number, got .inf; leave the key out for no limit`}},
		{"NaN", "thresholds: {p99_latency_ms: .nan}\n", []string{`p.yaml:1: thresholds.p99_latency_ms: must be a finite number, got .nan; leave the key out for no limit`}},
		{"PassScore", ok + "pass_score: 101\n", []string{`p.yaml:2: pass_score: must be between 0 and 100, got 101`}},
		{"FailCap", ok + "fail_cap: -1\n", []string{`p.yaml:2: fail_cap: must not be negative, got -1`}},
		{"CapsCrossed", ok + "fail_cap: 40\n", []string{`p.yaml:1: absolute_fail_cap: 49 is above fail_cap 40; breaking an absolute rule cannot leave a better score than missing another`}},
		{"WeightsZero", ok + "weights: {latency: 0, cost: 0.0}\n", []string{`p.yaml:2: weights: are all zero; give at least one dimension a weight`}},
		{"WeightUnknown", ok + "weights: {behaviour: 3}\n", []string{`p.yaml:2: weights.behaviour: unknown key (did you mean behavior?); valid keys: latency, cost, concurrency, contract, fault, behavior`}},
		{"WeightsScalar", ok + "weights: 3\n", []string{`p.yaml:2: weights: must be a mapping of dimensions to numbers; valid keys: latency, cost, concurrency, contract, fault, behavior`}},
		{"Strict", ok + "strict: 1\n", []string{`p.yaml:2: strict: must be true or false, got 1`}},
		{"StrictPoint", ok + "strict: true\ndecision: point\n", []string{`p.yaml:2: strict: true needs "decision: interval"; a point proves nothing`}},
		{"Decision", ok + "decision: guess\n", []string{`p.yaml:2: decision: must be interval or point, got the text "guess"`}},
		{"Name", ok + "name: {a: 1}\n", []string{`p.yaml:2: name: must be text, got a mapping`}},
		{"AllAtOnce", "pass_score: high\nthresholds: {error_rate_max: -1, retry_max: 2}\nweights: {cost: no way}\n", []string{
			`p.yaml:1: pass_score: must be a number, got the text "high"`,
			`p.yaml:2: thresholds.retry_max: unknown key; valid keys: ` + validThresholds + ", concurrency_min",
			`p.yaml:2: thresholds.error_rate_max: must not be negative, got -1`,
			`p.yaml:3: weights.cost: must be a number, got the text "no way"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, warnings, err := Parse("p.yaml", []byte(tt.yaml))
			if err == nil || p != nil || warnings != nil {
				t.Fatalf("Parse = %+v, %v, %v, want only an error", p, warnings, err)
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var problem *Problem
			if !errors.As(err, &problem) || problem.File != "p.yaml" {
				t.Errorf("error %v holds no *Problem with its file", err)
			}
		})
	}
}

func TestRows(t *testing.T) {
	rows := parse(t, "thresholds: {recovery_rate_min: 0.8, duplicate_mutation_max: 0}\n").Rows()
	if len(rows) != 9 {
		t.Fatalf("%d rows, want 9", len(rows))
	}
	want := map[string]Row{
		"p95_latency_ms":         {Key: "p95_latency_ms", Default: 5000, Direction: "max", Metric: "latency.p95_s", Unit: "ms"},
		"recovery_rate_min":      {Key: "recovery_rate_min", Value: 0.8, Set: true, Default: 0.9, Direction: "min", Metric: "behavior.recovery_rate", Unit: "rate", Derived: "behavior.recovery_floor"},
		"duplicate_mutation_max": {Key: "duplicate_mutation_max", Set: true, Direction: "max", Metric: "behavior.duplicate_mutations", Unit: "count", Absolute: true},
	}
	for _, row := range rows {
		if w, ok := want[row.Key]; ok {
			if diff := cmp.Diff(w, row); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		} else if row.Set {
			t.Errorf("%s is set", row.Key)
		}
	}
}

// FuzzParse: whatever the bytes, a policy that is accepted is one that can be
// evaluated and written, and every message is one line with the file's name.
func FuzzParse(f *testing.F) {
	f.Add(defaultYAML)
	for _, seed := range []string{"", "a: &a [*a]", "thresholds: {error_rate_max: .inf}", "? [x]\n: 1", "weights: {cost: !!float x}\nthresholds: {error_rate_max: 0x1F}",
		"thresholds: &t\n  <<: *t", "%YAML 9.9\n---\n", "thresholds: {error_rate_max: !!int 0.5}", "\xff\xfe", "thresholds: {\"a\\nb\": 1}", "strict: !!bool x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _, err := Parse("f", data)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Errorf("line %q of the error does not name the file", line)
				}
			}
			return
		}
		if len(p.Thresholds) == 0 || len(p.Weights) == 0 || p.AbsoluteFailCap > p.FailCap || p.FailCap > 100 || p.PassScore > 100 {
			t.Errorf("accepted %+v", p)
		}
		if _, err := json.Marshal(Evaluate(p, flawless(20))); err != nil {
			t.Error(err)
		}
	})
}

func parse(t testing.TB, yaml string) *Policy {
	t.Helper()
	p, _, err := Parse("p.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
