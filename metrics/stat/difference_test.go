package stat

import "testing"

func TestNewcombe(t *testing.T) {
	for _, row := range []struct {
		k1, n1, k2, n2 int64
		want           Interval
		tol            float64
	}{
		{56, 70, 48, 80, Interval{0.0524, 0.3339}, 5e-5}, // Newcombe 1998, table II, row (a), method 10
		{9, 10, 3, 10, Interval{0.1705, 0.8090}, 5e-5},   // row (b)
		{99, 100, 95, 100, Interval{-0.013, 0.102}, 5e-4},
		{990, 1000, 950, 1000, Interval{0.026, 0.056}, 5e-4},
		{0, 0, 5, 10, Interval{-1, 1}, 0},
	} {
		got := Newcombe(row.k1, row.n1, row.k2, row.n2, 0.95)
		sameInterval(t, got, row.want, row.tol)
		swapped := Newcombe(row.k2, row.n2, row.k1, row.n1, 0.95)
		sameInterval(t, Interval{-swapped.Hi, -swapped.Lo}, got, 1e-15)
	}
}

func TestMcNemar(t *testing.T) {
	for _, row := range []struct {
		b, c int64
		want float64
	}{
		{5, 0, 0.0625}, {6, 0, 0.03125}, {8, 2, 0.109375}, {10, 4, 0.179565}, {3, 3, 1}, {0, 0, 1}, {2, 8, 0.109375},
	} {
		near(t, McNemar(row.b, row.c), row.want, 5e-7)
	}
}
