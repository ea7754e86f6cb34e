package measure

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestDiffersKnownTables: Fisher's own tea, 3 of 4 against 1 of 4, and tables
// whose one-sided value is one binomial coefficient.
func TestDiffersKnownTables(t *testing.T) {
	for _, row := range []struct {
		name   string
		strata []stratum
		want   float64
	}{
		{"Tea", []stratum{{3, 4, 1, 4}}, 2 * 17.0 / 70},
		{"AllOfOne", []stratum{{5, 5, 0, 5}}, 2.0 / 252},
		{"NothingFailed", []stratum{{0, 50, 0, 700}}, 1},
		{"EverythingFailed", []stratum{{50, 50, 700, 700}}, 1},
		{"Even", []stratum{{5, 10, 5, 10}}, 1},
		{"TwoStrata", []stratum{{2, 2, 0, 2}, {2, 2, 0, 2}}, 2.0 / 36},
		{"OppositeStrataCancel", []stratum{{2, 2, 0, 2}, {0, 2, 2, 2}}, 1},
		{"None", nil, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := differs(row.strata); math.Abs(got-row.want) > 1e-12 {
				t.Errorf("p = %v, want %v", got, row.want)
			}
		})
	}
}

// counted sums all tables with the margins of the strata, in whole numbers.
func countedTails(strata []stratum) float64 {
	at := map[int64]*big.Int{0: big.NewInt(1)}
	observed := int64(0)
	for _, s := range strata {
		k, n := s.total()
		observed += s.k
		next := map[int64]*big.Int{}
		for x := max(0, s.n-(n-k)); x <= min(s.n, k); x++ {
			ways := new(big.Int).Mul(new(big.Int).Binomial(k, x), new(big.Int).Binomial(n-k, s.n-x))
			for sum, w := range at {
				if next[sum+x] == nil {
					next[sum+x] = new(big.Int)
				}
				next[sum+x].Add(next[sum+x], new(big.Int).Mul(w, ways))
			}
		}
		at = next
	}
	all, below, above := new(big.Int), new(big.Int), new(big.Int)
	for sum, w := range at {
		all.Add(all, w)
		if sum <= observed {
			below.Add(below, w)
		}
		if sum >= observed {
			above.Add(above, w)
		}
	}
	if above.Cmp(below) < 0 {
		below = above
	}
	p, _ := new(big.Rat).SetFrac(below, all).Float64()
	return min(1, 2*p)
}

func TestDiffersAgainstCountedTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	small, spared := 0, 0
	for range 600 {
		var strata []stratum
		variance, share := 0.0, rng.Float64()*rng.Float64()
		for range 1 + rng.IntN(4) {
			n, rest := 1+rng.Int64N(80), 1+rng.Int64N(400)
			s := stratum{k: rng.Int64N(n + 1), n: n, restK: rng.Int64N(rest + 1), restN: rest}
			if rng.IntN(2) == 0 { // alike
				s.k, s.restK = int64(share*float64(n)+2*rng.Float64()), int64(share*float64(rest))
				s.k = min(s.k, n)
			}
			_, v := s.moments()
			strata, variance = append(strata, s), variance+v
		}
		want, got := countedTails(strata), differs(strata)
		if want < 1e-6 {
			small++
		}
		if variance > maxExact {
			t.Fatalf("variance %v of %v: not an exact case", variance, strata)
		}
		if unremarkable(strata) {
			spared++
			if want <= 0.025 {
				t.Errorf("%v: p = %v is passed over", strata, want)
			}
		}
		if math.Abs(got-want) > 1e-9*want+1e-14 {
			t.Errorf("%v: p = %v, want %v", strata, got, want)
		}
	}
	if small < 30 || spared < 30 {
		t.Errorf("only %d tables with a small p and %d passed over", small, spared)
	}
}

// TestNormalForm: where the normal curve takes over it is within a few percent of
// the exact value at the levels that decide.
func TestNormalForm(t *testing.T) {
	for _, s := range []stratum{{300, 500, 4200, 8000}, {205, 1900, 810, 10000}, {420, 1000, 7500, 15000}} {
		_, v := s.moments()
		if v <= maxExact {
			t.Fatalf("%v has variance %v: exact", s, v)
		}
		want, got := countedTails([]stratum{s}), differs([]stratum{s})
		if ratio := math.Log(got) / math.Log(want); ratio < 0.94 || ratio > 1.06 || want > 0.01 {
			t.Errorf("%v: p = %.3g, exact %.3g", s, got, want)
		}
	}
}

func TestLargeTablesEnd(t *testing.T) {
	if p := differs([]stratum{{0, 2_000_000_000, 30, 30_000_000_000}, {1, 1_000_000_000, 5, 10_000_000_000}}); !(p > 0.05 && p <= 1) {
		t.Errorf("p = %v", p)
	}
	if p := differs([]stratum{{60, 60, 1, 10_000}}); !(p < 1e-15) {
		t.Errorf("p = %v of a table that cannot be chance", p)
	}
}
