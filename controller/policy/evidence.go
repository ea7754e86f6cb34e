package policy

import (
	"math"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// confidence of the intervals decisions are made on.
const confidence = 0.95

// interval returns what a metric is known to lie in, in its own unit; ok is
// false when nothing is known but the value.
//
// A proportion gets the exact (Clopper–Pearson) interval of its counts, and
// keeps its own where that is wider, as it is for clustered operations. The
// Wilson interval usually shown is too short for this: 3 recovered of 4 would
// exclude 96 %, which a target that recovers 96 % meets with chance 15 %.
func interval(t threshold, m metrics.Measured, observed float64) (iv stat.Interval, ok bool) {
	if m.Interval != nil && m.Interval.Lo <= m.Interval.Hi {
		iv, ok = stat.Interval{Lo: m.Interval.Lo, Hi: m.Interval.Hi}, true
	}
	if k, whole := successes(observed, m.N); whole && t.kind == proportion {
		exact := stat.ClopperPearson(k, m.N, confidence)
		if ok {
			exact = stat.Interval{Lo: min(exact.Lo, iv.Lo), Hi: max(exact.Hi, iv.Hi)}
		}
		iv, ok = exact, true
	}
	// The observed value is always plausible, whatever rounding did to the ends.
	return stat.Interval{Lo: min(iv.Lo, observed), Hi: max(iv.Hi, observed)}, ok
}

// successes recovers k from k/n; ok is false when share is no such fraction.
func successes(share float64, n int64) (k int64, ok bool) {
	exact := share * float64(n)
	k = int64(math.Round(exact))
	return k, n > 0 && k >= 0 && k <= n && math.Abs(exact-float64(k)) < 1e-6
}

// decide returns what the evidence says about a limit.
func decide(t threshold, limit, observed float64, n int64, iv stat.Interval, known bool) result.Status {
	bad := t.bad(observed, limit)
	if t.exact(limit) || !known {
		switch {
		case bad:
			return result.Fail
		case t.exact(limit) && n == 0:
			return result.Unproven // none of none
		}
		return result.Pass
	}
	switch stat.Decide(iv, limit, t.good) {
	case stat.Pass:
		return result.Pass
	case stat.Fail:
		return result.Fail
	}
	if bad {
		return result.Undecided
	}
	return result.Unproven
}

// mostWanted bounds an estimate: beyond it the honest answer is that the
// observed value and the limit are too close to tell apart.
const mostWanted = 10_000_000

// wanted estimates how many measurements settle a check, if what comes looks
// like what was seen; 0 when it cannot say.
func wanted(t threshold, limit, observed float64, n int64, iv stat.Interval) int64 {
	if n <= 0 || observed == limit {
		return 0
	}
	want := bySpread(limit, observed, n, iv)
	if k, whole := successes(observed, n); whole && t.kind == proportion {
		clustered := iv != stat.ClopperPearson(k, n, confidence)
		if byCounts := byCounts(t, limit, observed, n); !clustered || byCounts > want {
			want = byCounts
		}
	}
	if !(want <= mostWanted) {
		return 0
	}
	return roundUp(want)
}

// bySpread lets the half of the interval that reaches to the limit shrink with
// the square root of n.
func bySpread(limit, observed float64, n int64, iv stat.Interval) float64 {
	reach, gap := iv.Hi-observed, limit-observed
	if observed > limit {
		reach, gap = observed-iv.Lo, observed-limit
	}
	return float64(n) * (reach / gap) * (reach / gap)
}

// byCounts searches the n at which the same proportion excludes the limit. The
// way there is not strictly monotone, k being whole, but near enough for an
// estimate.
func byCounts(t threshold, limit, share float64, n int64) float64 {
	settled := func(n int64) bool {
		k := int64(math.Round(share * float64(n)))
		return stat.Decide(stat.ClopperPearson(k, n, confidence), limit, t.good) != stat.Undecided
	}
	low, high := n, 2*n
	for !settled(high) {
		if high > mostWanted {
			return math.Inf(1)
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; settled(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return float64(high)
}

// roundUp keeps two significant digits: more would claim to know them.
func roundUp(x float64) int64 {
	step := max(1, math.Pow(10, math.Floor(math.Log10(x))-1))
	return int64(math.Ceil(x/step) * step)
}
