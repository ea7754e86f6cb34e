package prom

import (
	"math"
	"slices"

	"ordeal/metrics"
)

// The native buckets of schema 4: bucket k holds the seconds in
// (2^((k-1)/16), 2^(k/16)]. Durations are whole microseconds up to
// metrics.MaxValue, so 509 buckets hold all but zero, which has its own.
const (
	schema       = 4
	perOctave    = 1 << schema
	firstBucket  = -318 // holds 1 µs
	lastBucket   = 190  // holds metrics.MaxValue, an hour
	nativeLength = lastBucket - firstBucket + 1
)

// nativeBounds has the largest whole number of microseconds of each native
// bucket, from firstBucket on. Integers are enough: the bounds between powers
// of two are irrational, and no duration meets one.
var nativeBounds = boundsOf()

func boundsOf() (bounds [nativeLength]int64) {
	for i := range bounds {
		seconds := math.Exp2(float64(i+firstBucket) / perOctave)
		bounds[i] = int64(math.Floor(seconds * 1e6))
	}
	return bounds
}

// nativeIndex is the index in nativeBounds of the bucket of a duration, which
// is 1 µs to metrics.MaxValue.
func nativeIndex(us int64) int {
	i, _ := slices.BinarySearch(nativeBounds[:], min(us, metrics.MaxValue))
	return i
}
