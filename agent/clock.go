package agent

import "time"

// clock is what an agent calls the time: the wall clock when it started plus the
// monotonic time since. It is never stepped, so a start time that was agreed on
// stays where it is; how far it is from the controller's clock is measured.
type clock struct {
	start time.Time // holds both readings
	skew  time.Duration
}

func newClock(skew time.Duration) clock { return clock{start: time.Now(), skew: skew} }

// now is in ns since the Unix epoch.
func (c clock) now() int64 { return c.at(time.Now()) }

// at is what the clock shows at a moment of this process.
func (c clock) at(t time.Time) int64 { return c.start.UnixNano() + int64(t.Sub(c.start)+c.skew) }

// moment is when the clock shows ns.
func (c clock) moment(ns int64) time.Time {
	return c.start.Add(time.Duration(ns-c.start.UnixNano()) - c.skew)
}
