package stat

import (
	"fmt"
	"math"
	"testing"
)

func TestTrialsToProve(t *testing.T) {
	failures := []int64{0, 1, 2, 3, 5}
	for _, row := range []struct {
		limit  float64
		wilson []int64
		exact  int64
	}{
		{0.90, []int64{35, 53, 69, 84, 113}, 29},
		{0.95, []int64{73, 110, 142, 173, 230}, 59},
		{0.98, []int64{189, 280, 361, 437, 581}, 149},
		{0.99, []int64{381, 563, 726, 878, 1166}, 299},
		{0.999, []int64{3838, 5661, 7289, 8817, 11702}, 2995},
	} {
		for i, want := range row.wilson {
			got := WilsonTrials(row.limit, failures[i], 0.95)
			if got != want {
				t.Errorf("WilsonTrials(%v, %d) = %d, want %d", row.limit, failures[i], got, want)
			}
			if Wilson(got-1-failures[i], got-1, 0.95).Lo >= row.limit {
				t.Errorf("limit %v, %d failures: %d would do", row.limit, failures[i], got-1)
			}
		}
		if got := ExactTrials(row.limit, 0, 0.95); got != row.exact {
			t.Errorf("ExactTrials(%v, 0) = %d, want %d", row.limit, got, row.exact)
		}
	}
	if got := WilsonTrials(0.8, 0, 0.95); got != 16 {
		t.Errorf("16 of 16 is the first to prove 80 %%, got %d", got)
	}
}

func TestSampleSize(t *testing.T) {
	drops := []float64{0.01, 0.02, 0.05, 0.10, 0.20}
	for baseline, row := range map[float64][]int64{
		0.99: {2319, 769, 211, 88, 38},
		0.95: {8158, 2213, 435, 141, 49},
		0.90: {14751, 3841, 686, 199, 62},
	} {
		for i, want := range row {
			if got := SampleSize(baseline, baseline-drops[i], 0.05, 0.8); got != want {
				t.Errorf("SampleSize(%v, -%v) = %d, want %d", baseline, drops[i], got, want)
			}
		}
	}
	if got := SampleSize(0.9, 0.9, 0.05, 0.8); got != math.MaxInt64 {
		t.Errorf("equal proportions are told apart by %d", got)
	}
}

func TestDetectableDrop(t *testing.T) {
	for _, row := range []struct {
		n    int64
		want [3]float64 // points, from 99, 95 and 90 %
	}{
		{20, [3]float64{32.5, 36.3, 39.3}},
		{50, [3]float64{15.7, 19.7, 22.7}},
		{100, [3]float64{9.0, 12.4, 15.0}},
		{200, [3]float64{5.2, 8.0, 10.0}},
		{500, [3]float64{2.7, 4.6, 5.9}},
		{1000, [3]float64{1.7, 3.1, 4.1}},
	} {
		for i, baseline := range []float64{0.99, 0.95, 0.90} {
			drop := DetectableDrop(baseline, row.n, 0.05, 0.8)
			got, want := fmt.Sprintf("%.1f", 100*drop), fmt.Sprintf("%.1f", row.want[i])
			if got != want {
				t.Errorf("n=%d from %v: %s points, want %s", row.n, baseline, got, want)
			}
			// The reverse question must come back to the same n.
			if back := SampleSize(baseline, baseline-drop, 0.05, 0.8); back != row.n {
				t.Errorf("n=%d from %v: the drop of %v needs %d", row.n, baseline, drop, back)
			}
		}
	}
	if got := DetectableDrop(0.99, 2, 0.05, 0.8); !math.IsInf(got, 1) {
		t.Errorf("two operations see a drop of %v", got)
	}
}

func TestNonInferiority(t *testing.T) {
	for _, row := range []struct {
		p, margin float64
		want      int64
	}{{0.99, 0.02, 307}, {0.99, 0.01, 1225}, {0.95, 0.05, 235}} {
		if got := NonInferiority(row.p, row.margin, 0.05, 0.8); got != row.want {
			t.Errorf("NonInferiority(%v, %v) = %d, want %d", row.p, row.margin, got, row.want)
		}
	}
}
