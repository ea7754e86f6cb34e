package stat

import "math"

// WilsonTrials returns how many trials, failures of them failed, it takes for
// the two-sided Wilson interval to lie at or above limit: 35 for 90 % without a
// failure at conf 0.95.
func WilsonTrials(limit float64, failures int64, conf float64) int64 {
	return smallestProof(limit, failures, func(k, n int64) float64 { return Wilson(k, n, conf).Lo })
}

// ExactTrials returns the same count for the exact one-sided LowerBound: 29 for
// 90 % without a failure at conf 0.95.
func ExactTrials(limit float64, failures int64, conf float64) int64 {
	return smallestProof(limit, failures, func(k, n int64) float64 { return LowerBound(k, n, conf) })
}

// smallestProof searches the least n whose lower bound reaches the limit; for a
// fixed number of failures the bound rises with n.
func smallestProof(limit float64, failures int64, lower func(k, n int64) float64) int64 {
	checkLevel("limit", limit)
	checkCounts(0, failures)
	proves := func(n int64) bool { return lower(n-failures, n) >= limit }
	fails, works := failures, failures+1
	for !proves(works) {
		fails, works = works, 2*works
	}
	for works-fails > 1 {
		mid := fails + (works-fails)/2
		if proves(mid) {
			works = mid
		} else {
			fails = mid
		}
	}
	return works
}

// SampleSize returns the operations per arm with which a two-sided test at
// level alpha tells p1 from p2 with the given power (pooled normal
// approximation, Fleiss). Equal proportions cannot be told apart: the result is
// then the largest int64.
func SampleSize(p1, p2, alpha, power float64) int64 {
	checkLevel("alpha", alpha)
	checkLevel("power", power)
	size := math.Ceil(sampleSize(p1, p2, alpha, power))
	if !(size < math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(size)
}

func sampleSize(p1, p2, alpha, power float64) float64 {
	pooled, d := (p1+p2)/2, p1-p2
	root := oneSided(1-alpha/2)*math.Sqrt(2*pooled*(1-pooled)) +
		oneSided(power)*math.Sqrt(p1*(1-p1)+p2*(1-p2))
	return root * root / (d * d)
}

// DetectableDrop returns the smallest drop below baseline that n operations per
// arm can see, in the sense of SampleSize: 0.09 from a baseline of 0.99 with
// 100 operations. The result is +Inf when not even a drop to zero would show.
func DetectableDrop(baseline float64, n int64, alpha, power float64) float64 {
	checkLevel("baseline", baseline)
	checkLevel("alpha", alpha)
	checkLevel("power", power)
	shows := func(drop float64) bool {
		return sampleSize(baseline, baseline-drop, alpha, power) <= float64(n)
	}
	if !shows(baseline) {
		return math.Inf(1)
	}
	hidden, seen := 0.0, baseline
	for seen-hidden > 1e-12 {
		mid := hidden + (seen-hidden)/2
		if shows(mid) {
			seen = mid
		} else {
			hidden = mid
		}
	}
	return seen
}

// NonInferiority returns the operations per arm with which two arms of equal
// chance p are shown to differ by less than margin: one-sided level alpha, the
// given power.
func NonInferiority(p, margin, alpha, power float64) int64 {
	checkLevel("chance", p)
	checkLevel("margin", margin)
	checkLevel("alpha", alpha)
	checkLevel("power", power)
	z := oneSided(1-alpha) + oneSided(power)
	return int64(math.Ceil(z * z * 2 * p * (1 - p) / (margin * margin)))
}
