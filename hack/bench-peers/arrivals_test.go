package main

import (
	"math"
	"testing"
	"time"
)

// grid is what a perfect generator of 1,000/s makes in a second, each arrival moved
// by shift.
func grid(shift func(k int) time.Duration) []int64 {
	at := make([]int64, 1000)
	for k := range at {
		at[k] = int64(time.Hour) + int64(k)*int64(time.Millisecond) + int64(shift(k))
	}
	return at
}

func TestEven(t *testing.T) {
	for _, tc := range []struct {
		name  string
		shift func(k int) time.Duration
		want  evenness
	}{
		{"Perfect", func(int) time.Duration { return 0 }, evenness{}},
		{"LateFirstArrival", func(k int) time.Duration {
			if k == 0 {
				return 3 * time.Millisecond
			}
			return 0
		}, evenness{Lag: 0}},
		{"EveryTenthLate", func(k int) time.Duration {
			if k%10 == 0 {
				return 4 * time.Millisecond
			}
			return 0
		}, evenness{Lag: 0.001}}, // in its neighbour's place, whose name the server does not know
		{"SecondHalfTogether", func(k int) time.Duration { return time.Duration(min(k, 500)-k) * time.Millisecond },
			evenness{Lag: 0.490, CV: 1.41, Worst: 4, Herd: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := even(grid(tc.shift), 1000, time.Second)
			near := func(a, b float64) bool { return math.Abs(a-b) < 0.02*max(1, b) }
			if got.Herd != tc.want.Herd || got.Total != 0 || !near(got.CV, tc.want.CV) || !near(got.Worst, tc.want.Worst) || !near(got.Lag*10, tc.want.Lag*10) {
				t.Errorf("got %+v, want %+v", *got, tc.want)
			}
		})
	}
}

func TestEvenCountsWhatIsMissing(t *testing.T) {
	got := even(grid(func(int) time.Duration { return 0 })[:900], 1000, time.Second)
	if want := -0.1; math.Abs(got.Total-want) > 1e-9 {
		t.Errorf("error of the total: got %v, want %v", got.Total, want)
	}
}
