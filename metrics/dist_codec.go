package metrics

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// The binary form of a Dist, all integers as varints:
//
//	version 1 | form (0 exact, 1 buckets) | n | sum | sqHi | sqLo | min | max | clipped |
//	exact:   the sorted values as differences
//	buckets: pairs (empty buckets skipped, count) until n values are placed
const distVersion = 1

var errDist = errors.New("malformed distribution")

// MarshalBinary encodes the Dist; equal contents give equal bytes.
func (d *Dist) MarshalBinary() ([]byte, error) {
	buf := make([]byte, 0, 64+2*len(d.exact))
	form := uint64(0)
	if d.pages != nil {
		form = 1
	}
	for _, v := range []uint64{distVersion, form, uint64(d.n), uint64(d.sum), d.sqHi, d.sqLo, uint64(d.min), uint64(d.max), uint64(d.clipped)} {
		buf = binary.AppendUvarint(buf, v)
	}
	if form == 0 {
		slices.Sort(d.exact)
		last := int64(0)
		for _, v := range d.exact {
			buf = binary.AppendUvarint(buf, uint64(v-last))
			last = v
		}
		return buf, nil
	}
	next := 0
	for i, c := range d.buckets {
		buf = binary.AppendUvarint(buf, uint64(i-next))
		buf = binary.AppendUvarint(buf, uint64(c))
		next = i + 1
	}
	return buf, nil
}

// UnmarshalBinary decodes what MarshalBinary wrote; anything else is an error
// and leaves the Dist empty.
func (d *Dist) UnmarshalBinary(data []byte) error {
	*d = Dist{}
	r := varints{data: data}
	if v := r.next(); v != distVersion {
		return fmt.Errorf("%w: version %d, want %d", errDist, v, distVersion)
	}
	form := r.next()
	got := Dist{n: r.int(), sum: r.int(), sqHi: r.next(), sqLo: r.next(), min: r.int(), max: r.int(), clipped: r.int()}
	if r.bad || form > 1 || (form == 0) != (got.n <= ExactLimit) || got.min > got.max || got.max > MaxValue || got.clipped > got.n {
		return errDist
	}
	if form == 0 {
		got.readExact(&r)
	} else {
		got.readCounts(&r)
	}
	if r.bad || len(r.data) != 0 {
		return errDist
	}
	*d = got
	return nil
}

// readExact reads the values and checks that they add up to the head.
func (d *Dist) readExact(r *varints) {
	d.exact = make([]int64, 0, min(d.n, int64(len(r.data))))
	var last, sum int64
	var sqHi, sqLo uint64
	for range d.n {
		step := r.int()
		if r.bad || step > MaxValue-last {
			r.bad = true
			return
		}
		last += step
		d.exact = append(d.exact, last)
		sum += last
		var carry uint64
		sqLo, carry = bits.Add64(sqLo, uint64(last)*uint64(last), 0) // last is below 2^32
		sqHi += carry
	}
	r.bad = sum != d.sum || sqHi != d.sqHi || sqLo != d.sqLo || last != d.max || d.n > 0 && d.exact[0] != d.min
}

// readCounts reads the buckets and checks that the head is possible with them.
func (d *Dist) readCounts(r *varints) {
	d.pages = make([]*page, pageCount)
	left, at := d.n, int64(0)
	var least, most float64 // bounds of the sum
	for left > 0 {
		skip, c := r.int(), r.int()
		if r.bad || skip >= countsLength-at || c <= 0 || c > left {
			r.bad = true
			return
		}
		at += skip
		if left == d.n && bucketOf(d.min) != int(at) {
			r.bad = true
		}
		low, high := lowest(int(at)), highest(int(at))
		*d.bucket(low) = c
		least += float64(low) * float64(c)
		most += float64(high) * float64(c)
		left -= c
		at++
	}
	const rounding = 1e-9
	if bucketOf(d.max) != int(at-1) || float64(d.sum) < least*(1-rounding) || float64(d.sum) > most*(1+rounding) {
		r.bad = true
	}
}

// MarshalJSON writes the binary form as a base64 string.
func (d *Dist) MarshalJSON() ([]byte, error) {
	raw, err := d.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return json.Marshal(raw)
}

// UnmarshalJSON reads the base64 string.
func (d *Dist) UnmarshalJSON(data []byte) error {
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("%w: %w", errDist, err)
	}
	return d.UnmarshalBinary(raw)
}

// varints reads unsigned varints until something is wrong, then stays bad.
type varints struct {
	data []byte
	bad  bool
}

func (r *varints) next() uint64 {
	if len(r.data) > 0 && r.data[0] < 0x80 { // most differences and counts are one byte
		v := r.data[0]
		r.data = r.data[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// int is a varint that must fit a non-negative int64.
func (r *varints) int() int64 {
	v := r.next()
	if v > 1<<63-1 {
		r.bad = true
		return 0
	}
	return int64(v)
}
