package stat

import (
	"math"
	"testing"
)

// The references of this file were computed with 40 decimal digits.

func TestIncompleteBeta(t *testing.T) {
	for _, row := range []struct{ a, b, x, want float64 }{
		{0.5, 0.5, 0.25, 1. / 3},
		{2, 3, 0.4, 0.5248},
		{0.5, 15, 0.1, 0.9221413296853322},
		{10, 1, 0.9, 0.3486784401},
		{100, 300, 0.2, 0.007994530866879326},
		{1, 1, 0.3, 0.3},
		{30, 0.5, 0.99, 0.43933436890525122},
		{950, 51, 0.97, 0.99976336262218211},
		{300, 700, 0.2, 3.3282408726064942e-14},
		{4, 5, 0, 0},
		{4, 5, 1, 1},
	} {
		lower, upper := incompleteBeta(row.a, row.b, row.x, 1-row.x)
		near(t, lower/max(row.want, 1e-300), row.want/max(row.want, 1e-300), 1e-12)
		near(t, lower+upper, 1, 1e-15)
		mirrored, _ := incompleteBeta(row.b, row.a, 1-row.x, row.x)
		near(t, mirrored, upper, 1e-14)
	}
}

func TestBinomialUpper(t *testing.T) {
	for _, row := range []struct {
		n, k    int64
		q, notQ float64
		want    float64
	}{
		{n: 10_000, k: 9_921, q: 0.99, notQ: 0.01, want: 0.01701636097274155},
		{n: 1_000_000, k: 990_200, q: 0.99, notQ: 0.01, want: 0.02221251036473662},
		{n: 1_000_000, k: 500_900, q: 0.5, notQ: 0.5, want: 0.03600931383824089},
		{n: 100_000_000, k: 99_001_700, q: 0.99, notQ: 0.01, want: 0.04378322227726297},
		{n: 100_000_000, k: 95_003_600, q: 0.95, notQ: 0.05, want: 0.04929961315217139},
		{n: 100_000_000, k: 50_010_000, q: 0.5, notQ: 0.5, want: 0.02275553131480786},
		{n: 100_000_000, k: 99_999_030, q: 0.99999, notQ: 0.00001, want: 0.1756105941511869},
		{n: 10, k: 0, q: 0.3, notQ: 0.7, want: 1},
		{n: 10, k: 11, q: 0.3, notQ: 0.7, want: 0},
		{n: 3, k: 3, q: 0.5, notQ: 0.5, want: 0.125},
	} {
		got := binomialUpper(row.k, row.n, row.q, row.notQ)
		near(t, (got-row.want)/max(row.want, 1e-300), 0, 1e-11)
		near(t, got+binomialLower(row.k-1, row.n, row.q, row.notQ), 1, 1e-12)
	}
}

func TestBinomialTailsAddUp(t *testing.T) {
	for n := int64(1); n <= 60; n++ {
		for _, q := range []float64{0.01, 0.3, 0.5, 0.95} {
			sum := 0.0
			for k := n; k >= 0; k-- {
				sum += density(n, k, q)
				near(t, binomialUpper(k, n, q, 1-q), sum, 1e-13)
			}
		}
	}
}

// density is the binomial density by plain recursion from the end that does not
// underflow, an oracle that shares nothing with the code under test.
func density(n, k int64, q float64) float64 {
	if q > 0.5 {
		return density(n, n-k, 1-q)
	}
	p := math.Pow(1-q, float64(n))
	for i := int64(1); i <= k; i++ {
		p *= float64(n-i+1) / float64(i) * q / (1 - q)
	}
	return p
}
