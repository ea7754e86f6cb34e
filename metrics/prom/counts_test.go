package prom

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/testing/protocmp"

	"ordeal/metrics"
)

// library is a histogram of the client library with our geometry.
func library(bounds []int64) prometheus.Histogram {
	seconds := make([]float64, len(bounds))
	for i, b := range bounds {
		seconds[i] = float64(b) / 1e6
	}
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Help: "x", Buckets: seconds,
		NativeHistogramBucketFactor: 1.045}) // the smallest factor of schema 4 is 1.0443
}

func written(t testing.TB, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram()
}

// edges are the values on both sides of every bound there is, and the ends.
func edges() []int64 {
	values := []int64{0, 1, metrics.MaxValue - 1, metrics.MaxValue}
	for _, b := range slices.Concat(nativeBounds[:], callBounds) {
		if b > 0 && b < metrics.MaxValue {
			values = append(values, b-1, b, b+1)
		}
	}
	return values
}

func drawn(seed uint64, n int) []int64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(math.Exp(r.Float64() * math.Log(metrics.MaxValue))) // every octave alike
	}
	return values
}

// TestAgainstLibrary feeds the same values to the client library's histogram and
// to ours, and compares spans, deltas and classic buckets.
func TestAgainstLibrary(t *testing.T) {
	for name, values := range map[string][]int64{
		"Empty": nil, "Zero": {0, 0}, "One": {1}, "Longest": {metrics.MaxValue}, "SmallGap": {1000, 1100}, "WideGap": {10, 5_000_000, 5_000_001},
		"Edges": edges(), "EveryOctave": drawn(1, 3000),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := newHistogram("x", "x", callBounds), library(callBounds)
			for part := range slices.Chunk(values, 500) { // deltas
				ours.add(distOf(part...))
			}
			for _, us := range values {
				theirs.Observe(float64(us) / 1e6)
			}
			got, want := written(t, ours.now()), written(t, theirs)
			if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&dto.Histogram{}, "sample_sum", "created_timestamp")); diff != "" {
				t.Error(diff)
			}
			if got, want := got.GetSampleSum(), want.GetSampleSum(); math.Abs(got-want) > 1e-9*want {
				t.Errorf("sum %v, want %v", got, want)
			}
		})
	}
}

// TestRecord: single durations go where a distribution of them goes, and what is
// out of range to the ends.
func TestRecord(t *testing.T) {
	one, all := newHistogram("x", "x", lateBounds), newHistogram("x", "x", lateBounds)
	for _, us := range []int64{0, 1, 99, 100, 101, 1_000_000, 1_000_001, metrics.MaxValue} {
		one.record(time.Duration(us) * time.Microsecond)
		all.add(distOf(us))
	}
	one.record(-time.Second)
	all.add(distOf(0))
	one.record(2 * time.Hour)
	all.add(distOf(metrics.MaxValue))
	all.created = one.created
	if diff := cmp.Diff(written(t, all.now()), written(t, one.now()), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestLargeDelta: a delta beyond metrics.ExactLimit values is known to 0.1 %, so
// a cumulative count misses at most the values that close below its bound.
func TestLargeDelta(t *testing.T) {
	values := drawn(2, 4*metrics.ExactLimit)
	d := distOf(values...)
	if d.Exact() {
		t.Fatal("the distribution is still exact: nothing is tested")
	}
	h := newHistogram("x", "x", callBounds)
	h.add(d)
	got := written(t, h.now())
	if got.GetSampleCount() != uint64(len(values)) || got.GetSampleSum() != float64(d.Sum())/1e6 {
		t.Errorf("count %d and sum %v, want %d and %v", got.GetSampleCount(), got.GetSampleSum(), len(values), float64(d.Sum())/1e6)
	}
	for i, b := range got.GetBucket() {
		var below, near uint64
		for _, us := range values {
			if us <= callBounds[i] {
				below++
				if us > callBounds[i]*999/1000 {
					near++
				}
			}
		}
		if c := b.GetCumulativeCount(); c > below || c < below-near {
			t.Errorf("le %v: %d values, want %d, or up to %d less", b.GetUpperBound(), c, below, near)
		}
	}
}

// TestNeverFalls: no bucket shrinks between two scrapes, whatever comes in; to
// Prometheus that would be a restart.
func TestNeverFalls(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	h := newHistogram("x", "x", callBounds)
	var before counts
	for range 60 {
		values := edges()
		r.Shuffle(len(values), func(i, k int) { values[i], values[k] = values[k], values[i] })
		if r.IntN(4) == 0 {
			values = drawn(r.Uint64(), 3*metrics.ExactLimit)
		}
		h.add(distOf(values[:r.IntN(len(values))]...))
		falls := func(was, is []int64) bool {
			return was != nil && !slices.EqualFunc(was, is, func(was, is int64) bool { return was <= is })
		}
		if h.counts.n < before.n || h.counts.sum < before.sum || h.counts.zero < before.zero ||
			falls(before.native[:], h.counts.native[:]) || falls(before.classic, h.counts.classic) {
			t.Fatal("a count fell")
		}
		before = h.counts
		before.classic = slices.Clone(h.counts.classic)
	}
	if h.counts.n < 10_000 {
		t.Errorf("only %d values came in: nothing is tested", h.counts.n)
	}
}
