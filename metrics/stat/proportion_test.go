package stat

import (
	"math"
	"testing"
)

func TestWilson(t *testing.T) {
	for _, row := range []struct {
		k, n int64
		conf float64
		want Interval
	}{
		{0, 0, 0.95, Interval{0, 1}},
		{0, 10, 0.95, Interval{0, 0.277533}},
		{10, 10, 0.95, Interval{0.722467, 1}},
		{5, 10, 0.95, Interval{0.236593, 0.763407}},
		{3, 5, 0.95, Interval{0.230724, 0.882379}},
		{1, 1, 0.95, Interval{0.206549, 1}},
		{7, 20, 0.95, Interval{0.181192, 0.567146}},
		{950, 1000, 0.95, Interval{0.934686, 0.961870}},
		{95, 100, 0.99, Interval{0.860850, 0.983152}},
		{20, 20, 0.95, Interval{0.838875, 1}},
		{40, 40, 0.95, Interval{0.912378, 1}},
		{96, 100, 0.95, Interval{0.901629, 0.984337}},
		{0, 40, 0.95, Interval{0, 0.087622}},
		{0, 300, 0.95, Interval{0, 0.012643}},
	} {
		sameInterval(t, Wilson(row.k, row.n, row.conf), row.want, 6e-7)
	}
}

func TestClopperPearson(t *testing.T) {
	for _, row := range []struct {
		k, n         int64
		conf, lo, hi float64
	}{
		{0, 0, 0.95, 0, 1},
		{10, 10, 0.95, 0.6915028921812392, 1},
		{0, 10, 0.95, 0, 0.3084971078187608},
		{5, 10, 0.95, 0.1870860284473985, 0.8129139715526015},
		{1, 20, 0.95, 0.001265089497949804, 0.2487327627720278},
		{96, 100, 0.95, 0.9007428432873401, 0.9889955060138118},
		{95, 100, 0.99, 0.8648553174643765, 0.98905966641521},
		{950, 1000, 0.95, 0.9346095120845064, 0.9626646023953382},
		{3, 10_000, 0.95, 6.187148574838714e-5, 0.0008764745225140009},
		{70_000, 100_000, 0.9, 0.6976071151003526, 0.7023843141913726},
	} {
		sameInterval(t, ClopperPearson(row.k, row.n, row.conf), Interval{row.lo, row.hi}, 1e-12)
	}
}

func TestOneSidedBoundsHaveClosedForms(t *testing.T) {
	for _, n := range []int64{1, 10, 59, 299, 2_995, 1_000_000} {
		want := math.Pow(0.05, 1/float64(n))
		near(t, LowerBound(n, n, 0.95), want, 1e-13)
		near(t, UpperBound(0, n, 0.95), 1-want, 1e-13)
	}
	near(t, UpperBound(0, 100, 0.95), 0.029513, 5e-7)
	near(t, LowerBound(0, 7, 0.95), 0, 0)
	near(t, UpperBound(7, 7, 0.95), 1, 0)
	near(t, UpperBound(0, 0, 0.95), 1, 0)
}

func TestRuleOfThree(t *testing.T) {
	near(t, RuleOfThree(40), 0.075, 1e-15)
	near(t, RuleOfThree(15), 0.2, 1e-15)
	near(t, RuleOfThree(2), 1, 0)
	near(t, RuleOfThree(0), 1, 0)
	for n := int64(10); n < 10_000; n *= 3 {
		if exact := UpperBound(0, n, 0.95); RuleOfThree(n) < exact {
			t.Errorf("n=%d: 3/n is below the exact bound %v", n, exact)
		}
	}
}

// coverage sums the chance of the counts whose interval holds p.
func coverage(n int64, p float64, intervals []Interval) float64 {
	sum := 0.0
	for k := range n + 1 {
		if intervals[k].Contains(p) {
			sum += density(n, k, p)
		}
	}
	return sum
}

func TestCoverageByEnumeration(t *testing.T) {
	for _, n := range []int64{1, 2, 5, 10, 20, 37, 100} {
		exact, score := make([]Interval, n+1), make([]Interval, n+1)
		lower := make([]Interval, n+1)
		for k := range n + 1 {
			exact[k], score[k] = ClopperPearson(k, n, 0.95), Wilson(k, n, 0.95)
			lower[k] = Interval{LowerBound(k, n, 0.95), 1}
		}
		mean, points := 0.0, 0.0
		for p := 0.0005; p < 1; p += 0.001 {
			if got := coverage(n, p, exact); got < 0.95-1e-12 {
				t.Errorf("Clopper–Pearson n=%d p=%.4f covers %.4f", n, p, got)
			}
			if got := coverage(n, p, lower); got < 0.95-1e-12 {
				t.Errorf("LowerBound n=%d p=%.4f covers %.4f", n, p, got)
			}
			got := coverage(n, p, score)
			// The score interval is known to dip near the ends: 0.79 at n=1, 0.83 from n=5 on.
			if got < 0.79 || n >= 5 && got < 0.83 {
				t.Errorf("Wilson n=%d p=%.4f covers %.4f", n, p, got)
			}
			mean, points = mean+got, points+1
		}
		if mean /= points; mean < 0.94 || mean > 0.975 {
			t.Errorf("Wilson n=%d covers %.4f on average", n, mean)
		}
	}
}

func TestBoundsAreOrdered(t *testing.T) {
	for n := int64(1); n <= 60; n++ {
		for k := range n + 1 {
			p := float64(k) / float64(n)
			for _, iv := range []Interval{Wilson(k, n, 0.9), ClopperPearson(k, n, 0.9), ConfidenceSequence(k, n, 0.1)} {
				if !iv.Contains(p) || iv.Lo < 0 || iv.Hi > 1 {
					t.Errorf("%d of %d: %v", k, n, iv)
				}
			}
			two, one := ClopperPearson(k, n, 0.9), Interval{LowerBound(k, n, 0.95), UpperBound(k, n, 0.95)}
			sameInterval(t, one, two, 1e-14)
			mirrored := ClopperPearson(n-k, n, 0.9)
			sameInterval(t, Interval{1 - mirrored.Hi, 1 - mirrored.Lo}, two, 1e-13)
		}
	}
}
