package stat

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPAVA(t *testing.T) {
	for _, row := range []struct {
		name            string
		values, weights []float64
		want            []float64
	}{
		{"empty", nil, nil, []float64{}},
		{"rising stays", []float64{0, 0.1, 0.5}, nil, []float64{0, 0.1, 0.5}},
		{"dip is pooled", []float64{0, 0.10, 0.02, 0.5}, nil, []float64{0, 0.06, 0.06, 0.5}},
		{"by weight", []float64{0.10, 0.02}, []float64{100, 300}, []float64{0.04, 0.04}},
		{"falling is one block", []float64{3, 2, 1}, nil, []float64{2, 2, 2}},
		{"cascade", []float64{1, 5, 4, 0}, nil, []float64{1, 3, 3, 3}},
	} {
		if diff := cmp.Diff(row.want, PAVA(row.values, row.weights), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

// TestPAVAIsTheClosest compares with the min-max formula of isotonic
// regression: the fit at i is the largest, over starts up to i, of the smallest
// weighted mean up to any end from i on.
func TestPAVAIsTheClosest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		values, weights := make([]float64, 1+rng.IntN(12)), []float64{}
		for i := range values {
			values[i], weights = rng.Float64(), append(weights, 1+float64(rng.IntN(50)))
		}
		if diff := cmp.Diff(minMax(values, weights), PAVA(values, weights), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Fatalf("values %v weights %v (-want +got):\n%s", values, weights, diff)
		}
	}
}

func minMax(values, weights []float64) []float64 {
	fit := make([]float64, len(values))
	for i := range values {
		best := -1.0
		for start := range i + 1 {
			least, sum, weight := 2.0, 0.0, 0.0
			for end := start; end < len(values); end++ {
				sum, weight = sum+values[end]*weights[end], weight+weights[end]
				if end >= i {
					least = min(least, sum/weight)
				}
			}
			best = max(best, least)
		}
		fit[i] = best
	}
	return fit
}
