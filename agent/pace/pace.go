// Package pace says when the next operation of a load is due.
//
// In goes a load shape and how far it has got (elapsed time, operations
// issued); out comes how long to wait, or that the shape is over. It is
// arithmetic: no clock, no goroutine, no random number, and no floating point,
// so the millionth arrival is where the first one promised.
//
// Arrivals are numbered from 0. Every agent holds the same shape and takes
// every k-th arrival of it (Every); the shares add up to the whole, arrival by
// arrival.
package pace

import (
	"math"
	"math/bits"
	"time"
)

// Shape is a schedule of arrivals. Due is the time of arrival i after the
// start, ascending in i; ok is false when the shape ends before it.
type Shape interface {
	Due(i uint64) (due time.Duration, ok bool)
}

// Next is when the next arrival is due after n were issued and elapsed has
// passed: wait is 0 when it is due or late, stop says that none is left.
func Next(s Shape, elapsed time.Duration, n uint64) (wait time.Duration, stop bool) {
	due, ok := s.Due(n)
	if !ok {
		return 0, true
	}
	return max(0, due-elapsed), false
}

// Constant is a constant arrival rate: arrival i is due at exactly
// i*1e9/MilliRate whole microseconds, rounded down, never accumulated.
type Constant struct {
	MilliRate int64         // thousandths of an arrival per second; 0 or less: everything at once
	Count     uint64        // arrivals; 0 = no limit
	Length    time.Duration // arrivals due from here on do not belong to it; 0 = no limit
}

// Due is the time of arrival i.
func (c Constant) Due(i uint64) (time.Duration, bool) {
	if c.Count > 0 && i >= c.Count {
		return 0, false
	}
	due, fits := c.at(i)
	if !fits || c.Length > 0 && due >= c.Length {
		return 0, false
	}
	return due, true
}

// at is false for arrivals beyond the range of a Duration, 292 years.
func (c Constant) at(i uint64) (time.Duration, bool) {
	if c.MilliRate <= 0 {
		return 0, true
	}
	hi, lo := bits.Mul64(i, 1e9)
	if hi >= uint64(c.MilliRate) {
		return 0, false
	}
	us, _ := bits.Div64(hi, lo, uint64(c.MilliRate))
	if us > math.MaxInt64/uint64(time.Microsecond) {
		return 0, false
	}
	return time.Duration(us) * time.Microsecond, true
}

// Every is the share of one of several agents: the arrivals First,
// First+Step, First+2*Step, ... of the whole.
type Every struct {
	Whole Shape
	First uint64
	Step  uint64 // 0 counts as 1
}

// Due is the time of the share's arrival i.
func (e Every) Due(i uint64) (time.Duration, bool) {
	step := max(e.Step, 1)
	hi, lo := bits.Mul64(i, step)
	k, carry := bits.Add64(lo, e.First, 0)
	if hi != 0 || carry != 0 {
		return 0, false
	}
	return e.Whole.Due(k)
}
