package prom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"ordeal/metrics"
)

// Upper bounds of classic buckets, in µs. Calls last from a millisecond to a
// minute; a generator that is 10 ms late is saturated on any target, and the
// clocks of a fleet agree to some milliseconds.
var (
	callBounds = []int64{1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
		1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000}
	lateBounds = []int64{100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000}
)

// counts is a growing distribution in buckets that never change. A value is put
// into its bucket once, when it comes in. A metrics.Dist kept for the whole life
// of the process would not do: it rounds its values when it outgrows its exact
// form, that moves some of them into the next bucket, and a bucket that shrinks
// is a restart to Prometheus.
//
// It has no lock; its owner has.
type counts struct {
	bounds  []int64 // of the classic buckets
	n       int64
	sum     int64 // µs
	zero    int64
	native  [nativeLength]int64
	classic []int64 // one per bound; what is above the last is in n alone
}

func newCounts(bounds []int64) counts {
	return counts{bounds: bounds, classic: make([]int64, len(bounds))}
}

// add puts in all of d. Beyond metrics.ExactLimit values in one d, they are
// known to 0.1 %; the sum is exact always.
func (c *counts) add(d *metrics.Dist) {
	if d.N() == 0 {
		return
	}
	d.Each(c.place)
	c.sum += d.Sum()
}

// record puts in one duration; a negative one counts as zero.
func (c *counts) record(d time.Duration) {
	us := min(max(d.Microseconds(), 0), metrics.MaxValue)
	c.place(us, 1)
	c.sum += us
}

func (c *counts) place(us, n int64) {
	c.n += n
	if us == 0 {
		c.zero += n
	} else {
		c.native[nativeIndex(us)] += n
	}
	if i, _ := slices.BinarySearch(c.bounds, us); i < len(c.bounds) {
		c.classic[i] += n
	}
}

// metric is the distribution as it is now.
func (c *counts) metric(desc *prometheus.Desc, created time.Time, labels ...string) prometheus.Metric {
	filled := make(map[int]int64)
	for i, n := range c.native {
		if n > 0 {
			filled[firstBucket+i] = n
		}
	}
	native, err := prometheus.NewConstNativeHistogram(desc, uint64(c.n), float64(c.sum)/1e6, filled, nil,
		uint64(c.zero), schema, prometheus.DefNativeHistogramZeroThreshold, created, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return dual{native, c.buckets()}
}

func (c *counts) buckets() []*dto.Bucket {
	buckets, below := make([]*dto.Bucket, len(c.bounds)), uint64(0)
	for i, n := range c.classic {
		below += uint64(n)
		buckets[i] = &dto.Bucket{CumulativeCount: new(below), UpperBound: new(float64(c.bounds[i]) / 1e6)}
	}
	return buckets
}

// dual is a native histogram with classic buckets beside; the library makes
// constant ones of one kind or the other.
type dual struct {
	prometheus.Metric
	classic []*dto.Bucket
}

// Write implements prometheus.Metric.
func (m dual) Write(out *dto.Metric) error {
	if err := m.Metric.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = m.classic
	return nil
}
