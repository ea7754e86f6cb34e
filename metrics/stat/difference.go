package stat

import "math"

// Newcombe returns the interval of the difference k1/n1 - k2/n2 of two
// independent proportions by Newcombe's hybrid score method (1998, method 10).
// An arm without trials gives [-1, 1]: nothing is known of the difference.
func Newcombe(k1, n1, k2, n2 int64, conf float64) Interval {
	first, second := Wilson(k1, n1, conf), Wilson(k2, n2, conf)
	if n1 == 0 || n2 == 0 {
		return Interval{Lo: -1, Hi: 1}
	}
	p1, p2 := float64(k1)/float64(n1), float64(k2)/float64(n2)
	return Interval{
		Lo: p1 - p2 - math.Hypot(p1-first.Lo, second.Hi-p2),
		Hi: p1 - p2 + math.Hypot(first.Hi-p1, p2-second.Lo),
	}
}

// McNemar returns the exact two-sided p-value of a paired comparison from its
// discordant pairs alone: b operations went well only in the first arm, c only
// in the second. Without a discordant pair the value is 1, which means that
// the pairs tell nothing, not that the arms are equal.
func McNemar(b, c int64) float64 {
	if b < 0 || c < 0 {
		panic("stat: negative count of discordant pairs")
	}
	return min(1, 2*binomialLower(min(b, c), b+c, 0.5, 0.5))
}
