package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ordeal/faultproxy/schedule"
)

// TestNormalTable computes the frozen table another way.
func TestNormalTable(t *testing.T) {
	for j, z := range normalBorders {
		octave, cell := j/normalCells, j%normalCells
		want := math.Ldexp(1+float64(normalCells-cell)/normalCells, -octave-1) / 2
		if got := math.Erfc(float64(z)/microSD/math.Sqrt2) / 2; math.Abs(got/want-1) > 1e-5 {
			t.Errorf("border %d: probability %g above %d, want %g", j, got, z, want)
		}
	}
}

func TestStandardAtTheEdges(t *testing.T) {
	for _, tt := range []struct {
		w    uint64
		want int64
	}{
		{0, int64(normalBorders[len(normalBorders)-1])},
		{1 << 63, -int64(normalBorders[len(normalBorders)-1])},
		{1<<63 - 1, 0},
		{math.MaxUint64, 0},
		{1 << 62, 674_490}, // a quarter above
		{3 << 62, -674_490},
	} {
		if got := standard(tt.w); got != tt.want {
			t.Errorf("%x is %d, want %d", tt.w, got, tt.want)
		}
	}
}

// TestStandardIsNormal compares the share below each of many points.
func TestStandardIsNormal(t *testing.T) {
	const draws = 200_000
	s, key := schedule.New("9"), schedule.KeyOf("test")
	got := make([]int64, draws)
	for op := range got {
		got[op] = standard(s.Draw(key, uint64(op), 0, laneWhole))
	}
	slices.Sort(got)
	worst := 0.0
	for i, z := range got {
		worst = max(worst, math.Abs(float64(i)/draws-math.Erfc(-float64(z)/microSD/math.Sqrt2)/2))
	}
	if limit := 1.95 / math.Sqrt(draws); worst > limit { // 0.1 % point of Kolmogorov and Smirnov
		t.Errorf("distance %.5f from the normal distribution, want below %.5f", worst, limit)
	}
}

func TestLogNormal(t *testing.T) {
	l := newLogNormal(200, 1500)
	sigma := math.Log(1500.0/200) / 1.644854
	for z := -6.3; z <= 6.3; z += 0.01 {
		want := 200 * math.Exp(sigma*z)
		if got := l.at(int64(math.Round(z * microSD))); math.Abs(got/want-1) > 1e-5 {
			t.Fatalf("at %.2f: %g, want %g", z, got, want)
		}
	}
}

// TestLengths: the lengths of texts have the percentiles that were asked for.
func TestLengths(t *testing.T) {
	const draws = 4000
	prompts := table("prompts", "random", []string{"p"}, `["one two three four five"]`, `["six seven\neight"]`, `["日本語のテキストには空白がありません、長い行でも切れます。"]`)
	for _, tt := range []struct {
		expr     string
		p50, p95 float64
		within   float64
	}{
		{"words(7)", 7, 7, 0},
		{"tokens(100,20,1,1000)", 100, 133, 3},
		{"tokens(100,20,90,110)", 100, 110, 1},
		{"text(20,150)", 20, 150, 12},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			lengths := lengthsOf(t, compiled(t, oneStep(fmt.Sprintf(`"${%s}"`, tt.expr))), draws, func(s string) float64 { return float64(len(strings.Fields(s))) })
			if p50, p95 := lengths[draws/2], lengths[draws*95/100]; math.Abs(p50-tt.p50) > tt.within || math.Abs(p95-tt.p95) > tt.within {
				t.Errorf("p50 %g p95 %g, want %g and %g", p50, p95, tt.p50, tt.p95)
			}
		})
	}
	t.Run("OfAFeeder", func(t *testing.T) {
		lengths := lengthsOf(t, compiled(t, oneStep(`"${text(20,150,prompts)}"`, prompts)), draws, func(s string) float64 { return float64(len(s)) / bytesPerToken })
		if p50, p95 := lengths[draws/2], lengths[draws*95/100]; math.Abs(p50-20) > 4 || math.Abs(p95-150) > 16 {
			t.Errorf("p50 %g p95 %g, want 20 and 150", p50, p95)
		}
	})
}

func lengthsOf(t *testing.T, p *Plan, draws int, length func(string) float64) []float64 {
	t.Helper()
	r, out := p.NewRun(), make([]float64, draws)
	for op := range out {
		r.Start(uint64(op), 0)
		r.Next()
		out[op] = length(decoded[string](t, r.Args))
	}
	slices.Sort(out)
	return out
}
