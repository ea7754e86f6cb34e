package faultproxy

import (
	"context"
	"time"
)

// Clock is the time line of one worker.
type Clock interface {
	// Now is the time since the clock's start.
	Now() time.Duration
	// Sleep lets d pass; it returns early, with the cause, when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
	// Advance books time that the target reported instead of spending it. On a
	// clock whose time passes by itself it does nothing.
	Advance(d time.Duration)
}

// RealClock is the monotonic clock of the machine.
type RealClock struct{ start time.Time }

// NewRealClock starts a clock at zero.
func NewRealClock() *RealClock { return &RealClock{start: time.Now()} }

// Now is the time since the start.
func (c *RealClock) Now() time.Duration { return time.Since(c.start) }

// Sleep waits for d or for the end of ctx.
func (c *RealClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Advance does nothing: real time passes by itself.
func (c *RealClock) Advance(time.Duration) {}

// VirtualClock passes only when somebody says so. One per worker: it is not
// safe for concurrent use, and that is what keeps the time of a worker
// independent of how many others there are.
type VirtualClock struct{ now time.Duration }

// Now is the booked time.
func (c *VirtualClock) Now() time.Duration { return c.now }

// Sleep books d at once.
func (c *VirtualClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c.Advance(d)
	return nil
}

// Advance books d.
func (c *VirtualClock) Advance(d time.Duration) { c.now += max(d, 0) }
