package stat

import "math"

// DesignEffect returns the factor by which clustering inflates the variance of
// a mean: 1 + (size-1)*icc, for clusters of equal size (operations per session)
// whose members correlate by icc. Ten per session at icc 0.1 make 1.9: a
// thousand operations are worth 526 independent ones.
func DesignEffect(size, icc float64) float64 { return 1 + (size-1)*icc }

// BurstEffect returns the same factor for a two-state Markov chain that turns
// bad with chance p and good again with chance r per step: (1+λ)/(1-λ) with
// λ = 1-p-r. It is 8.1 at p=0.02, r=0.2.
func BurstEffect(p, r float64) float64 {
	lambda := 1 - p - r
	return (1 + lambda) / (1 - lambda)
}

// ObservedEffect estimates the design effect from the clusters themselves: the
// variance of the pooled proportion between clusters (ratio estimator with the
// C/(C-1) correction) over the binomial variance, at least 1. successes[i] of
// sizes[i] operations went well in cluster i. ok is false when the clusters
// cannot tell: fewer than two, or all operations ended alike.
func ObservedEffect(successes, sizes []int64) (effect float64, ok bool) {
	k, n := total(successes), total(sizes)
	checkCounts(k, n)
	clusters := float64(len(sizes))
	if clusters < 2 || k == 0 || k == n {
		return 1, false
	}
	share := float64(k) / float64(n)
	squares := 0.0
	for i, size := range sizes {
		off := float64(successes[i]) - share*float64(size)
		squares += off * off
	}
	between := clusters / (clusters - 1) * squares / (float64(n) * float64(n))
	return max(1, between*float64(n)/(share*(1-share))), true
}

func total(counts []int64) int64 {
	var sum int64
	for _, c := range counts {
		sum += c
	}
	return sum
}

// ClusterWilson returns the score interval of k/n when the n operations are
// worth only n/effect independent ones. An effect below 1 counts as 1:
// clustering is never credited with a narrower interval.
func ClusterWilson(k, n int64, effect, conf float64) Interval {
	checkCounts(k, n)
	checkLevel("confidence", conf)
	if math.IsNaN(effect) {
		panic("stat: design effect is NaN")
	}
	if n == 0 || math.IsInf(effect, 1) {
		return anyProportion
	}
	return wilson(float64(k)/float64(n), float64(n)/max(1, effect), twoSided(conf))
}
