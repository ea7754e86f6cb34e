package stat

import "math"

// ConfidenceSequence returns the interval of the proportion k/n that stays
// valid however often it is looked at: with probability at least 1-alpha the
// truth lies inside at every n at once, so a run may stop on it. It holds the
// chances p at which the beta-binomial mixture e-process (prior Beta(1/2, 1/2),
// Robbins 1970, Ville's inequality)
//
//	E(p) = B(k+1/2, n-k+1/2) / (B(1/2, 1/2) p^k (1-p)^(n-k))
//
// is below 1/alpha. The price is width: 95 of 100 give 84.4…99.3 % where
// Wilson gives 88.8…97.8 %. Intervals of one run may be intersected. Note
// that alpha is the chance of an error, not a confidence level.
func ConfidenceSequence(k, n int64, alpha float64) Interval {
	checkCounts(k, n)
	checkLevel("alpha", alpha)
	if n == 0 {
		return anyProportion
	}
	s, f := float64(k), float64(n-k)
	limit := math.Log(1/alpha) - logMixture(s, f)
	iv := anyProportion
	if k > 0 {
		iv.Lo = crossing(s, f, limit, s/(s+f), 0)
	}
	if k < n {
		iv.Hi = crossing(s, f, limit, s/(s+f), 1)
	}
	return iv
}

// logMixture returns the logarithm of the mixture likelihood over the
// likelihood at the observed share; it is never positive.
func logMixture(s, f float64) float64 {
	a, _ := math.Lgamma(s + 0.5)
	b, _ := math.Lgamma(f + 0.5)
	c, _ := math.Lgamma(s + f + 1)
	return a + b - c - math.Log(math.Pi) - logLikelihood(s, f, s/(s+f))
}

func logLikelihood(s, f, p float64) float64 {
	sum := 0.0
	if s > 0 {
		sum += s * math.Log(p)
	}
	if f > 0 {
		sum += f * math.Log1p(-p)
	}
	return sum
}

// crossing bisects between the observed share, which is inside, and an end,
// which is outside, until the two are neighbours; the inside one is returned,
// so rounding never shortens the interval by more than one step.
func crossing(s, f, limit, inside, outside float64) float64 {
	best := logLikelihood(s, f, inside)
	for {
		mid := inside + (outside-inside)/2
		if mid == inside || mid == outside {
			return inside
		}
		if best-logLikelihood(s, f, mid) < limit {
			inside = mid
		} else {
			outside = mid
		}
	}
}
