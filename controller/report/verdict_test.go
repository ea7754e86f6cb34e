package report

import (
	"strings"
	"testing"

	"ordeal/controller/result"
)

func TestVerdict(t *testing.T) {
	checks := func(status ...result.Status) []result.Check {
		keys := []string{"p95_latency_ms", "error_rate_max", "recovery_rate_min", "duplicate_mutation_max", "contract_crash_rate_max", "contract_invalid_accepted_max"}
		var out []result.Check
		for i, s := range status {
			out = append(out, result.Check{Key: keys[i], Status: s})
		}
		return out
	}
	yes, no := ptr(true), ptr(false)
	for _, tt := range []struct {
		name    string
		verdict result.Verdict
		checks  []result.Check
		partial bool
		want    string // in 80 columns
	}{
		{"Pass", result.Verdict{Passed: yes, Score: ptr(97.5), PassScore: 75}, checks(result.Pass), false, "PASS: score 97.5, pass score 75."},
		{"PassUnproven", result.Verdict{Passed: yes, Score: ptr(100.0), PassScore: 75}, checks(result.Pass, result.Unproven, result.Unproven), false,
			"PASS (unproven: error rate, recovery rate): score 100, pass score 75."},
		{"FailChecks", result.Verdict{Passed: no, Score: ptr(80.7), PassScore: 75}, checks(result.Fail, result.Fail), false, "FAIL: score 80.7 meets 75, but failed: p95 latency, error rate."},
		{"FailMany", result.Verdict{Passed: no, Score: ptr(9.0), PassScore: 75}, checks(result.Fail, result.Fail, result.Fail, result.Fail, result.Fail, result.Fail), false,
			"FAIL: score 9 below 75, failed: p95 latency, error rate and 4 more."},
		{"FailScore", result.Verdict{Passed: no, Score: ptr(74.96), PassScore: 75}, checks(result.Pass), false, "FAIL: score 74.9 is below the pass score 75."},
		{"FailOther", result.Verdict{Passed: no, Score: ptr(90.0), PassScore: 75, Reasons: []string{"something else."}}, checks(result.Pass), false, "FAIL: something else."},
		{"Undecided", result.Verdict{Score: ptr(90.0), PassScore: 75, Reasons: []string{"undecided: more requests needed"}}, checks(result.Pass, result.Undecided), false, "NO VERDICT: the evidence does not decide error rate."},
		{"Strict", result.Verdict{Score: ptr(90.0), PassScore: 75, Reasons: []string{"strict: met, but not proven"}}, checks(result.Unproven), false, "NO VERDICT: the evidence does not decide p95 latency."},
		{"Coverage", result.Verdict{Score: ptr(90.0), Reasons: []string{"no verdict: 15 of 85 policy points measured; over half needed", "for a verdict measure more of: cost", "undecided: x"}}, checks(result.Undecided), false, "NO VERDICT: 15 of 85 policy points measured; over half needed."},
		{"NoReason", result.Verdict{Score: ptr(90.0)}, nil, false, "NO VERDICT: too little was measured."},
		{"NoScore", result.Verdict{}, nil, false, "NO SCORE: no threshold could be evaluated."},
		{"Partial", result.Verdict{}, nil, true, "NO SCORE: no threshold could be evaluated. Partial run."},
		{"PartialLong", result.Verdict{Reasons: []string{strings.Repeat("because ", 20)}}, nil, true, "NO SCORE: because because because because because because becaus... Partial run."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := &result.Document{Verdict: tt.verdict, Checks: tt.checks, Run: result.Run{Partial: tt.partial}}
			if got := verdictLine(read(doc), MaxWidth); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if whole := Verdict(doc); strings.ContainsAny(whole, "\n\r") || strings.Contains(whole, "...") {
				t.Errorf("the one line is %q", whole)
			}
		})
	}
}

func TestGaps(t *testing.T) {
	for _, tt := range []struct {
		name string
		rows []result.Dimension
		want string
	}{
		{"MostLostFirst", []result.Dimension{{Dimension: "latency", Weight: 20, Points: ptr(14.02)}, {Dimension: "contract", Weight: 15, Points: ptr(7.5)}, {Dimension: "behavior", Weight: 35, Points: ptr(34.0)}},
			"Biggest gaps: contract (7.5/15), latency (14/20)."},
		{"UnmeasuredIsNoGap", []result.Dimension{{Dimension: "cost", Weight: 15}, {Dimension: "latency", Weight: 20, Points: ptr(20.0)}}, "Biggest gaps: none."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gapsLine(read(&result.Document{Breakdown: tt.rows, Verdict: result.Verdict{Score: ptr(1.0)}})); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
