package pace

import (
	"math"
	"slices"
	"testing"
	"time"
)

// unitGaps are n gaps of a seed, in units of the mean.
func unitGaps(seed string, n int) []float64 {
	p := NewPoisson(seed, Profile{})
	gaps := make([]float64, n)
	for i := range gaps {
		gaps[i] = float64(p.gap()) / billion
	}
	return gaps
}

// TestPoissonGaps: mean and variance of the gaps are 1, neighbours do not know of
// each other, and the greatest distance to the exponential distribution is within
// the 0.1 % limit of Kolmogorov and Smirnov. The seeds are fixed.
func TestPoissonGaps(t *testing.T) {
	const n = 200_000
	for _, seed := range []string{"1337", "a", "b", ""} {
		gaps := unitGaps(seed, n)
		var sum, square, pair float64
		for i, g := range gaps {
			sum, square = sum+g, square+g*g
			pair += (g - 1) * (gaps[(i+1)%n] - 1)
		}
		mean := sum / n
		if variance := square/n - mean*mean; math.Abs(mean-1) > 4/math.Sqrt(n) || math.Abs(variance-1) > 4*math.Sqrt(8.0/n) {
			t.Errorf("seed %q: mean %f, variance %f; want 1 and 1", seed, mean, variance)
		}
		if r := pair / n; math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("seed %q: neighbours correlate by %f", seed, r)
		}
		slices.Sort(gaps)
		var far float64
		for i, g := range gaps {
			cdf := 1 - math.Exp(-g)
			far = max(far, math.Abs(cdf-float64(i)/n), math.Abs(cdf-float64(i+1)/n))
		}
		if limit := 1.95 / math.Sqrt(n); far > limit {
			t.Errorf("seed %q: %f from exponential, want at most %f", seed, far, limit)
		}
	}
}

// TestPoissonCounts: buckets of a second at 100/s hold 100 on average with a
// variance of 100, also while the rate changes.
func TestPoissonCounts(t *testing.T) {
	rows := map[string]Profile{
		"Even":     profile(t, Ramp{2000 * time.Second, 100_000, 100_000}),
		"Triangle": profile(t, Ramp{1000 * time.Second, 0, 200_000}, Ramp{1000 * time.Second, 200_000, 0}),
	}
	for name, p := range rows {
		t.Run(name, func(t *testing.T) {
			shape, counts := NewPoisson("7", p), make([]float64, 2000)
			for i := uint64(0); ; i++ {
				due, ok := shape.Due(i)
				if !ok {
					break
				}
				counts[due/time.Second]++
			}
			var total, spread float64
			for s, n := range counts {
				want := p.Mean(time.Duration(s)*time.Second, time.Duration(s+1)*time.Second) / 1000
				total, spread = total+n, spread+(n-want)*(n-want)/want
			}
			if math.Abs(total-200_000) > 4*math.Sqrt(200_000) {
				t.Errorf("%.0f arrivals, want 200000", total)
			}
			if dispersion := spread / 2000; math.Abs(dispersion-1) > 4*math.Sqrt(2.0/2000) {
				t.Errorf("variance over mean of the buckets %f, want 1", dispersion)
			}
		})
	}
}

// TestPoissonIsItsSeed: the same arrivals for the same seed, in any order of
// asking, and the first of them frozen: they are part of what makes runs
// comparable.
func TestPoissonIsItsSeed(t *testing.T) {
	p := profile(t, Ramp{100 * time.Second, 1_000_000, 1_000_000})
	a, b, other := NewPoisson("1337", p), NewPoisson("1337", p), NewPoisson("1338", p)
	var same int
	for i := range uint64(1000) {
		first, _ := a.Due(i)
		if again, _ := a.Due(i); again != first {
			t.Fatalf("arrival %d at %v, then at %v", i, first, again)
		}
		if o, _ := other.Due(i); o == first {
			same++
		}
	}
	if same > 10 {
		t.Errorf("%d of 1000 arrivals are those of another seed", same)
	}
	for _, i := range []uint64{999, 3, 500, 0} {
		want, _ := a.Due(i)
		if got, _ := b.Due(i); got != want {
			t.Errorf("arrival %d at %v, want %v", i, got, want)
		}
	}
	var got []int64
	for i := range uint64(5) {
		due, _ := NewPoisson("1337", p).Due(i)
		got = append(got, due.Microseconds())
	}
	if want := []int64{3998, 4569, 4890, 4906, 5614}; !slices.Equal(got, want) {
		t.Errorf("first arrivals %v µs, want %v", got, want)
	}
}

func BenchmarkPoissonDue(b *testing.B) {
	p := NewPoisson("1", profile(b, Ramp{MaxLength, 3_333_333, 3_333_333}))
	for i := range b.N {
		p.Due(uint64(i))
	}
}
