package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// shapes are sources of values as they occur, and some that never should.
var shapes = map[string]func(*rand.Rand) int64{
	"uniform":   func(r *rand.Rand) int64 { return r.Int64N(1_000_000) },
	"latency":   func(r *rand.Rand) int64 { return int64(5000 * math.Exp(r.NormFloat64())) },
	"tokens":    func(r *rand.Rand) int64 { return 425 + r.Int64N(426) },
	"wide":      func(r *rand.Rand) int64 { return int64(math.Exp(r.Float64() * 22)) },
	"constant":  func(*rand.Rand) int64 { return 20_000 },
	"zeros":     func(*rand.Rand) int64 { return 0 },
	"outofclip": func(r *rand.Rand) int64 { return r.Int64() - 1<<62 },
}

func distOf(values []int64) *Dist {
	d := &Dist{}
	for _, v := range values {
		d.Record(v)
	}
	return d
}

func draw(shape func(*rand.Rand) int64, seed uint64, n int) []int64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	values := make([]int64, n)
	for i := range values {
		values[i] = shape(rng)
	}
	return values
}

func binaryOf(t testing.TB, d *Dist) []byte {
	t.Helper()
	raw, err := d.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// clamped is what Record is documented to make of values.
func clamped(values []int64) []int64 {
	out := slices.Clone(values)
	for i, v := range out {
		out[i] = min(max(v, 0), MaxValue)
	}
	slices.Sort(out)
	return out
}

// TestExactFacts holds counts, sums, extremes and, up to ExactLimit, every
// percentile against the sorted values.
func TestExactFacts(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{1, 2, 19, 1000, ExactLimit, ExactLimit + 1, 50_000} {
			values := draw(shape, uint64(n), n)
			d, sorted := distOf(values), clamped(values)
			var sum int64
			for _, v := range sorted {
				sum += v
			}
			if d.N() != int64(n) || d.Sum() != sum || d.Min() != sorted[0] || d.Max() != sorted[n-1] {
				t.Fatalf("%s/%d: n %d sum %d min %d max %d, want %d %d %d %d", name, n, d.N(), d.Sum(), d.Min(), d.Max(), n, sum, sorted[0], sorted[n-1])
			}
			if d.Exact() != (n <= ExactLimit) {
				t.Fatalf("%s/%d: exact %v", name, n, d.Exact())
			}
			for _, permille := range []int64{0, 1, 500, 900, 950, 990, 999, 1000} {
				rank := min(max((int64(n)*permille+999)/1000, 1), int64(n))
				want, got := sorted[rank-1], d.Quantile(permille)
				if d.Exact() && got != want || got < want || float64(got-want) > float64(want)/1000 {
					t.Errorf("%s/%d: p%d = %d, want %d", name, n, permille, got, want)
				}
			}
		}
	}
}

// TestStdev compares with arbitrary precision, also where the spread is a
// billionth of the mean.
func TestStdev(t *testing.T) {
	sets := map[string][]int64{
		"Two": {1, 3}, "One": {5}, "Equal": {7, 7, 7}, "LargeMean": {3_000_000_000, 3_000_000_001, 3_000_000_002},
		"Latency": draw(shapes["latency"], 1, 30_000), "Wide": draw(shapes["wide"], 2, 30_000),
	}
	for name, values := range sets {
		got, want := distOf(values).Stdev(), exactStdev(values)
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := (&Dist{}).Stdev(); got != 0 {
		t.Errorf("empty: %v", got)
	}
	if !math.IsNaN((&Dist{}).Mean()) {
		t.Error("the mean of nothing is a number")
	}
}

// exactStdev sums squared differences from the mean as fractions.
func exactStdev(values []int64) float64 {
	n := int64(len(values))
	if n < 2 {
		return 0
	}
	sum := new(big.Int)
	for _, v := range values {
		sum.Add(sum, big.NewInt(v))
	}
	squares := new(big.Int) // of n*v - sum, so n^2 times too large
	for _, v := range values {
		diff := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(v), big.NewInt(n)), sum)
		squares.Add(squares, diff.Mul(diff, diff))
	}
	scale := new(big.Int).Mul(big.NewInt(n*n), big.NewInt(n-1))
	variance, _ := new(big.Rat).SetFrac(squares, scale).Float64()
	return math.Sqrt(variance)
}

// TestBucketsAreHDR: the geometry is HdrHistogram's, bucket by bucket.
func TestBucketsAreHDR(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range countsLength {
		low, high := lowest(i), highest(i)
		if bucketOf(low) != i || bucketOf(high) != i || i > 0 && low != highest(i-1)+1 {
			t.Fatalf("bucket %d holds %d..%d, which fall into %d and %d", i, low, high, bucketOf(low), bucketOf(high))
		}
	}
	h := hdrhistogram.New(1, MaxValue, 3)
	for range 20_000 {
		a := min(int64(math.Exp(rng.Float64()*22)), MaxValue)
		b := min(a+rng.Int64N(a/512+2), MaxValue)
		if got, want := bucketOf(a) == bucketOf(b), h.ValuesAreEquivalent(a, b); got != want {
			t.Fatalf("%d and %d share a bucket: %v, HdrHistogram says %v", a, b, got, want)
		}
	}
}

// TestQuantilesAreHDR: percentiles of buckets are those of hdrhistogram-go.
func TestQuantilesAreHDR(t *testing.T) {
	for _, name := range []string{"uniform", "latency", "tokens", "wide", "constant"} {
		values := clamped(draw(shapes[name], 3, 60_000))
		d, h := distOf(values), hdrhistogram.New(1, MaxValue, 3)
		for _, v := range values {
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		for _, permille := range []int64{1, 10, 250, 500, 900, 950, 990, 999, 1000} {
			want := min(h.ValueAtPercentile(float64(permille)/10), values[len(values)-1])
			if got := d.Quantile(permille); got != want {
				t.Errorf("%s: p%d = %d, want %d", name, permille, got, want)
			}
		}
	}
}

// TestMergeAnyway: 10,000 random splits, each merged in random order and
// grouping, give the bytes of the whole.
func TestMergeAnyway(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range shapes {
			if !yield(name) {
				return
			}
		}
	})
	for range 10_000 {
		// Around ExactLimit in one of fifty, so that both forms and the passage
		// between them are merged.
		n := 1 + rng.IntN(300)
		if rng.IntN(50) == 0 {
			n = ExactLimit - 200 + rng.IntN(400)
		}
		values := draw(shapes[names[rng.IntN(len(names))]], rng.Uint64(), n)
		want := binaryOf(t, distOf(values))
		if got := binaryOf(t, mergedAnyway(t, rng, values)); !bytes.Equal(got, want) {
			t.Fatalf("%d values: split and merged they differ", n)
		}
	}
}

// mergedAnyway splits values, records the parts, sends some of them over the
// wire, and merges random pairs until one is left.
func mergedAnyway(t *testing.T, rng *rand.Rand, values []int64) *Dist {
	t.Helper()
	parts := make([]*Dist, 1+rng.IntN(16))
	for i := range parts {
		parts[i] = &Dist{}
	}
	for _, v := range values {
		parts[rng.IntN(len(parts))].Record(v)
	}
	for len(parts) > 1 {
		i := rng.IntN(len(parts) - 1)
		last := parts[len(parts)-1]
		if rng.IntN(2) == 0 {
			back := &Dist{}
			if err := back.UnmarshalBinary(binaryOf(t, last)); err != nil {
				t.Fatal(err)
			}
			last = back
		}
		parts[i].Merge(last)
		parts = parts[:len(parts)-1]
	}
	return parts[0]
}

// TestMergeLarge merges parts that keep buckets themselves.
func TestMergeLarge(t *testing.T) {
	values := draw(shapes["wide"], 4, 100_000)
	want := binaryOf(t, distOf(values))
	for _, cuts := range [][]int{{50_000}, {10, 90_000}, {ExactLimit, ExactLimit + 1, 70_000}} {
		sum, from := &Dist{}, 0
		for _, to := range append(cuts, len(values)) {
			sum.Merge(distOf(values[from:to]))
			from = to
		}
		if !bytes.Equal(binaryOf(t, sum), want) {
			t.Errorf("cut at %v the merged distribution differs", cuts)
		}
	}
}

func TestMergeLeavesSource(t *testing.T) {
	a, b := distOf(draw(shapes["latency"], 1, 20_000)), distOf(draw(shapes["latency"], 2, 20_000))
	before := binaryOf(t, b)
	a.Merge(b)
	a.Record(17)
	if !bytes.Equal(binaryOf(t, b), before) {
		t.Error("merging changed the source")
	}
	var empty Dist
	empty.Merge(nil)
	empty.Merge(&Dist{})
	if empty.N() != 0 || empty.Min() != 0 {
		t.Errorf("nothing merged into nothing is %+v", empty)
	}
}

func TestRecordN(t *testing.T) {
	a, b := &Dist{}, &Dist{}
	for _, row := range []struct{ v, n int64 }{{5, 3}, {1 << 20, 9000}, {0, 1}, {MaxValue + 5, 2}, {7, 0}, {7, -1}} {
		a.RecordN(row.v, row.n)
		for range row.n {
			b.Record(row.v)
		}
	}
	if !bytes.Equal(binaryOf(t, a), binaryOf(t, b)) || a.Clipped() != 2 {
		t.Errorf("recorded at once and one by one differ, clipped %d", a.Clipped())
	}
}

func TestReset(t *testing.T) {
	for _, n := range []int{10, 20_000} {
		d := distOf(draw(shapes["latency"], 1, n))
		d.Reset()
		values := draw(shapes["tokens"], 2, 100)
		for _, v := range values {
			d.Record(v)
		}
		if !bytes.Equal(binaryOf(t, d), binaryOf(t, distOf(values))) {
			t.Errorf("a reset distribution of %d values remembers", n)
		}
	}
}

func TestEach(t *testing.T) {
	d := distOf([]int64{3, 1, 3, 2})
	var got [][2]int64
	d.Each(func(v, n int64) { got = append(got, [2]int64{v, n}) })
	if diff := cmp.Diff([][2]int64{{1, 1}, {2, 1}, {3, 2}}, got); diff != "" {
		t.Error(diff)
	}
	large := distOf(draw(shapes["wide"], 1, 20_000))
	var n, last int64 = 0, -1
	large.Each(func(v, c int64) {
		if v <= last || v > large.Max() {
			t.Fatalf("value %d after %d, maximum %d", v, last, large.Max())
		}
		n, last = n+c, v
	})
	if n != large.N() {
		t.Errorf("%d values, want %d", n, large.N())
	}
}

func TestCodecRoundTrip(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{0, 1, 500, ExactLimit, ExactLimit + 1, 30_000} {
			d := distOf(draw(shape, 11, n))
			raw, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			var back Dist
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatalf("%s/%d: %v", name, n, err)
			}
			if !bytes.Equal(binaryOf(t, &back), binaryOf(t, d)) || back.Stdev() != d.Stdev() || back.Quantile(990) != d.Quantile(990) {
				t.Errorf("%s/%d does not survive the wire", name, n)
			}
		}
	}
}

func TestCodecRefuses(t *testing.T) {
	good := binaryOf(t, distOf(draw(shapes["latency"], 1, 300)))
	buckets := binaryOf(t, distOf(draw(shapes["latency"], 1, 9000)))
	rows := map[string][]byte{
		"Empty": {}, "Version": append([]byte{9}, good[1:]...), "Form": append([]byte{1, 2}, good[2:]...),
		"ExactAsBuckets": append([]byte{1, 1}, good[2:]...), "BucketsAsExact": append([]byte{1, 0}, buckets[2:]...),
		"Truncated": good[:len(good)-1], "TruncatedBuckets": buckets[:len(buckets)-1], "Longer": append(slices.Clone(good), 0),
	}
	for _, n := range []int{300, 9000} {
		lie := func(name string, change func(*Dist)) {
			d := distOf(draw(shapes["latency"], 1, n))
			change(d)
			rows[fmt.Sprint(name, n)] = binaryOf(t, d)
		}
		lie("Max", func(d *Dist) { d.max *= 2 })
		lie("Min", func(d *Dist) { d.min /= 2 })
		lie("Sum", func(d *Dist) { d.sum *= 2 })
		lie("Clipped", func(d *Dist) { d.clipped = d.n + 1 })
		lie("Count", func(d *Dist) { d.n++ })
	}
	for name, raw := range rows {
		d := distOf([]int64{1, 2, 3})
		if err := d.UnmarshalBinary(raw); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if d.N() != 0 {
			t.Errorf("%s: left half a distribution behind", name)
		}
	}
}

// FuzzDist: whatever decodes is consistent, and encodes to what decodes to the
// same.
func FuzzDist(f *testing.F) {
	for _, n := range []int{0, 3, 300, 9000} {
		f.Add(binaryOf(f, distOf(draw(shapes["latency"], 1, n))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d Dist
		if d.UnmarshalBinary(raw) != nil {
			return
		}
		again := binaryOf(t, &d)
		var back Dist
		if err := back.UnmarshalBinary(again); err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if !bytes.Equal(binaryOf(t, &back), again) {
			t.Fatal("two encodings differ")
		}
		var n int64
		d.Each(func(v, c int64) {
			n += c
			if v < 0 || v > d.Max() || c <= 0 {
				t.Fatalf("value %d × %d with maximum %d", v, c, d.Max())
			}
		})
		if n != d.N() || d.Quantile(1000) > d.Max() || d.Quantile(1) > d.Quantile(999) || math.IsNaN(d.Stdev()) {
			t.Fatalf("n %d of %d, quantiles %d %d, max %d", n, d.N(), d.Quantile(1), d.Quantile(999), d.Max())
		}
	})
}

// TestHDR: the exported histogram, read back by hdrhistogram-go, has the same
// values.
func TestHDR(t *testing.T) {
	for name, shape := range shapes {
		for _, n := range []int{0, 1, 500, 40_000} {
			d := distOf(draw(shape, 21, n))
			text, err := d.HDR()
			if err != nil {
				t.Fatal(err)
			}
			h, err := hdrhistogram.Decode([]byte(text))
			if err != nil {
				t.Fatalf("%s/%d: %v", name, n, err)
			}
			if h.TotalCount() != d.N() {
				t.Fatalf("%s/%d: %d values came back", name, n, h.TotalCount())
			}
			if n == 0 {
				continue
			}
			for _, permille := range []int64{1, 500, 900, 990, 1000} {
				got, want := h.ValueAtPercentile(float64(permille)/10), d.Quantile(permille)
				if bucketOf(min(got, MaxValue)) != bucketOf(want) {
					t.Errorf("%s/%d: p%d = %d, want the bucket of %d", name, n, permille, got, want)
				}
			}
		}
	}
}
