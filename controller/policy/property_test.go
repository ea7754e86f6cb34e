package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// drawPolicy and drawInput make anything Parse and a run can produce.
func drawPolicy(r *rand.Rand) *Policy {
	p := &Policy{Name: "drawn", Thresholds: map[string]float64{}, Weights: map[string]float64{},
		PassScore: float64(r.IntN(101)), FailCap: float64(r.IntN(101)), Decision: ByInterval, Strict: r.IntN(3) == 0}
	p.AbsoluteFailCap = p.FailCap * r.Float64()
	for _, t := range thresholds {
		if r.IntN(4) > 0 {
			p.Thresholds[t.key] = []float64{0, r.Float64(), 5, 5000 * r.Float64()}[r.IntN(4)]
		}
	}
	p.Thresholds["error_rate_max"] = r.Float64()
	for _, d := range dimensions {
		p.Weights[d] = float64(r.IntN(4))
	}
	p.Weights["latency"]++
	if r.IntN(3) == 0 {
		p.Decision, p.Strict = ByPoint, false
	}
	return p
}

func drawInput(r *rand.Rand) Input {
	in := Input{Requests: int64(r.IntN(100)), Oracle: r.IntN(8) == 0}
	byProbe := map[string]values{}
	for _, t := range thresholds {
		if byProbe[t.probe] == nil {
			byProbe[t.probe] = values{}
		}
		byProbe[t.probe][t.metric] = drawMetric(r, t)
	}
	b := byProbe["behavior"]
	if r.IntN(2) == 0 {
		b["recovery_floor"] = of(r.Float64(), 0)
	}
	if n := b["recovery_rate"].N; n > 0 && r.IntN(2) == 0 {
		b["recovery_ideal"] = of(float64(r.Int64N(n+1))/float64(n), n)
	}
	for _, name := range slices.Sorted(maps.Keys(byProbe)) {
		if r.IntN(6) > 0 {
			p := probe(name, byProbe[name])
			p.Applicable = r.IntN(10) > 0
			in.Probes = append(in.Probes, p)
		}
	}
	return in
}

func drawMetric(r *rand.Rand, t threshold) metrics.Measured {
	n := int64(r.IntN(300))
	if r.IntN(5) == 0 {
		return of(nil, n)
	}
	if t.kind == proportion && n > 0 {
		return of(float64(r.Int64N(n+1))/float64(n), n)
	}
	if t.kind == count {
		return of(r.Int64N(4), n)
	}
	v := 10 * r.Float64()
	if r.IntN(2) == 0 {
		return of(v, n)
	}
	return within(v, v*r.Float64(), v*(1+r.Float64()), n)
}

// forDraws runs a property over 1000 fixed draws.
func forDraws(t *testing.T, property func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range uint64(1000) {
		if property(t, rand.New(rand.NewPCG(seed, 7))); t.Failed() {
			t.Fatalf("first at draw %d", seed)
		}
	}
}

func TestVerdictFollowsFromChecks(t *testing.T) {
	forDraws(t, func(t *testing.T, r *rand.Rand) {
		p := drawPolicy(r)
		out := Evaluate(p, drawInput(r))
		seen := map[result.Status]int{}
		ceiling := 100.0
		for _, c := range out.Checks {
			seen[c.Status]++
			th := byKey(t, c.Key)
			if c.Status == result.NA {
				continue
			}
			missed := c.Status == result.Fail || c.Status == result.Undecided
			if missed != th.bad(*c.Observed, c.Limit) || missed && *c.Score == 100 || *c.Score < 0 || *c.Score > 100 {
				t.Errorf("%s %s: observed %g against %g scores %g", c.Key, c.Status, *c.Observed, c.Limit, *c.Score)
			}
			if c.Status == result.Fail {
				ceiling = min(ceiling, p.FailCap)
				if th.absolute {
					ceiling = min(ceiling, p.AbsoluteFailCap)
				}
			}
		}
		v := out.Verdict
		if v.Score != nil && (*v.Score < 0 || *v.Score > *v.UncappedScore || *v.UncappedScore > 100 || *v.Score > ceiling || *v.Score != min(ceiling, *v.UncappedScore)) {
			t.Errorf("score %g of %g under %g", *v.Score, *v.UncappedScore, ceiling)
		}
		if (v.CapReason != "") != (v.Score != nil && *v.Score < *v.UncappedScore) {
			t.Errorf("cap reason %q", v.CapReason)
		}
		open := seen[result.Undecided] + seen[result.Unproven]
		switch got := passed(out); {
		case got == "pass" && (seen[result.Fail]+seen[result.Undecided] > 0 || p.Strict && open > 0),
			got == "fail" && seen[result.Fail] == 0,
			got == "none" && len(v.Reasons) == 0,
			p.Decision == ByPoint && open > 0,
			len(out.Needs) != open:
			t.Errorf("%s with %v, reasons %q, %d needs", got, seen, v.Reasons, len(out.Needs))
		}
		if v.MeasuredWeight > v.GradedWeight {
			t.Errorf("measured %g of %g", v.MeasuredWeight, v.GradedWeight)
		}
		if _, err := json.Marshal(out); err != nil {
			t.Error(err)
		}
	})
}

func TestOrderOfProbesIsIrrelevant(t *testing.T) {
	forDraws(t, func(t *testing.T, r *rand.Rand) {
		p, in := drawPolicy(r), drawInput(r)
		want := Evaluate(p, in)
		r.Shuffle(len(in.Probes), func(i, j int) { in.Probes[i], in.Probes[j] = in.Probes[j], in.Probes[i] })
		if diff := cmp.Diff(want, Evaluate(p, in)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// rank orders what a worse observation may only move downwards.
func rank(t *testing.T, out Outcome, key string) (status, verdict int, score, uncapped float64) {
	t.Helper()
	status = slices.Index([]result.Status{result.Fail, result.Undecided, result.Unproven, result.Pass}, find(t, out, key).Status)
	verdict = slices.Index([]string{"fail", "none", "pass"}, passed(out))
	return status, verdict, *out.Verdict.Score, *out.Verdict.UncappedScore
}

// TestWorseIsNeverBetter worsens one metric step by step at a fixed n: neither
// the status of its check, the score nor the verdict may improve.
func TestWorseIsNeverBetter(t *testing.T) {
	worse := map[string]func(step int64) metrics.Measured{
		"p95_latency_ms":                func(i int64) metrics.Measured { v := float64(i) / 3; return within(v, v*0.8, v*1.3, 40) },
		"error_rate_max":                func(i int64) metrics.Measured { return of(float64(i)/40, 40) },
		"contract_crash_rate_max":       func(i int64) metrics.Measured { return of(float64(i)/40, 40) },
		"contract_invalid_accepted_max": func(i int64) metrics.Measured { return of(i, 40) },
		"recovery_rate_min":             func(i int64) metrics.Measured { return of(float64(40-i)/40, 40) },
		"retry_amplification_max":       func(i int64) metrics.Measured { return of(1+float64(i)/20, 40) },
		"duplicate_mutation_max":        func(i int64) metrics.Measured { return of(i, 40) },
	}
	policies := []string{"", "strict: true\n", "decision: point\n", "fail_cap: 60\nabsolute_fail_cap: 10\npass_score: 100\n"}
	for key, at := range worse {
		for i, extra := range policies {
			t.Run(fmt.Sprintf("%s/%d", key, i), func(t *testing.T) {
				p := parse(t, "thresholds: {p95_latency_ms: 5000, error_rate_max: 0.1, contract_crash_rate_max: 0.2, contract_invalid_accepted_max: 3, recovery_rate_min: 0.7, retry_amplification_max: 2, duplicate_mutation_max: 0}\n"+extra)
				th := byKey(t, key)
				eval := func(step int64) Outcome {
					in := set(flawless(400), "behavior", "recovery_ideal", of(0.95, 40))
					return Evaluate(p, set(in, th.probe, th.metric, at(step)))
				}
				status, verdict, score, uncapped := rank(t, eval(0), key)
				for step := int64(1); step <= 40; step++ {
					s, v, sc, un := rank(t, eval(step), key)
					if s > status || v > verdict || sc > score || un > uncapped {
						t.Errorf("step %d: status %d→%d, verdict %d→%d, score %g→%g, uncapped %g→%g", step, status, s, verdict, v, score, sc, uncapped, un)
					}
					status, verdict, score, uncapped = s, v, sc, un
				}
				if status != 0 || verdict != 0 {
					t.Errorf("the worst of all ends with status %d, verdict %d", status, verdict)
				}
			})
		}
	}
}

// TestAnotherFailureNeverHelps adds one failing threshold to a policy. A mean
// can rise when a near miss joins total failures, so the claim holds for a
// check that scores no better than the dimension it joins, and for the cap.
func TestAnotherFailureNeverHelps(t *testing.T) {
	tried := 0
	forDraws(t, func(t *testing.T, r *rand.Rand) {
		p, in := drawPolicy(r), drawInput(r)
		key := thresholds[r.IntN(len(thresholds))].key
		limit, has := p.Thresholds[key]
		if !has {
			limit = r.Float64()
		}
		p.Thresholds[key] = limit
		with := Evaluate(p, in)
		added := find(t, with, key)
		delete(p.Thresholds, key)
		without := Evaluate(p, in)
		if added.Status != result.Fail || without.Verdict.Score == nil {
			return
		}
		if *with.Verdict.Score > p.FailCap || passed(with) == "pass" {
			t.Errorf("%s failed, score %g with cap %g, %s", key, *with.Verdict.Score, p.FailCap, passed(with))
		}
		for _, row := range without.Breakdown {
			if row.Dimension == byKey(t, key).probe && row.Points != nil && *added.Score <= 100**row.Points/row.Weight {
				tried++
				if *with.Verdict.UncappedScore > *without.Verdict.UncappedScore+1e-9 || *with.Verdict.Score > *without.Verdict.Score+1e-9 {
					t.Errorf("%s failed and raised the score from %g to %g", key, *without.Verdict.Score, *with.Verdict.Score)
				}
			}
		}
	})
	if tried < 100 {
		t.Errorf("only %d draws had a failing check to add", tried)
	}
}
