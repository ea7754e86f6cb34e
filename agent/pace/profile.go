package pace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// Limits of a Profile: within them no product of its arithmetic needs more than
// 126 bits.
const (
	MaxLevel  = 1_000_000_000_000           // of a ramp: a billion arrivals per second
	MaxLength = 600 * time.Hour             // of a whole profile: 25 days
	Resolved  = time.Microsecond            // ramps last a whole number of these
	perUnit   = 2 * billion                 // one arrival, in half thousandths times µs per second
	longest   = int64(MaxLength / Resolved) // µs
)

// Ramp is a stretch of a profile in which its level goes from From to To in a
// straight line: thousandths of an arrival per second, or callers.
type Ramp struct {
	For      time.Duration
	From, To int64
}

// Profile is a level over time, made of ramps one after the other. As a Shape the
// level is thousandths of an arrival per second: arrival i is due where the
// integral of the rate, which all arrivals before have used up, begins to exceed
// i, in whole microseconds, rounded down. So an even rate makes the arrivals of
// Constant, and a stretch without a rate makes none:
//
//	rate  2/s ┤   ╱▔▔▔▔╲                arrivals within [a, b):
//	          ┤  ╱      ╲                 ceil of the integral until b
//	          ┤ ╱        ╲               - ceil of the integral until a
//	       0  ┼╱──────────╲─────▶ t
//	            0  1 2 3 4  5
//
// The zero value is over at once. It does not change and is safe for concurrent
// use.
type Profile struct{ stretches []stretch }

// stretch is a ramp in its place. Times in µs.
type stretch struct {
	start, length uint64
	from, to      uint64
	before        word // integral of the ramps before it, doubled
}

// NewProfile checks the ramps. Ramps of no length are steps, and left out.
func NewProfile(ramps []Ramp) (Profile, error) {
	var p Profile
	var problems []error
	var at uint64
	var sum word
	for i, r := range ramps {
		if err := r.check(); err != nil {
			problems = append(problems, fmt.Errorf("pace: ramp %d of a profile: %w", i+1, err))
			continue
		}
		if r.For == 0 {
			continue
		}
		s := stretch{start: at, length: uint64(r.For / Resolved), from: uint64(r.From), to: uint64(r.To), before: sum}
		p.stretches = append(p.stretches, s)
		at += s.length
		sum = sum.plus(product(s.length, s.from+s.to))
		if at > uint64(longest) {
			return Profile{}, fmt.Errorf("pace: a profile of more than %v: shorten it", MaxLength)
		}
	}
	return p, errors.Join(problems...)
}

func (r Ramp) check() error {
	switch {
	case r.For < 0 || r.For%Resolved != 0 || r.For > MaxLength:
		return fmt.Errorf("it lasts %v: want a whole number of microseconds up to %v", r.For, MaxLength)
	case min(r.From, r.To) < 0 || max(r.From, r.To) > MaxLevel:
		return fmt.Errorf("it goes from %d to %d: want levels from 0 to %d", r.From, r.To, int64(MaxLevel))
	}
	return nil
}

// Even is a profile of one level, for as long as a profile may be where length is
// 0; a length is cut to whole microseconds.
func Even(level int64, length time.Duration) (Profile, error) {
	if length <= 0 {
		length = MaxLength
	}
	return NewProfile([]Ramp{{For: length.Truncate(Resolved), From: level, To: level}})
}

// Length is how long the profile lasts.
func (p Profile) Length() time.Duration {
	if len(p.stretches) == 0 {
		return 0
	}
	last := p.stretches[len(p.stretches)-1]
	return time.Duration(last.start+last.length) * Resolved
}

// Peak is the highest level of any ramp.
func (p Profile) Peak() int64 {
	var most uint64
	for _, s := range p.stretches {
		most = max(most, s.from, s.to)
	}
	return int64(most)
}

// Due is the time of arrival i.
func (p Profile) Due(i uint64) (time.Duration, bool) { return p.at(product(i, perUnit)) }

// at is the time until which the doubled integral is at most y: from then on it is
// more. False when it never is.
func (p Profile) at(y word) (time.Duration, bool) {
	k := sort.Search(len(p.stretches), func(i int) bool { return y.less(p.stretches[i].after()) })
	if k == len(p.stretches) {
		return 0, false
	}
	s := &p.stretches[k]
	return time.Duration(s.start+s.until(y.minus(s.before))) * Resolved, true
}

// after is the doubled integral at the end of the stretch.
func (s *stretch) after() word { return s.before.plus(product(s.length, s.from+s.to)) }

// area is the doubled integral of the stretch until t, times its length:
//
//	2·length·∫ = 2·from·length·t + (to-from)·t² = t·(from·(2·length-t) + to·t)
func (s *stretch) area(t uint64) word {
	return product(s.from, 2*s.length-t).plus(product(s.to, t)).times(t)
}

// until is the last t at which the doubled integral of the stretch is at most y. A
// square root in floating point says about where; integers say where exactly.
func (s *stretch) until(y word) uint64 {
	want := y.times(s.length)
	fits := func(t uint64) bool { return !want.less(s.area(t)) }
	a, slope, v := float64(s.from), (float64(s.to)-float64(s.from))/float64(s.length), y.float()
	lo := uint64(0)
	if guess := v / (a + math.Sqrt(max(a*a+slope*v, 0))); guess > 0 { // NaN at the start of a ramp from 0
		lo = uint64(min(guess, float64(s.length)))
	}
	hi := lo + 1 // lo fits, hi does not
	for step := uint64(1); !fits(lo); step *= 2 {
		hi, lo = lo, lo-min(lo, step)
	}
	for step := uint64(1); hi <= s.length && fits(hi); step *= 2 {
		lo, hi = hi, hi+step
	}
	hi = min(hi, s.length+1)
	return lo + uint64(sort.Search(int(hi-lo-1), func(n int) bool { return !fits(lo + 1 + uint64(n)) }))
}

// Arrivals is how many arrivals are due before t.
func (p Profile) Arrivals(t time.Duration) uint64 {
	us := uint64(max((t+Resolved-1)/Resolved, 0))
	k := sort.Search(len(p.stretches), func(i int) bool { return p.stretches[i].start >= us })
	if k == 0 {
		return 0
	}
	s := &p.stretches[k-1]
	sum := s.before.plus(s.area(min(us-s.start, s.length)).over(s.length))
	return sum.over(perUnit).lo
}

// Mean is the mean level between two times, for display.
func (p Profile) Mean(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	area := func(t time.Duration) (sum float64) {
		us := float64(t) / float64(Resolved)
		for _, s := range p.stretches {
			in := min(max(us-float64(s.start), 0), float64(s.length))
			sum += in * (float64(s.from) + (float64(s.to)-float64(s.from))*in/float64(s.length)/2)
		}
		return sum
	}
	return (area(to) - area(from)) / (float64(to-from) / float64(Resolved))
}

// Span is a half-open stretch of time [From, To).
type Span struct{ From, To time.Duration }

// Callers is how many callers are at work at t: caller c, from 0, works while the
// level is above c.
func (p Profile) Callers(t time.Duration) int64 {
	k := sort.Search(len(p.stretches), func(i int) bool { return p.stretches[i].end() > t })
	if t < 0 || k == len(p.stretches) {
		return 0
	}
	s := &p.stretches[k]
	in, all := uint64(t-s.begin()), s.length*uint64(Resolved)
	level := product(s.from, all-in).plus(product(s.to, in))
	return int64(level.over(all).lo)
}

func (s *stretch) begin() time.Duration { return time.Duration(s.start) * Resolved }
func (s *stretch) end() time.Duration   { return time.Duration(s.start+s.length) * Resolved }

// Shifts are the stretches in which caller c is at work, ascending, with a pause
// between any two of them.
func (p Profile) Shifts(c int64) []Span {
	var shifts []Span
	for i := range p.stretches {
		span, works := p.stretches[i].shift(uint64(max(c, 0)))
		if !works {
			continue
		}
		if n := len(shifts); n > 0 && shifts[n-1].To == span.From {
			shifts[n-1].To = span.To
			continue
		}
		shifts = append(shifts, span)
	}
	return slices.Clip(shifts)
}

// shift is when the level of a stretch is above c. Where it passes c on its way up,
// it is above from the nanosecond after; on its way down it is above until the one
// at which it is not.
func (s *stretch) shift(c uint64) (Span, bool) {
	all, whole := s.length*uint64(Resolved), Span{s.begin(), s.end()}
	switch {
	case s.from > c && s.to > c:
	case s.from > c:
		whole.To = whole.From + time.Duration(product(all, s.from-c).over(s.from-s.to).lo)
	case s.to > c:
		up := product(all, c-s.from)
		whole.From += time.Duration(up.plus(word{lo: 1}).over(s.to - s.from).lo)
	}
	return whole, max(s.from, s.to) > c && whole.From < whole.To
}
