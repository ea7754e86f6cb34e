package metrics

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Geometry of the histogram: 1 to 3.6e9 units (microseconds: 1 µs to 1 h) at
// three significant digits, as HdrHistogram lays it out. 2,048 sub-buckets of
// which the upper half is new in each power of two.
const (
	MaxValue     = 3_600_000_000
	ExactLimit   = 8192 // values kept exactly before a Dist falls back to buckets
	subBuckets   = 2048
	subHalf      = subBuckets / 2
	subHalfBits  = 10
	bucketCount  = 22 // 2048 << 21 > MaxValue
	pageCount    = bucketCount + 1
	countsLength = pageCount * subHalf
)

// page holds the counts of one power of two. Pages are made when a value first
// falls into them: latencies of one target fill three or four of the 23.
type page [subHalf]int64

// Dist is a distribution of non-negative integers (microseconds, tokens).
//
// Up to ExactLimit values it keeps every value, so percentiles are exact; from
// there on it keeps HDR bucket counts (relative error below 0.1 %). Which of
// the two holds depends on the number of values alone, so any split over
// agents and any order of merging give the same Dist, byte for byte.
// The zero value is empty and ready. Not safe for concurrent use, reading
// included (a percentile sorts): one per worker, merged afterwards.
type Dist struct {
	n        int64
	sum      int64
	sqHi     uint64 // sum of squares, 128 bits
	sqLo     uint64
	min, max int64
	clipped  int64 // values above MaxValue, recorded as MaxValue
	exact    []int64
	pages    []*page // nil while exact, else pageCount
}

// Record adds one value. A negative one counts as zero, one above MaxValue as
// MaxValue: a target that claims absurd figures must not overflow the sums.
func (d *Dist) Record(v int64) {
	v = d.clamp(v, 1)
	if d.n == 0 || v < d.min {
		d.min = v
	}
	if v > d.max {
		d.max = v
	}
	d.n++
	d.sum += v
	// v is below 2^32: its square fits 64 bits.
	lo, carry := bits.Add64(d.sqLo, uint64(v)*uint64(v), 0)
	d.sqLo, d.sqHi = lo, d.sqHi+carry
	if d.pages == nil {
		if d.n <= ExactLimit {
			d.exact = append(d.exact, v)
			return
		}
		d.spill()
	}
	*d.bucket(v)++
}

// RecordN adds a value n times.
func (d *Dist) RecordN(v, n int64) {
	if n <= 0 {
		return
	}
	v = d.clamp(v, n)
	if d.n == 0 || v < d.min {
		d.min = v
	}
	d.max = max(d.max, v)
	d.n += n
	d.sum += v * n
	d.addSquares(bits.Mul64(uint64(v)*uint64(v), uint64(n)))
	if d.pages == nil && d.n > ExactLimit {
		d.spill()
	}
	if d.pages != nil {
		*d.bucket(v) += n
		return
	}
	for range n {
		d.exact = append(d.exact, v)
	}
}

func (d *Dist) clamp(v, n int64) int64 {
	if v > MaxValue {
		d.clipped += n
		return MaxValue
	}
	return max(v, 0)
}

func (d *Dist) addSquares(hi, lo uint64) {
	var carry uint64
	d.sqLo, carry = bits.Add64(d.sqLo, lo, 0)
	d.sqHi += hi + carry
}

// bucket is the counter a value belongs to.
func (d *Dist) bucket(v int64) *int64 {
	i := bucketOf(v)
	p := d.pages[i>>subHalfBits]
	if p == nil {
		p = new(page)
		d.pages[i>>subHalfBits] = p
	}
	return &p[i&(subHalf-1)]
}

// spill turns the kept values into bucket counts.
func (d *Dist) spill() {
	d.pages = make([]*page, pageCount)
	for _, v := range d.exact {
		*d.bucket(v)++
	}
	d.exact = nil
}

// Reset empties the Dist and keeps its memory for the next values.
func (d *Dist) Reset() {
	*d = Dist{exact: d.exact[:0]}
}

// Merge adds all of o, which stays as it is. The result does not depend on the
// order of merges.
func (d *Dist) Merge(o *Dist) {
	if o == nil || o.n == 0 {
		return
	}
	if d.n == 0 || o.min < d.min {
		d.min = o.min
	}
	d.max = max(d.max, o.max)
	d.n += o.n
	d.sum += o.sum
	d.clipped += o.clipped
	d.addSquares(o.sqHi, o.sqLo)
	if d.pages == nil && d.n > ExactLimit {
		d.spill()
	}
	switch {
	case d.pages == nil:
		d.exact = append(d.exact, o.exact...)
	case o.pages == nil:
		for _, v := range o.exact {
			*d.bucket(v)++
		}
	default:
		d.mergePages(o)
	}
}

func (d *Dist) mergePages(o *Dist) {
	for i, from := range o.pages {
		if from == nil {
			continue
		}
		if d.pages[i] == nil {
			d.pages[i] = new(page)
		}
		to := d.pages[i]
		for k, c := range from {
			to[k] += c
		}
	}
}

// N is the number of values.
func (d *Dist) N() int64 { return d.n }

// Sum is the sum of all values.
func (d *Dist) Sum() int64 { return d.sum }

// Min is the smallest value; 0 when empty.
func (d *Dist) Min() int64 { return d.min }

// Max is the largest value; 0 when empty.
func (d *Dist) Max() int64 { return d.max }

// Clipped counts values above MaxValue; they were recorded as MaxValue.
func (d *Dist) Clipped() int64 { return d.clipped }

// Exact reports whether every value is still kept.
func (d *Dist) Exact() bool { return d.pages == nil }

// Mean is the arithmetic mean; NaN when empty.
func (d *Dist) Mean() float64 {
	if d.n == 0 {
		return math.NaN()
	}
	return float64(d.sum) / float64(d.n)
}

// Stdev is the sample standard deviation (n-1); 0 below two values. It is
// computed from the exact integer sums, sqrt((n*sq - sum^2) / (n*(n-1))), so a
// large mean does not cancel a small spread away.
func (d *Dist) Stdev() float64 {
	if d.n < 2 {
		return 0
	}
	sq := new(big.Int).SetUint64(d.sqHi)
	sq.Lsh(sq, 64).Add(sq, new(big.Int).SetUint64(d.sqLo))
	n, sum := big.NewInt(d.n), big.NewInt(d.sum)
	spread := new(big.Int).Sub(sq.Mul(sq, n), sum.Mul(sum, sum))
	pairs := new(big.Int).Mul(n, big.NewInt(d.n-1))
	variance, _ := new(big.Rat).SetFrac(spread, pairs).Float64()
	return math.Sqrt(variance)
}

// Rank is the value of the given 1-based rank in ascending order, clamped to
// 1..N: the value itself while exact, else the highest value of its bucket
// (never above Max). 0 when empty.
func (d *Dist) Rank(rank int64) int64 {
	if d.n == 0 {
		return 0
	}
	rank = min(max(rank, 1), d.n)
	if d.pages == nil {
		if !slices.IsSorted(d.exact) {
			slices.Sort(d.exact)
		}
		return d.exact[rank-1]
	}
	var seen int64
	for i, c := range d.buckets {
		if seen += c; seen >= rank {
			return min(highest(i), d.max)
		}
	}
	return d.max
}

// buckets ranges over the filled buckets in ascending order.
func (d *Dist) buckets(yield func(i int, count int64) bool) {
	for p, counts := range d.pages {
		if counts == nil {
			continue
		}
		for k, c := range counts {
			if c > 0 && !yield(p<<subHalfBits+k, c) {
				return
			}
		}
	}
}

// Quantile is the nearest-rank quantile: the value of rank ceil(n*permille/1000).
func (d *Dist) Quantile(permille int64) int64 {
	return d.Rank((d.n*permille + 999) / 1000)
}

// Each calls f for every distinct value (or bucket's highest value, never above
// Max) with its count, in ascending order.
func (d *Dist) Each(f func(value, count int64)) {
	if d.pages == nil {
		d.Rank(1) // sorts
		for i := 0; i < len(d.exact); {
			j := i
			for j < len(d.exact) && d.exact[j] == d.exact[i] {
				j++
			}
			f(d.exact[i], int64(j-i))
			i = j
		}
		return
	}
	for i, c := range d.buckets {
		f(min(highest(i), d.max), c)
	}
}

// bucketOf is HdrHistogram's index of a value: the power of two picks the
// bucket, the next ten bits the sub-bucket.
func bucketOf(v int64) int {
	bucket := bits.Len64(uint64(v)|(subBuckets-1)) - (subHalfBits + 1)
	sub := int(v >> bucket)
	return (bucket+1)<<subHalfBits + sub - subHalf
}

// lowest and highest bound the values of one bucket.
func lowest(i int) int64 {
	bucket, sub := i>>subHalfBits-1, i&(subHalf-1)+subHalf
	if bucket < 0 {
		bucket, sub = 0, sub-subHalf
	}
	return int64(sub) << bucket
}

func highest(i int) int64 {
	bucket := max(i>>subHalfBits-1, 0)
	return lowest(i) + 1<<bucket - 1
}
