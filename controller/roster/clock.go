package roster

import "time"

// Clock is a controller's clock: the wall's time when it was started, and from
// there on monotonic time. A wall clock that is stepped during a run moves
// neither a start time nor an offset.
type Clock struct{ start time.Time }

// StartClock reads the wall clock once.
func StartClock() Clock { return Clock{start: time.Now()} }

// Now is in ns since the Unix epoch.
func (c Clock) Now() int64 { return c.start.UnixNano() + int64(time.Since(c.start)) }
