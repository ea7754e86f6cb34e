package policy

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// TestVerdict walks from a run that passes to every way of not passing.
func TestVerdict(t *testing.T) {
	p := "thresholds: {p95_latency_ms: 5000, error_rate_max: 0.05, contract_crash_rate_max: 0, contract_invalid_accepted_max: 0, recovery_rate_min: 0.9}\n"
	tests := []struct {
		name, extra string
		in          Input
		want        string
		score       float64
		cap         string
		reasons     []string
	}{
		{"Proven", "", flawless(400), "pass", 100, "", nil},
		{"Unproven", "", flawless(20), "pass", 100, "", []string{"unproven: met, but not proven at this sample size: error_rate_max, recovery_rate_min"}},
		{"UnprovenByPoint", "decision: point\n", flawless(20), "pass", 100, "", nil},
		{"StrictUnproven", "strict: true\n", flawless(20), "none", 100, "",
			[]string{"strict: met, but not proven: error_rate_max (20 calls measured, about 72 needed), recovery_rate_min (5 disrupted operations measured, about 36 needed: 150 requests)"}},
		{"StrictProven", "strict: true\n", flawless(400), "pass", 100, "", nil},
		{"Undecided", "", set(flawless(40), "latency", "error_rate", of(0.075, 40)), "none", 100 - 100*20*0.25/70, "",
			[]string{"undecided: more requests needed for error_rate_max (40 calls measured, about 340 needed)",
				"unproven: met, but not proven at this sample size: recovery_rate_min"}},
		{"UndecidedByPoint", "decision: point\n", set(flawless(40), "latency", "error_rate", of(0.075, 40)), "fail", 89,
			"check failed (error_rate_max)", []string{"failed: error_rate_max"}},
		{"Failed", "", set(flawless(400), "contract", "accepted_invalid", of(int64(9), 9)), "fail", 89,
			"check failed (contract_invalid_accepted_max)", []string{"failed: contract_invalid_accepted_max"}},
		{"FailedBelowPassScore", "pass_score: 95\n", set(flawless(400), "contract", "accepted_invalid", of(int64(9), 9)), "fail", 89,
			"check failed (contract_invalid_accepted_max)", []string{"failed: contract_invalid_accepted_max", "score 89.0 is below pass_score 95"}},
		{"FailedAbsolute", "", set(set(flawless(400), "contract", "crash_rate", of(0.2, 15)), "latency", "p95_s", within(9.0, 8, 10, 400)), "fail", 49,
			"absolute check failed (contract_crash_rate_max)",
			[]string{"failed: p95_latency_ms, contract_crash_rate_max", "score 49.0 is below pass_score 75"}},
		{"NamesTwoOfThree", "fail_cap: 20\nabsolute_fail_cap: 20\n", set(set(set(flawless(400), "contract", "accepted_invalid", of(int64(9), 9)), "latency", "p95_s", within(9.0, 8, 10, 400)), "latency", "error_rate", of(0.5, 400)), "fail", 20,
			"check failed (p95_latency_ms, error_rate_max)", []string{"failed: p95_latency_ms, error_rate_max, contract_invalid_accepted_max", "score 20.0 is below pass_score 75"}},
		{"BelowTheCapAlready", "fail_cap: 99\n", set(flawless(400), "contract", "accepted_invalid", of(int64(9), 9)), "fail", 100 - 100*7.5/70, "",
			[]string{"failed: contract_invalid_accepted_max"}},
		{"FailedBeatsUndecided", "", set(set(flawless(400), "contract", "accepted_invalid", of(int64(9), 9)), "latency", "error_rate", of(0.075, 40)), "fail", 100 - 100*(5+7.5)/70, "",
			[]string{"failed: contract_invalid_accepted_max", "undecided: more requests needed for error_rate_max (40 calls measured, about 340 needed: 3400 requests)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := Evaluate(parse(t, p+tt.extra), tt.in)
			v := out.Verdict
			if got := passed(out); got != tt.want {
				t.Errorf("verdict = %s, want %s", got, tt.want)
			}
			if v.Score == nil || math.Abs(*v.Score-tt.score) > 1e-9 {
				t.Errorf("score = %v, want %v", deref(v.Score), tt.score)
			}
			if v.CapReason != tt.cap {
				t.Errorf("cap reason %q, want %q", v.CapReason, tt.cap)
			}
			if diff := cmp.Diff(tt.reasons, v.Reasons, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if v.Reasons == nil || v.GradedWeight != 70 || v.MeasuredWeight != 70 {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func deref(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// TestCoverage: the verdict, not the score, needs more than half of the weight
// the policy asks about.
func TestCoverage(t *testing.T) {
	tests := []struct {
		name, policy     string
		probes           []string
		graded, measured float64
		want, reason     string
	}{
		{"All", "", []string{"latency", "cost", "contract", "behavior"}, 85, 85, "pass", ""},
		{"WithoutCost", "", []string{"latency", "contract", "behavior"}, 85, 70, "pass", ""},
		{"ContractAlone", "", []string{"contract"}, 85, 15, "none", "no verdict: 15 of 85 policy points measured; over half needed; for a verdict measure more of: latency (20 points; the probe did not run), cost (15 points; the probe did not run), behavior (35 points; the probe did not run)"},
		{"ExactlyHalf", "thresholds: {error_rate_max: 1, cost_per_request_max: 1}\nweights: {latency: 5, cost: 5}\n", []string{"latency"}, 10, 5, "none", "no verdict: 5 of 10 policy points measured; over half needed; for a verdict measure more of: cost (5 points; the probe did not run)"},
		{"JustAboveHalf", "thresholds: {error_rate_max: 1, cost_per_request_max: 1}\nweights: {latency: 5.01, cost: 5}\n", []string{"latency"}, 10.01, 5.01, "pass", ""},
		{"OneLinePolicy", "thresholds: {error_rate_max: 1}\n", []string{"latency"}, 20, 20, "pass", ""},
		{"NothingMeasured", "", nil, 85, 0, "none", "no verdict: nothing the policy gives weight to was measured"},
		{"NoWeightOnIt", "thresholds: {error_rate_max: 1}\nweights: {cost: 5}\n", []string{"latency", "cost"}, 0, 0, "none", "no verdict: nothing the policy gives weight to was measured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			if tt.policy != "" {
				p = parse(t, tt.policy)
			}
			in := flawless(400)
			for _, name := range dimensions {
				if !strings.Contains(strings.Join(tt.probes, " "), name) {
					in = without(in, name)
				}
			}
			out := Evaluate(p, in)
			v := out.Verdict
			if v.GradedWeight != tt.graded || v.MeasuredWeight != tt.measured || passed(out) != tt.want {
				t.Errorf("graded %g, measured %g, %s; want %g, %g, %s", v.GradedWeight, v.MeasuredWeight, passed(out), tt.graded, tt.measured, tt.want)
			}
			if got := strings.Join(v.Reasons, "; "); got != tt.reason {
				t.Errorf("reasons %q, want %q", got, tt.reason)
			}
			if (v.Score == nil) != (tt.measured == 0) {
				t.Errorf("score %v with measured weight %g", deref(v.Score), tt.measured)
			}
		})
	}
}

// A failed check cannot make a verdict of a run that measured too little.
func TestFailureWithoutCoverage(t *testing.T) {
	in := Input{Probes: []result.Probe{probe("contract", values{"crash_rate": of(0.5, 4)})}}
	out := Evaluate(Default(), in)
	if passed(out) != "none" || *out.Verdict.Score != 0 || len(out.Verdict.Reasons) != 4 {
		t.Errorf("%s, %+v", passed(out), out.Verdict)
	}
}

// Full points that rest on one check of several say which; a dimension without
// any says what withheld its number.
func TestNotesOfWhatIsMissing(t *testing.T) {
	note := func(in Input, dimension string) string {
		for _, row := range Evaluate(Default(), in).Breakdown {
			if row.Dimension == dimension {
				return row.Note
			}
		}
		return ""
	}
	in := Input{Probes: []result.Probe{probe("latency", values{"error_rate": of(0.0, 400)}),
		probe("cost", values{"cost_per_request": metrics.Measured{Caveats: []string{"cost.no_price"}}})},
		Caveats: []metrics.Caveat{{ID: "cost.no_price", Probe: "cost", Metrics: []string{"cost_per_request"}, Effect: metrics.Suppress,
			Reason: "No price is known.", Remedy: "--price-in and --price-out"}}}
	if got := note(in, "latency"); got != "error rate only; p95 latency, p99 latency not measured" {
		t.Errorf("latency: %q", got)
	}
	if got := note(in, "cost"); got != "No price is known. Remedy: --price-in and --price-out" {
		t.Errorf("cost: %q", got)
	}
	in.Probes[0] = probe("latency", values{"error_rate": of(0.0, 400), "p95_s": within(1.0, 0.9, 1.1, 400)})
	if got := note(in, "latency"); got != "" {
		t.Errorf("latency with two checks: %q", got)
	}
}

func TestSmallSumsKeepTheirDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.0000", 0.0000123456: "$0.0000123", 0.05: "$0.0500"} {
		if got := format(v, "$"); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}

func TestNotScored(t *testing.T) {
	inapplicable := probe("cost", values{"cost_per_request": of(0.5, 9)})
	inapplicable.Applicable = false
	broken := probe("contract", nil)
	broken.Error = "session lost\nafter 3 cases"
	in := Input{
		Probes:   []result.Probe{inapplicable, broken, probe("concurrency", nil), probe("latency", nil)},
		Selected: []string{"latency", "cost", "contract", "concurrency", "behavior"},
		Phases:   []string{"baseline"},
	}
	p := parse(t, "thresholds: {p95_latency_ms: 1, cost_per_request_max: 1, contract_crash_rate_max: 0, recovery_rate_min: 1}\n"+
		"weights: {latency: 1, cost: 1, contract: 1, concurrency: 1, behavior: 1, fault: 1}\n")
	got := map[string]string{}
	for _, row := range Evaluate(p, in).Breakdown {
		if row.Points != nil || row.Note == "" {
			t.Errorf("row %+v", row)
		}
		got[row.Dimension] = row.NotScored
	}
	want := map[string]string{"latency": "not_measured", "cost": "not_applicable", "contract": "did_not_run",
		"concurrency": "no_threshold", "behavior": "phase_excluded", "fault": "not_selected"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out := Evaluate(p, in)
	if got := find(t, out, "contract_crash_rate_max").Reason; got != "not measured: the contract probe ended early: session lost after 3 cases" {
		t.Errorf("broken probe: %s", got)
	}
	if got := find(t, out, "cost_per_request_max"); got.Status != result.NA || got.Reason != "not measured: the probe does not apply to this target" {
		t.Errorf("inapplicable probe: %+v", got)
	}
	in.Selected, in.Phases = nil, nil
	for _, row := range Evaluate(p, in).Breakdown {
		if row.Dimension == "fault" && row.NotScored != "did_not_run" {
			t.Errorf("fault = %s with everything selected", row.NotScored)
		}
	}
}

// TestOracle: an oracle that was asked for and did not answer is no pass.
func TestOracle(t *testing.T) {
	tests := []struct {
		name       string
		requested  bool
		status     any
		duplicates any
		want       string
	}{
		{"NotRequested", false, "absent", nil, "pass"},
		{"Answered", true, "ok", int64(0), "pass"},
		{"Stale", true, "stale", nil, "none"},
		{"Failed", true, "failed", nil, "none"},
		{"Unattributed", true, "unattributed", nil, "pass"},
		{"NoStatusNoNumber", true, nil, nil, "none"},
		{"NoStatusButNumber", true, nil, int64(0), "pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := set(flawless(400), "behavior", "duplicate_mutations", of(tt.duplicates, 9))
			in = set(in, "behavior", "effect_oracle_status", of(tt.status, 0))
			in.Oracle = tt.requested
			out := Evaluate(Default(), in)
			if got := passed(out); got != tt.want {
				t.Errorf("verdict = %s, want %s: %v", got, tt.want, out.Verdict.Reasons)
			}
		})
	}
	in := without(flawless(400), "behavior")
	in.Oracle = true
	if why := strings.Join(Evaluate(Default(), in).Verdict.Reasons, " "); strings.Contains(why, "read back") {
		t.Errorf("a run without behavior blames the oracle: %s", why)
	}
}

// TestNoteNamesTheWorst: a row of the breakdown explains itself by the check
// that cost most.
func TestNoteNamesTheWorst(t *testing.T) {
	in := set(flawless(400), "latency", "p95_s", within(6.0, 5.5, 6.5, 400))
	in = set(in, "latency", "error_rate", of(0.5, 400))
	in = set(in, "latency", "p99_s", within(12.0, 11, 13, 400))
	out := Evaluate(Default(), in)
	for _, row := range out.Breakdown {
		want := ""
		if row.Dimension == "latency" {
			want = find(t, out, "error_rate_max").Reason
		}
		if row.Points != nil && row.Note != want {
			t.Errorf("%s: note %q, want %q", row.Dimension, row.Note, want)
		}
	}
}
