package stat

import "math"

// Wilson returns the two-sided score interval of the proportion k/n
// (Wilson 1927). Its mean coverage is close to conf, its worst coverage below:
// use it to show a proportion, LowerBound and UpperBound to claim one.
// No trials give [0, 1].
func Wilson(k, n int64, conf float64) Interval {
	checkCounts(k, n)
	checkLevel("confidence", conf)
	if n == 0 {
		return anyProportion
	}
	return wilson(float64(k)/float64(n), float64(n), twoSided(conf))
}

// wilson takes a real n, because a clustered sample is worth a fractional
// number of independent trials.
func wilson(p, n, z float64) Interval {
	z2 := z * z
	denom := 1 + z2/n
	centre := (p + z2/(2*n)) / denom
	half := z / denom * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	iv := Interval{Lo: max(0, centre-half), Hi: min(1, centre+half)}
	// At the ends the formula is exact in algebra but not in floating point.
	if p == 0 {
		iv.Lo = 0
	}
	if p == 1 {
		iv.Hi = 1
	}
	return iv
}

// ClopperPearson returns the exact two-sided interval of the proportion k/n
// with equal tails; it covers the truth with probability at least conf,
// whatever the truth is. No trials give [0, 1].
func ClopperPearson(k, n int64, conf float64) Interval {
	checkLevel("confidence", conf)
	tail := (1 - conf) / 2
	return Interval{Lo: lowerBound(k, n, tail), Hi: upperBound(k, n, tail)}
}

// LowerBound returns the exact one-sided lower bound of the proportion k/n:
// the truth lies above it with probability at least conf.
func LowerBound(k, n int64, conf float64) float64 {
	checkLevel("confidence", conf)
	return lowerBound(k, n, 1-conf)
}

// UpperBound returns the exact one-sided upper bound of the proportion k/n:
// the truth lies below it with probability at least conf. UpperBound(0, n,
// 0.95) is what n trials without a failure still allow.
func UpperBound(k, n int64, conf float64) float64 {
	checkLevel("confidence", conf)
	return upperBound(k, n, 1-conf)
}

func lowerBound(k, n int64, tail float64) float64 {
	checkCounts(k, n)
	if k == 0 {
		return 0
	}
	return betaQuantile(float64(k), float64(n-k+1), tail)
}

func upperBound(k, n int64, tail float64) float64 {
	checkCounts(k, n)
	return 1 - lowerBound(n-k, n, tail)
}

// RuleOfThree returns 3/n, the well-known approximation of
// UpperBound(0, n, 0.95), at most 1. It is for texts that name the rule;
// UpperBound is the number to decide on.
func RuleOfThree(n int64) float64 {
	if n <= 3 {
		return 1
	}
	return 3 / float64(n)
}
