package policy

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// TestScoreCurve holds the decay at its corners, for both directions.
func TestScoreCurve(t *testing.T) {
	tests := []struct {
		key             string
		limit, observed float64
		want            float64
	}{
		{"p95_latency_ms", 5000, 400, 100},
		{"p95_latency_ms", 5000, 5000, 100},
		{"p95_latency_ms", 5000, 6000, 80},
		{"p95_latency_ms", 5000, 7500, 50},
		{"p95_latency_ms", 5000, 10000, 0},
		{"p95_latency_ms", 5000, 44000, 0},
		{"error_rate_max", 0, 0, 100},
		{"error_rate_max", 0, 0.001, 0},
		{"recovery_rate_min", 0.9, 1, 100},
		{"recovery_rate_min", 0.9, 0.9, 100},
		{"recovery_rate_min", 0.9, 0.72, 80},
		{"recovery_rate_min", 0.9, 0, 0},
		{"recovery_rate_min", 0, 0, 100},
		{"duplicate_mutation_max", 0, 1, 0},
		{"contract_invalid_accepted_max", 2, 3, 50},
	}
	for _, tt := range tests {
		got := byKey(t, tt.key).score(tt.observed, tt.limit)
		if math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: score of %g against %g = %g, want %g", tt.key, tt.observed, tt.limit, got, tt.want)
		}
	}
}

func byKey(t testing.TB, key string) threshold {
	t.Helper()
	for _, th := range thresholds {
		if th.key == key {
			return th
		}
	}
	t.Fatalf("no threshold %s", key)
	return threshold{}
}

const statusPolicy = "thresholds: {p95_latency_ms: 500, error_rate_max: 0.05, cost_per_request_max: 0.1, contract_crash_rate_max: 0, contract_invalid_accepted_max: 0, recovery_rate_min: 0.9, retry_amplification_max: 2, duplicate_mutation_max: 0}\n"

// statusTests hold the decision of every kind of check at its boundaries.
var statusTests = []struct {
	name          string
	probe, metric string
	m             metrics.Measured
	want, point   result.Status
}{
	{"LatencyBelow", "latency", "p95_s", within(0.4, 0.3, 0.5, 100), result.Pass, result.Pass},
	{"LatencyHighEndJustAbove", "latency", "p95_s", within(0.4, 0.3, 0.501, 100), result.Unproven, result.Pass},
	{"LatencyAtLimit", "latency", "p95_s", within(0.5, 0.3, 0.6, 100), result.Unproven, result.Pass},
	{"LatencyAboveLowEndAtLimit", "latency", "p95_s", within(0.6, 0.5, 0.7, 100), result.Undecided, result.Fail},
	{"LatencyExcluded", "latency", "p95_s", within(0.6, 0.501, 0.7, 100), result.Fail, result.Fail},
	{"LatencyNoIntervalMet", "latency", "p95_s", of(0.5, 10), result.Pass, result.Pass},
	{"LatencyNoIntervalMissed", "latency", "p95_s", of(0.501, 10), result.Fail, result.Fail},
	{"LatencyNoUpperEnd", "latency", "p95_s", within(0.4, 0.3, math.Inf(1), 20), result.Unproven, result.Pass},
	{"LatencyNoUpperEndExcluded", "latency", "p95_s", within(0.7, 0.6, math.Inf(1), 20), result.Fail, result.Fail},
	{"LatencyBrokenInterval", "latency", "p95_s", within(0.6, 0.9, 0.1, 20), result.Fail, result.Fail},
	{"LatencyIntervalBesideValue", "latency", "p95_s", within(0.4, 0.6, 0.7, 20), result.Unproven, result.Pass},

	{"ErrorsNone20", "latency", "error_rate", of(0.0, 20), result.Unproven, result.Pass},
	{"ErrorsNone71", "latency", "error_rate", of(0.0, 71), result.Unproven, result.Pass},
	{"ErrorsNone72", "latency", "error_rate", of(0.0, 72), result.Pass, result.Pass},
	{"Errors2Of20", "latency", "error_rate", of(0.1, 20), result.Undecided, result.Fail},
	{"Errors10Of100", "latency", "error_rate", of(0.1, 100), result.Undecided, result.Fail},
	{"Errors100Of1000", "latency", "error_rate", of(0.1, 1000), result.Fail, result.Fail},
	{"ErrorsClustered", "latency", "error_rate", within(0.1, 0.04, 0.2, 1000), result.Undecided, result.Fail},
	{"ErrorsWilsonTooShort", "latency", "error_rate", within(0.1, 0.09, 0.11, 20), result.Undecided, result.Fail},
	{"ErrorsNoDenominator", "latency", "error_rate", of(0.1, 0), result.Fail, result.Fail},
	{"ErrorsNoFraction", "latency", "error_rate", of(0.123, 10), result.Fail, result.Fail},
	{"ErrorsAll", "latency", "error_rate", of(1.0, 5), result.Fail, result.Fail},

	{"CrashNone", "contract", "crash_rate", of(0.0, 15), result.Pass, result.Pass},
	{"CrashOne", "contract", "crash_rate", of(1.0/15, 15), result.Fail, result.Fail},
	{"CrashNoCases", "contract", "crash_rate", of(0.0, 0), result.Unproven, result.Pass},
	{"AcceptedNone", "contract", "accepted_invalid", of(int64(0), 9), result.Pass, result.Pass},
	{"AcceptedOne", "contract", "accepted_invalid", of(int64(1), 9), result.Fail, result.Fail},
	{"DuplicatesNone", "behavior", "duplicate_mutations", of(int64(0), 4), result.Pass, result.Pass},
	{"DuplicatesNoneOfNone", "behavior", "duplicate_mutations", of(int64(0), 0), result.Unproven, result.Pass},
	{"DuplicatesOne", "behavior", "duplicate_mutations", of(int64(1), 4), result.Fail, result.Fail},

	{"RecoveredAll35", "behavior", "recovery_rate", of(1.0, 35), result.Unproven, result.Pass},
	{"RecoveredAll36", "behavior", "recovery_rate", of(1.0, 36), result.Pass, result.Pass},
	{"Recovered3Of4", "behavior", "recovery_rate", of(0.75, 4), result.Undecided, result.Fail},
	{"Recovered4Of21", "behavior", "recovery_rate", of(4.0/21, 21), result.Fail, result.Fail},
	{"AmplificationMet", "behavior", "retry_amplification", within(1.8, 1.7, 1.9, 50), result.Pass, result.Pass},
	{"AmplificationUndecided", "behavior", "retry_amplification", within(2.1, 1.9, 2.3, 50), result.Undecided, result.Fail},

	{"CostBoolean", "cost", "cost_per_request", of(true, 9), result.NA, result.NA},
	{"CostNil", "cost", "cost_per_request", of(nil, 0), result.NA, result.NA},
	{"CostNaN", "cost", "cost_per_request", of(math.NaN(), 9), result.NA, result.NA},
	{"CostInf", "cost", "cost_per_request", of(math.Inf(1), 9), result.NA, result.NA},
	{"CostNegativeZero", "cost", "cost_per_request", of(math.Copysign(0, -1), 9), result.Pass, result.Pass},
}

func TestStatus(t *testing.T) {
	keys := map[string]string{}
	for _, th := range thresholds {
		keys[th.probe+"."+th.metric] = th.key
	}
	for _, tt := range statusTests {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Probes: []result.Probe{probe(tt.probe, values{tt.metric: tt.m})}}
			got := find(t, Evaluate(parse(t, statusPolicy), in), keys[tt.probe+"."+tt.metric])
			if got.Status != tt.want {
				t.Errorf("status = %s, want %s (%s)", got.Status, tt.want, got.Reason)
			}
			if (got.Observed == nil) != (tt.want == result.NA) || (got.Score == nil) != (got.Observed == nil) {
				t.Errorf("observed %v, score %v with status %s", got.Observed, got.Score, got.Status)
			}
			byPoint := find(t, Evaluate(parse(t, statusPolicy+"decision: point\n"), in), got.Key)
			if byPoint.Status != tt.point {
				t.Errorf("by point = %s, want %s", byPoint.Status, tt.point)
			}
			if diff := cmp.Diff(got.Score, byPoint.Score); diff != "" {
				t.Errorf("the decision changed the score:\n%s", diff)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("cannot be written: %v", err)
			}
			if got.N != tt.m.N && tt.want != result.NA {
				t.Errorf("n = %d, want %d", got.N, tt.m.N)
			}
		})
	}
}

// TestRecoveryLimit: the floor replaces the policy's value, the ideal of the
// drawn schedule lowers it, and only the first when points decide.
func TestRecoveryLimit(t *testing.T) {
	tests := []struct {
		name                string
		rate                metrics.Measured
		floor, ideal        any
		want                result.Status
		limit, pointLimit   float64
		source, pointSource string
	}{
		{"Literal", of(0.75, 4), nil, nil, result.Undecided, 0.9, 0.9, "policy", "policy"},
		{"Floor", of(0.75, 4), 0.96, nil, result.Undecided, 0.96, 0.96, "recovery_floor", "recovery_floor"},
		{"FloorZero", of(0.0, 4), 0.0, nil, result.Pass, 0, 0, "recovery_floor", "recovery_floor"},
		{"IdealBelowFloor", of(0.75, 4), 0.96, 0.75, result.Unproven, 0.75, 0.96, "recovery_ideal", "recovery_floor"},
		{"IdealAboveFloor", of(0.95, 20), 0.96, 1.0, result.Undecided, 0.96, 0.96, "recovery_floor", "recovery_floor"},
		{"IdealWithoutFloor", of(0.75, 4), nil, 0.75, result.Unproven, 0.75, 0.9, "recovery_ideal", "policy"},
		{"FlawlessProven", of(0.95, 200), 0.96, 0.95, result.Pass, 0.95, 0.96, "recovery_ideal", "recovery_floor"},
		{"LosesHalf", of(0.5, 40), 0.96, 0.95, result.Fail, 0.95, 0.96, "recovery_ideal", "recovery_floor"},
		{"IdealIsNoFraction", of(0.95, 200), 0.96, 0.9333, result.Unproven, 0.9333, 0.96, "recovery_ideal", "recovery_floor"},
		{"BetterThanIdeal", of(0.95, 200), 0.90, 0.92, result.Pass, 0.90, 0.90, "recovery_floor", "recovery_floor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Probes: []result.Probe{probe("behavior", values{
				"recovery_rate": tt.rate, "recovery_floor": of(tt.floor, 0), "recovery_ideal": of(tt.ideal, tt.rate.N)})}}
			p := parse(t, "thresholds: {recovery_rate_min: 0.9}\n")
			got := find(t, Evaluate(p, in), "recovery_rate_min")
			if got.Status != tt.want || got.Limit != tt.limit || got.LimitSource != tt.source {
				t.Errorf("got %s against %g from %s, want %s against %g from %s", got.Status, got.Limit, got.LimitSource, tt.want, tt.limit, tt.source)
			}
			p.Decision = ByPoint
			got = find(t, Evaluate(p, in), "recovery_rate_min")
			if got.Limit != tt.pointLimit || got.LimitSource != tt.pointSource {
				t.Errorf("by point against %g from %s, want %g from %s", got.Limit, got.LimitSource, tt.pointLimit, tt.pointSource)
			}
		})
	}
}

// TestCrashRateAboveZero: with a limit that allows some crashes the rate is a
// proportion like any other.
func TestCrashRateAboveZero(t *testing.T) {
	p := parse(t, "thresholds: {contract_crash_rate_max: 0.2}\n")
	for _, tt := range []struct {
		rate metrics.Measured
		want result.Status
	}{{of(0.0, 15), result.Unproven}, {of(0.0, 17), result.Pass}, {of(0.4, 15), result.Undecided}, {of(0.6, 15), result.Fail}} {
		in := Input{Probes: []result.Probe{probe("contract", values{"crash_rate": tt.rate})}}
		if got := find(t, Evaluate(p, in), "contract_crash_rate_max"); got.Status != tt.want {
			t.Errorf("%v of %d = %s, want %s (%s)", tt.rate.Value, tt.rate.N, got.Status, tt.want, got.Reason)
		}
	}
}

// TestIdealOfOtherOperations proves nothing about these.
func TestIdealOfOtherOperations(t *testing.T) {
	in := Input{Probes: []result.Probe{probe("behavior", values{"recovery_rate": of(0.95, 200), "recovery_floor": of(0.96, 0), "recovery_ideal": of(0.95, 100)})}}
	if got := find(t, Evaluate(Default(), in), "recovery_rate_min"); got.Status != result.Unproven {
		t.Errorf("status = %s (%s)", got.Status, got.Reason)
	}
}

func TestReasons(t *testing.T) {
	in := flawless(40)
	in = set(in, "latency", "error_rate", of(0.075, 40))
	in = set(in, "latency", "p95_s", within(0.4, 0.3, math.Inf(1), 20))
	in = set(in, "latency", "p99_s", metrics.Measured{N: 40, Caveats: []string{"latency.p99_below_100"}})
	in = set(in, "behavior", "recovery_rate", of(0.95, 200))
	in = set(in, "behavior", "recovery_ideal", of(0.95, 200))
	in = set(in, "behavior", "duplicate_mutations", of(nil, 0))
	in = set(in, "behavior", "retry_amplification", of(nil, 0))
	in = set(in, "cost", "cost_per_request", of(nil, 0))
	in.Caveats = []metrics.Caveat{
		{ID: "behavior.thin", Probe: "behavior", Metrics: []string{"retry_amplification"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate, Reason: "qualifies, takes nothing away"},
		{ID: "cost.no_price", Probe: "cost", Scope: metrics.ScopeProbe, Effect: metrics.Suppress, Reason: "no price is known."},
		{ID: "behavior.oracle_absent", Probe: "behavior", Metrics: []string{"duplicate_mutations"}, Scope: metrics.ScopeMetric, Effect: metrics.Inapplicable, Reason: "nobody read\nthe state back."},
		{ID: "latency.p99_thin", Probe: "latency", Metrics: []string{"p99_s"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate, Reason: "not this one"},
		{ID: "latency.p99_below_100", Probe: "latency", Metrics: []string{"p99_s"}, Scope: metrics.ScopeMetric, Effect: metrics.Suppress, Reason: "40 successes carry no p99.", Remedy: "--requests 100"},
	}
	want := map[string]string{
		"p95_latency_ms":          "p95 latency 0.40s, at most 5.00s: met, not proven (95% interval from 0.30s, no upper end at n = 20 successful calls)",
		"p99_latency_ms":          "not measured: 40 successes carry no p99. Remedy: --requests 100",
		"error_rate_max":          "error rate 7.5%, at most 5.0%: missed, not proven (95% interval 1.6% to 20.4%, n = 40 calls)",
		"contract_crash_rate_max": "contract crash rate 0.0%, at most 0.0%: met (n = 15 cases)",
		"recovery_rate_min":       "recovery rate 95.0%, at least 95.0% by recovery_ideal: met, proven (190 of 190 recoverable operations, 95% interval 98.1% to 100.0%, at least 90.0% by policy)",
		"retry_amplification_max": "not measured: the behavior probe reported no retry amplification",
		"cost_per_request_max":    "not measured: no price is known.",
		"duplicate_mutation_max":  "not measured: nobody read the state back.",
	}
	out := Evaluate(Default(), in)
	for key, reason := range want {
		if got := find(t, out, key).Reason; got != reason {
			t.Errorf("%s:\n got %s\nwant %s", key, got, reason)
		}
	}
}

// TestNeeds: the estimate is the n at which the same proportion settles.
func TestNeeds(t *testing.T) {
	tests := []struct {
		name, probe, metric string
		m                   metrics.Measured
		want                *Need
	}{
		{"UndecidedErrors", "latency", "error_rate", of(0.1, 20), &Need{"error_rate_max", result.Undecided, "calls", 20, 110, 220}},
		{"UnprovenErrors", "latency", "error_rate", of(0.0, 20), &Need{"error_rate_max", result.Unproven, "calls", 20, 72, 150}},
		{"OnTheLimit", "latency", "error_rate", of(0.05, 20), &Need{"error_rate_max", result.Unproven, "calls", 20, 0, 0}},
		{"TooClose", "latency", "error_rate", of(0.050001, 1000000), &Need{"error_rate_max", result.Undecided, "calls", 1000000, 0, 0}},
		{"Settled", "latency", "error_rate", of(0.0, 72), nil},
		{"Latency", "latency", "p95_s", within(6.0, 3, 9, 100), &Need{"p95_latency_ms", result.Undecided, "successful calls", 100, 900, 360}},
		{"LatencyOpen", "latency", "p95_s", within(4.0, 3, math.Inf(1), 20), &Need{"p95_latency_ms", result.Unproven, "successful calls", 20, 0, 0}},
		{"NoCases", "contract", "crash_rate", of(0.0, 0), &Need{"contract_crash_rate_max", result.Unproven, "cases", 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Requests: 40, Probes: []result.Probe{probe(tt.probe, values{tt.metric: tt.m})}}
			var got *Need
			if needs := Evaluate(Default(), in).Needs; len(needs) > 0 {
				got = &needs[0]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// Following the advice settles the check.
	if got := find(t, Evaluate(Default(), set(flawless(20), "latency", "error_rate", of(0.1, 180))), "error_rate_max"); got.Status != result.Fail {
		t.Errorf("18 of 180 = %s", got.Status)
	}
}

func TestNeedOfFlawlessRecovery(t *testing.T) {
	in := set(flawless(20), "behavior", "recovery_rate", of(0.75, 4))
	in = set(in, "behavior", "recovery_ideal", of(0.75, 4))
	out := Evaluate(Default(), in)
	for _, need := range out.Needs {
		if need.Key == "recovery_rate_min" {
			// 36 recoverable operations of 3 in 4 disrupted, 4 disrupted in 20 requests.
			if diff := cmp.Diff(Need{"recovery_rate_min", result.Unproven, "disrupted operations", 4, 48, 240}, need); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("no need for recovery in %v; %s", out.Needs, strings.Join(out.Verdict.Reasons, "; "))
}
