package main

import (
	"math"
	"slices"
	"time"
)

// evenness is how arrivals at the server keep to the plan of one every 1/rate.
type evenness struct {
	Total float64 `json:"total_error"` // arrivals over those planned, less 1
	CV    float64 `json:"cv_100ms"`    // deviation of 100 ms buckets from the plan, over the plan
	Worst float64 `json:"worst_100ms"` // the largest of these deviations
	Lag   float64 `json:"lag_p99_s"`   // p99 of how far the k-th arrival is from its place
	Herd  bool    `json:"herd"`        // a bucket more than 10 % off, or arrivals over 20 ms
}

const bucket = 100 * time.Millisecond

// even judges arrivals, in ns and in order, by the plan. The plan's start is where it
// fits best: a generator may be late, if it is always equally late.
func even(arrivals []int64, rate int, length time.Duration) *evenness {
	if len(arrivals) < 10 {
		return nil
	}
	arrivals = slices.Sorted(slices.Values(arrivals))
	planned := float64(rate) * length.Seconds()
	e := &evenness{Total: float64(len(arrivals))/planned - 1}
	gap := float64(time.Second) / float64(rate)
	start, lags := fit(arrivals, gap)
	e.Lag = lags[len(lags)*99/100] / 1e9
	e.CV, e.Worst = spread(arrivals, start-int64(gap/2), rate, length)
	e.Herd = e.Worst > 0.10 || e.Lag > 0.020
	return e
}

// fit returns the start of the plan that half of the arrivals are behind and half
// ahead of, and how far each is from its place, sorted.
func fit(arrivals []int64, gap float64) (start int64, lags []float64) {
	offsets := make([]float64, len(arrivals))
	for k, at := range arrivals {
		offsets[k] = float64(at-arrivals[0]) - float64(k)*gap
	}
	middle := slices.Sorted(slices.Values(offsets))[len(offsets)/2]
	for _, o := range offsets {
		lags = append(lags, math.Abs(o-middle))
	}
	slices.Sort(lags)
	return arrivals[0] + int64(middle), lags
}

func spread(arrivals []int64, start int64, rate int, length time.Duration) (cv, worst float64) {
	counts := make([]float64, length/bucket)
	for _, at := range arrivals {
		if i := (at - start) / int64(bucket); at >= start && i < int64(len(counts)) {
			counts[i]++
		}
	}
	want := float64(rate) * bucket.Seconds()
	var squares float64
	for _, n := range counts {
		off := n/want - 1
		squares += off * off
		worst = max(worst, math.Abs(off))
	}
	return math.Sqrt(squares / float64(len(counts))), worst
}
