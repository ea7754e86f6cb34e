package probe

import (
	"fmt"
	"math"
	"time"

	"ordeal/agent/pace"
	"ordeal/agent/wire"
)

// course is what a load unit asks for over time. Times are from its start.
type course struct {
	shape    pace.Shape    // of the arrivals of the whole stage; nil in a closed loop
	profile  pace.Profile  // zero where the load is constant
	length   time.Duration // nothing begins from then on; 0 = by count
	measured wire.Span
	think    time.Duration
}

func courseOf(u *wire.Unit) (course, error) {
	l := u.Load
	c := course{length: l.Duration, measured: l.Measured, think: l.Think}
	if err := c.follow(l); err != nil {
		return c, fmt.Errorf("probe: unit %s: %w", u.ID, err)
	}
	if l.Measured.To > 0 && l.Measured.To <= l.Measured.From {
		return c, fmt.Errorf("probe: unit %s: the measured part from %v to %v is empty", u.ID, l.Measured.From, l.Measured.To)
	}
	if l.MilliRate <= 0 {
		return c, nil
	}
	return c, c.arrive(u)
}

// follow reads the profile.
func (c *course) follow(l *wire.Load) (err error) {
	if len(l.Profile) == 0 {
		return nil
	}
	ramps := make([]pace.Ramp, len(l.Profile))
	for i, r := range l.Profile {
		ramps[i] = pace.Ramp(r)
	}
	if c.profile, err = pace.NewProfile(ramps); err != nil {
		return err
	}
	if c.length = c.profile.Length(); c.length == 0 {
		return fmt.Errorf("its profile has no length")
	}
	if l.Duration > 0 && l.Duration != c.length {
		return fmt.Errorf("its profile lasts %v, but its duration is %v", c.length, l.Duration)
	}
	return nil
}

// arrive makes the arrivals of an open loop.
func (c *course) arrive(u *wire.Unit) error {
	l := u.Load
	even := len(l.Profile) == 0
	switch {
	case even && !l.Poisson:
		c.shape = pace.Constant{MilliRate: l.MilliRate, Length: l.Duration}
		return nil
	case even:
		p, err := pace.Even(l.MilliRate, l.Duration)
		if err != nil {
			return fmt.Errorf("probe: unit %s: %w", u.ID, err)
		}
		c.shape = pace.NewPoisson(l.Seed, p)
	case l.Poisson:
		c.shape = pace.NewPoisson(l.Seed, c.profile)
	default:
		c.shape = c.profile
	}
	return nil
}

// measures reports whether what is due, or begun, at a time counts.
func (c *course) measures(at time.Duration) bool {
	return at >= c.measured.From && (c.measured.To <= 0 || at < c.measured.To)
}

// span is the measured part of the time that the first n arrivals took up, of which
// the last one was issued at a time: until the next one would be due.
func (c *course) span(n uint64, issued time.Duration) time.Duration {
	shape, next := c.shape, c.length
	if even, ok := shape.(pace.Constant); ok {
		even.Length = 0 // one behind the end tells where the end is
		shape = even
	}
	if due, ok := shape.Due(n); ok {
		next = due
	}
	end := max(issued, next)
	if c.measured.To > 0 {
		end = min(end, c.measured.To)
	}
	return max(end-c.measured.From, 0)
}

// shifts are the stretches in which caller c of a closed loop is at work.
func (c *course) shifts(caller int64) []pace.Span {
	switch {
	case c.profile.Length() > 0:
		return c.profile.Shifts(caller)
	case c.length > 0:
		return []pace.Span{{To: c.length}}
	}
	return []pace.Span{{To: math.MaxInt64}}
}
