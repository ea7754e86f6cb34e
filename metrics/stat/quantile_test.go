package stat

import (
	"math"
	"testing"
)

func TestNearestRank(t *testing.T) {
	for n := int64(1); n <= 2000; n++ {
		for permille := int64(0); permille <= 1000; permille++ {
			want := min(n, max(1, (n*permille+999)/1000))
			if got := NearestRank(n, float64(permille)/1000); got != want {
				t.Fatalf("NearestRank(%d, %d‰) = %d, want %d", n, permille, got, want)
			}
		}
	}
	for _, row := range []struct {
		n    int64
		q    float64
		want int64
	}{
		{0, 0.5, 0}, {20, 0.95, 19}, {40, 0.95, 38}, {100, 0.99, 99}, {99, 0.99, 99},
		{1_000_000, 0.9999, 999_900},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, 0.5, math.MaxInt64/2 + 1},
	} {
		if got := NearestRank(row.n, row.q); got != row.want {
			t.Errorf("NearestRank(%d, %v) = %d, want %d", row.n, row.q, got, row.want)
		}
	}
}

func TestSmallestSampleCarries(t *testing.T) {
	for q, want := range map[float64]int64{0.5: 2, 0.75: 4, 0.9: 10, 0.95: 20, 0.99: 100, 0.999: 1000, 0.9999: 10_000, 0: 2} {
		n := SmallestSample(q)
		if n != want {
			t.Errorf("SmallestSample(%v) = %d, want %d", q, n, want)
		}
		if Carries(n-1, q) || !Carries(n, q) {
			t.Errorf("q=%v: Carries(%d)=%v, Carries(%d)=%v", q, n-1, Carries(n-1, q), n, Carries(n, q))
		}
	}
	if SmallestSample(1) != math.MaxInt64 {
		t.Error("a sample claims to carry the 100 % quantile")
	}
}

func TestUpperRankOfP99NeedsASample(t *testing.T) {
	if rank, ok := UpperRank(298, 0.99, 0.95); ok || rank != 0 {
		t.Errorf("n=298 gives upper rank %d", rank)
	}
	if rank, ok := UpperRank(299, 0.99, 0.95); !ok || rank != 299 {
		t.Errorf("n=299 gives upper rank %d, %v", rank, ok)
	}
	if _, hi, ok := QuantileRanks(367, 0.99, 0.95); ok || hi != 0 { // 0.99^367 > 0.025
		t.Errorf("two-sided n=367 gives upper rank %d", hi)
	}
	if lo, hi, ok := QuantileRanks(368, 0.99, 0.95); !ok || hi != 368 || lo >= 365 {
		t.Errorf("two-sided n=368 gives %d..%d, %v", lo, hi, ok)
	}
	if lo, hi, ok := QuantileRanks(3, 0.01, 0.95); ok || lo != 0 || hi != 2 {
		t.Errorf("three values bound p1 by %d..%d, %v", lo, hi, ok)
	}
	if lo, hi, ok := QuantileRanks(0, 0.5, 0.95); ok || lo != 0 || hi != 0 {
		t.Errorf("no values bound the median by %d..%d", lo, hi)
	}
}

func TestMedianRanksAsPublished(t *testing.T) {
	// Table of sign-test intervals of the median, 95 %, equal tails.
	for _, row := range []struct{ n, lo, hi int64 }{{6, 1, 6}, {10, 2, 9}, {20, 6, 15}, {50, 18, 33}, {100, 40, 61}} {
		lo, hi, ok := QuantileRanks(row.n, 0.5, 0.95)
		if !ok || lo != row.lo || hi != row.hi {
			t.Errorf("n=%d: ranks %d..%d (%v), want %d..%d", row.n, lo, hi, ok, row.lo, row.hi)
		}
	}
}

// TestRanksCoverAndAreTight checks by enumeration that each side keeps its
// allowance and that the next rank inwards would break it.
func TestRanksCoverAndAreTight(t *testing.T) {
	for n := int64(1); n <= 400; n += 1 + n/40 {
		for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.95, 0.99} {
			tails := tailSums(n, q)
			for _, conf := range []float64{0.5, 0.9, 0.95, 0.999} {
				checkUpper(t, tails, q, conf)
				checkLower(t, tails, q, conf)
			}
		}
	}
}

// checkUpper uses that the r-th value lies below the quantile when r values do.
func checkUpper(t *testing.T, tails []float64, q, conf float64) {
	t.Helper()
	n, miss := int64(len(tails)-2), 1-conf
	rank, ok := UpperRank(n, q, conf)
	if !ok {
		rank = n + 1
	}
	if tails[rank] > miss*(1+1e-9) {
		t.Errorf("n=%d q=%v conf=%v: upper rank %d misses with %v", n, q, conf, rank, tails[rank])
	}
	if rank > 1 && tails[rank-1] <= miss*(1-1e-9) {
		t.Errorf("n=%d q=%v conf=%v: upper rank %d, but %d suffices", n, q, conf, rank, rank-1)
	}
}

// checkLower uses that the r-th value lies above the quantile when fewer than r
// values lie below it.
func checkLower(t *testing.T, tails []float64, q, conf float64) {
	t.Helper()
	n, miss := int64(len(tails)-2), 1-conf
	rank, _ := LowerRank(n, q, conf)
	if rank > 0 && 1-tails[rank] > miss*(1+1e-9) {
		t.Errorf("n=%d q=%v conf=%v: lower rank %d misses with %v", n, q, conf, rank, 1-tails[rank])
	}
	if rank < n && 1-tails[rank+1] <= miss*(1-1e-9) {
		t.Errorf("n=%d q=%v conf=%v: lower rank %d, but %d suffices", n, q, conf, rank, rank+1)
	}
}

// tailSums returns P(Binomial(n, q) >= r) for r = 0..n+1 by summation.
func tailSums(n int64, q float64) []float64 {
	tails := make([]float64, n+2)
	for r := n; r >= 0; r-- {
		tails[r] = tails[r+1] + density(n, r, q)
	}
	return tails
}

// TestLargeSamples checks tightness against the exact tails at a size where
// enumeration is out of reach.
func TestLargeSamples(t *testing.T) {
	for _, n := range []int64{10_000, 1_000_000, 100_000_000} {
		for _, q := range []float64{0.5, 0.99, 0.9999} {
			lo, hi, ok := QuantileRanks(n, q, 0.95)
			if q == 0.9999 && n == 10_000 {
				if ok || hi != 0 {
					t.Errorf("n=%d q=%v: upper rank %d", n, q, hi)
				}
				continue
			}
			if !ok || binomialUpper(hi, n, q, 1-q) > 0.025*(1+1e-9) || binomialUpper(hi-1, n, q, 1-q) <= 0.025 {
				t.Errorf("n=%d q=%v: upper rank %d", n, q, hi)
			}
			if binomialLower(lo-1, n, q, 1-q) > 0.025*(1+1e-9) || binomialLower(lo, n, q, 1-q) <= 0.025 {
				t.Errorf("n=%d q=%v: lower rank %d", n, q, lo)
			}
		}
	}
}

func BenchmarkQuantileRanks100M(b *testing.B) {
	for b.Loop() {
		QuantileRanks(100_000_000, 0.99, 0.95)
	}
}

func BenchmarkClopperPearson(b *testing.B) {
	for b.Loop() {
		ClopperPearson(950, 1000, 0.95)
	}
}

func BenchmarkConfidenceSequence(b *testing.B) {
	for b.Loop() {
		ConfidenceSequence(950, 1000, 0.05)
	}
}
