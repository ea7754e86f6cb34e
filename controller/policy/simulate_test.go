package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ordeal/controller/result"
)

const seeds = 400

// schedule draws the faults of a recovery pass for a target that never fails
// by itself: every attempt is faulted with chance rate, an operation has up to
// retries retries. It returns the disrupted and the recovered operations.
func schedule(r *rand.Rand, requests int, rate float64, retries int) (disrupted, recovered int64) {
	for range requests {
		if r.Float64() >= rate {
			continue
		}
		disrupted++
		for range retries {
			if r.Float64() >= rate {
				recovered++
				break
			}
		}
	}
	return disrupted, recovered
}

// TestFlawlessTargetIsNotFailedByTheSeed: point decisions fail a flawless
// target in a sixth to a half of all seeds, ours in none when the ideal of the
// drawn schedule is known and in no more than an interval end's share of 2.5 %
// when it is not.
func TestFlawlessTargetIsNotFailedByTheSeed(t *testing.T) {
	tests := []struct {
		requests int
		rate     float64
	}{{20, 0.2}, {40, 0.3}, {120, 0.25}, {1000, 0.2}}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d requests at %g", tt.requests, tt.rate), func(t *testing.T) {
			byInterval, byPoint := Default(), Default()
			byPoint.Decision = ByPoint
			var withIdeal, withoutIdeal, points int
			for seed := range uint64(seeds) {
				in := flawless(int64(tt.requests))
				disrupted, recovered := schedule(rand.New(rand.NewPCG(seed, 1)), tt.requests, tt.rate, 2)
				rate, floor := of(nil, 0), of(1-tt.rate*tt.rate, 0)
				if disrupted > 0 {
					rate = of(float64(recovered)/float64(disrupted), disrupted)
				}
				in = set(set(set(in, "behavior", "recovery_rate", rate), "behavior", "recovery_floor", floor), "behavior", "recovery_ideal", rate)
				withIdeal += failures(Evaluate(byInterval, in))
				points += failures(Evaluate(byPoint, in))
				in = set(in, "behavior", "recovery_ideal", of(nil, 0))
				withoutIdeal += failures(Evaluate(byInterval, in))
			}
			t.Logf("failed of %d seeds: %d with ideal, %d without, %d by point", seeds, withIdeal, withoutIdeal, points)
			if withIdeal != 0 {
				t.Errorf("%d seeds failed a flawless target", withIdeal)
			}
			if share := float64(withoutIdeal) / seeds; share > 0.025 {
				t.Errorf("%.1f %% of seeds failed a flawless target without the ideal", 100*share)
			}
			if share := float64(points) / seeds; share < 0.1 {
				t.Errorf("point decisions fail only %.1f %%: the draws are not what they should be", 100*share)
			}
		})
	}
}

func failures(out Outcome) int {
	if p := out.Verdict.Passed; p != nil && !*p {
		return 1
	}
	return 0
}

// TestErrorRateDecisions: how often a true rate gets which status against a
// limit of 5 %.
func TestErrorRateDecisions(t *testing.T) {
	tests := []struct {
		truth                     float64
		n                         int
		maxPass, minFail, maxFail float64
		minPass                   float64
	}{
		{truth: 0.10, n: 20, maxPass: 0.001, maxFail: 0.2},
		{truth: 0.10, n: 100, maxPass: 0.05, minFail: 0.3, maxFail: 1},
		{truth: 0.10, n: 1000, maxPass: 0.001, minFail: 0.98, maxFail: 1},
		{truth: 0.05, n: 20, maxPass: 0.05, maxFail: 0.05},
		{truth: 0.05, n: 100, maxPass: 0.05, maxFail: 0.05},
		{truth: 0.05, n: 1000, maxPass: 0.05, maxFail: 0.05},
		{truth: 0.01, n: 1000, minPass: 0.98, maxPass: 1, maxFail: 0.001},
	}
	p := Default()
	for _, tt := range tests {
		t.Run(fmt.Sprintf("true %g of %d", tt.truth, tt.n), func(t *testing.T) {
			seen := map[result.Status]float64{}
			for seed := range uint64(seeds) {
				r, k := rand.New(rand.NewPCG(seed, 2)), 0
				for range tt.n {
					if r.Float64() < tt.truth {
						k++
					}
				}
				out := Evaluate(p, set(flawless(400), "latency", "error_rate", of(float64(k)/float64(tt.n), int64(tt.n))))
				seen[find(t, out, "error_rate_max").Status] += 1.0 / seeds
			}
			t.Logf("pass %.3f, unproven %.3f, undecided %.3f, fail %.3f", seen[result.Pass], seen[result.Unproven], seen[result.Undecided], seen[result.Fail])
			if p := seen[result.Pass]; p > tt.maxPass || p < tt.minPass {
				t.Errorf("proven in %.3f of seeds, want %g to %g", p, tt.minPass, tt.maxPass)
			}
			if f := seen[result.Fail]; f > tt.maxFail || f < tt.minFail {
				t.Errorf("failed in %.3f of seeds, want %g to %g", f, tt.minFail, tt.maxFail)
			}
		})
	}
}

// TestLossySurvivorFails: a target that loses every fourth recoverable
// operation is found out once there are enough of them, and is never proven.
func TestLossySurvivorFails(t *testing.T) {
	p := Default()
	for _, requests := range []int{20, 200, 2000} {
		var fail, proven float64
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 3))
			disrupted, ideal := schedule(r, requests, 0.2, 2)
			if disrupted == 0 {
				continue
			}
			kept := int64(0)
			for range ideal {
				if r.Float64() < 0.75 {
					kept++
				}
			}
			in := set(flawless(400), "behavior", "recovery_rate", of(float64(kept)/float64(disrupted), disrupted))
			in = set(in, "behavior", "recovery_ideal", of(float64(ideal)/float64(disrupted), disrupted))
			switch find(t, Evaluate(p, in), "recovery_rate_min").Status {
			case result.Fail:
				fail += 1.0 / seeds
			case result.Pass:
				proven += 1.0 / seeds
			}
		}
		t.Logf("%d requests: failed in %.3f, proven in %.3f of seeds", requests, fail, proven)
		if proven > 0.025 || requests == 2000 && fail < 0.99 || math.IsNaN(fail) {
			t.Errorf("%d requests: failed in %.3f, proven in %.3f of seeds", requests, fail, proven)
		}
	}
}
