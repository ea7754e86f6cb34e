package stat

import (
	"fmt"
	"math"
	"math/bits"
)

// quantileUnit is the resolution of a quantile: it is taken as a whole number
// of parts per 10^9. Rank arithmetic in floating point goes wrong where it is
// looked at most: 0.95*20 is 19.000000000000004 on some paths, and its ceiling
// then names the maximum.
const quantileUnit = 1_000_000_000

// NearestRank returns the 1-based rank ceil(n*q) of the q-quantile among n
// sorted values, at least 1 and at most n; 0 when there are no values. q in
// [0, 1] is rounded to nine decimals.
func NearestRank(n int64, q float64) int64 {
	if n < 0 {
		panic(fmt.Sprintf("stat: %d values", n))
	}
	hi, lo := bits.Mul64(uint64(n), parts(q))
	lo, carry := bits.Add64(lo, quantileUnit-1, 0)
	rank, _ := bits.Div64(hi+carry, lo, quantileUnit)
	return min(n, max(1, int64(rank)))
}

// Carries reports whether n values say anything about the q-quantile that
// their maximum does not: the nearest rank lies below n.
func Carries(n int64, q float64) bool { return NearestRank(n, q) < n }

// SmallestSample returns the least n that carries the q-quantile: 20 for p95,
// 100 for p99, 1000 for p99.9. No sample carries q = 1; the result is then the
// largest int64.
func SmallestSample(q float64) int64 {
	rest := quantileUnit - parts(q)
	if rest == 0 {
		return math.MaxInt64
	}
	return max(2, int64((quantileUnit+rest-1)/rest))
}

func parts(q float64) uint64 {
	if !(q >= 0 && q <= 1) {
		panic(fmt.Sprintf("stat: quantile %v, want 0 to 1", q))
	}
	return uint64(math.Round(q * quantileUnit))
}

// QuantileRanks returns the 1-based ranks of the order statistics that enclose
// the q-quantile with at least conf coverage, whatever the distribution: each
// tail is an exact binomial probability of at most (1-conf)/2. ok is false when
// the sample cannot carry the interval; a missing lower rank is then 0, a
// missing upper rank is 0, and the side that is there remains a valid bound
// for its own tail.
func QuantileRanks(n int64, q, conf float64) (lo, hi int64, ok bool) {
	checkLevel("confidence", conf)
	side := 1 - (1-conf)/2
	lo, okLo := LowerRank(n, q, side)
	hi, okHi := UpperRank(n, q, side)
	return lo, hi, okLo && okHi
}

// UpperRank returns the smallest 1-based rank whose order statistic is at or
// above the q-quantile with probability at least conf. ok is false, and the
// rank 0, when even the maximum is not: there is no 95 % upper bound on p99
// below n = 299.
func UpperRank(n int64, q, conf float64) (rank int64, ok bool) {
	checkLevel("confidence", conf)
	if n <= 0 {
		return 0, false
	}
	p := parts(q)
	rank = upperRank(n, p, (1-conf)*(1+tieSlack))
	if rank > n {
		return 0, false
	}
	return rank, true
}

// LowerRank returns the largest 1-based rank whose order statistic is at or
// below the q-quantile with probability at least conf; ok is false, and the
// rank 0, when even the minimum is not.
func LowerRank(n int64, q, conf float64) (rank int64, ok bool) {
	checkLevel("confidence", conf)
	if n <= 0 {
		return 0, false
	}
	// Counted from the top, the lower bound of q is the upper bound of 1-q.
	mirrored := upperRank(n, quantileUnit-parts(q), (1-conf)*(1+tieSlack))
	if mirrored > n {
		return 0, false
	}
	return n + 1 - mirrored, true
}

// tieSlack lets a tail that equals its allowance in algebra pass in floating
// point, on every processor alike: two values below the median leave 0.25
// exactly.
const tieSlack = 1e-11

// upperRank returns the smallest r in 1..n+1 with P(Binomial(n, q) >= r) <= tail.
// The tail falls with r, so a start from the normal approximation with its
// first skewness term, at most a few ranks off, is walked to the exact place.
func upperRank(n int64, qParts uint64, tail float64) int64 {
	q := float64(qParts) / quantileUnit
	notQ := float64(quantileUnit-qParts) / quantileUnit
	exceeds := func(r int64) bool { return binomialUpper(r, n, q, notQ) > tail }
	z := oneSided(1 - tail)
	start := float64(n)*q + z*math.Sqrt(float64(n)*q*notQ) + (z*z-1)*(notQ-q)/6
	r := min(n+1, max(1, int64(math.Ceil(start))))
	for r <= n && exceeds(r) {
		r++
	}
	for r > 1 && !exceeds(r-1) {
		r--
	}
	return r
}
