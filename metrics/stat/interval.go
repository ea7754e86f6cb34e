package stat

import (
	"fmt"
	"math"
)

// Interval is a closed range of plausible values. A side that the sample
// cannot bound is infinite for an unbounded quantity, 0 or 1 for a proportion.
type Interval struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// Contains reports whether x lies inside, ends included.
func (iv Interval) Contains(x float64) bool { return iv.Lo <= x && x <= iv.Hi }

// anyProportion is what no trials tell about a proportion.
var anyProportion = Interval{Lo: 0, Hi: 1}

// twoSided returns the standard normal quantile z with P(|Z| <= z) = conf.
func twoSided(conf float64) float64 { return math.Sqrt2 * math.Erfinv(conf) }

// oneSided returns the standard normal quantile z with P(Z <= z) = p.
func oneSided(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func checkCounts(k, n int64) {
	if k < 0 || n < 0 || k > n {
		panic(fmt.Sprintf("stat: %d successes of %d trials", k, n))
	}
}

// checkLevel guards every probability argument; the negated form catches NaN.
func checkLevel(name string, p float64) {
	if !(p > 0 && p < 1) {
		panic(fmt.Sprintf("stat: %s is %v, want a probability strictly between 0 and 1", name, p))
	}
}
