package stat

import "fmt"

// Direction says on which side of its limit a quantity is good.
type Direction uint8

const (
	AtMost  Direction = iota // good up to and including the limit: latency, error rate
	AtLeast                  // good from the limit on: recovery rate
)

// Decision is what an interval proves about a limit.
type Decision uint8

const (
	Undecided Decision = iota // the interval reaches to both sides of the limit
	Pass                      // no value inside the interval is bad
	Fail                      // every value inside the interval is bad
)

// Decide compares an interval with a limit: Pass when the interval excludes the
// bad side, Fail when it excludes the limit and everything good, Undecided
// otherwise. An interval with a NaN end, or with its ends crossed, proves
// nothing.
func Decide(iv Interval, limit float64, good Direction) Decision {
	if !(iv.Lo <= iv.Hi) {
		return Undecided
	}
	switch {
	case good == AtMost && iv.Hi <= limit, good == AtLeast && iv.Lo >= limit:
		return Pass
	case good == AtMost && iv.Lo > limit, good == AtLeast && iv.Hi < limit:
		return Fail
	}
	return Undecided
}

// String returns the word used in reports: pass, fail or undecided.
func (d Decision) String() string {
	switch d {
	case Undecided:
		return "undecided"
	case Pass:
		return "pass"
	case Fail:
		return "fail"
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}
