package stat

import (
	"math"
	"testing"
)

func TestDecide(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, row := range []struct {
		name  string
		iv    Interval
		limit float64
		good  Direction
		want  Decision
	}{
		{"below a maximum", Interval{1, 2}, 3, AtMost, Pass},
		{"touching a maximum", Interval{1, 3}, 3, AtMost, Pass},
		{"around a maximum", Interval{2, 4}, 3, AtMost, Undecided},
		{"from the maximum on", Interval{3, 4}, 3, AtMost, Undecided},
		{"above a maximum", Interval{3.1, 4}, 3, AtMost, Fail},
		{"above a minimum", Interval{4, 5}, 3, AtLeast, Pass},
		{"touching a minimum", Interval{3, 5}, 3, AtLeast, Pass},
		{"around a minimum", Interval{2, 4}, 3, AtLeast, Undecided},
		{"up to the minimum", Interval{2, 3}, 3, AtLeast, Undecided},
		{"below a minimum", Interval{1, 2.9}, 3, AtLeast, Fail},
		{"no upper bound", Interval{1, inf}, 3, AtMost, Undecided},
		{"no upper bound but bad", Interval{4, inf}, 3, AtMost, Fail},
		{"nothing known", Interval{-inf, inf}, 3, AtLeast, Undecided},
		{"zero allowed, none seen", Wilson(0, 40, 0.95), 0, AtMost, Undecided},
		{"zero allowed, one seen", Wilson(1, 40, 0.95), 0, AtMost, Fail},
		{"not a number", Interval{nan, 2}, 3, AtMost, Undecided},
		{"crossed ends", Interval{5, 1}, 3, AtMost, Undecided},
	} {
		if got := Decide(row.iv, row.limit, row.good); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	if got := Decision(9).String(); got != "decision(9)" {
		t.Errorf("unknown decision prints %q", got)
	}
}

// TestDecideIsSymmetric mirrors a proportion: error rate at most x is success
// rate at least 1-x.
func TestDecideIsSymmetric(t *testing.T) {
	for n := int64(1); n <= 80; n++ {
		for k := range n + 1 {
			bad, good := Decide(Wilson(k, n, 0.95), 0.25, AtMost), Decide(Wilson(n-k, n, 0.95), 0.75, AtLeast)
			if bad != good {
				t.Errorf("%d errors of %d: %v, as successes %v", k, n, bad, good)
			}
		}
	}
}
