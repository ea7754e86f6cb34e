package stat

import (
	"math"
	"testing"
)

func TestStudentT(t *testing.T) {
	for _, row := range []struct{ df, conf, want float64 }{
		{1, 0.95, 12.7062047361747},
		{2, 0.95, 4.302652729749464},
		{3, 0.95, 3.18244630528371},
		{9, 0.95, 2.262157162798206},
		{29, 0.99, 2.756385903670605},
		{999, 0.95, 1.96234146113345},
		{1e9, 0.95, 1.959963987},
	} {
		tol := 1e-12
		if row.df > 1e6 {
			tol = 1e-8
		}
		near(t, studentT(row.df, row.conf), row.want, tol)
	}
}

func TestMeanInterval(t *testing.T) {
	half := 2.262157162798206 * 2 / math.Sqrt(10)
	sameInterval(t, MeanInterval(10, 647, 2, 0.95), Interval{647 - half, 647 + half}, 1e-9)
	sameInterval(t, MeanInterval(500, 3, 0, 0.95), Interval{3, 3}, 0)
	for n := range int64(2) {
		iv := MeanInterval(n, 5, 0, 0.95)
		if !math.IsInf(iv.Lo, -1) || !math.IsInf(iv.Hi, 1) {
			t.Errorf("n=%d bounds the mean by %v", n, iv)
		}
	}
}
