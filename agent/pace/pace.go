// Package pace says when the next operation of a load is due, and who works when.
//
// In goes a load shape and the number of an arrival, from 0; out comes when that
// arrival is due, or that the shape is over. It is arithmetic: no clock, no
// goroutine, no random number beside those of a seed, and no floating point in any
// result, so the millionth arrival is where the first one promised, on every
// machine.
//
//	Constant   the same rate all the time
//	Profile    rates, or callers, that change along straight lines
//	Poisson    arrivals of a Profile that do not know of each other
package pace

import "time"

// Shape is a schedule of arrivals. Due is the time of arrival i after the
// start, ascending in i; ok is false when the shape ends before it.
type Shape interface {
	Due(i uint64) (due time.Duration, ok bool)
}
