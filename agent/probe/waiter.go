package probe

import (
	"context"
	"time"

	"ordeal/faultproxy"
)

// waiter returns when due has come on the clock, or with the end of ctx.
type waiter func(ctx context.Context, clock faultproxy.Clock, due time.Duration) error

// timerWait waits by a timer of the runtime.
func timerWait(ctx context.Context, clock faultproxy.Clock, due time.Duration) error {
	if left := due - clock.Now(); left > 0 {
		return clock.Sleep(ctx, left)
	}
	return ctx.Err()
}

// until counts down to a moment.
type until struct {
	faultproxy.RealClock
	moment time.Time
}

// Now is negative before the moment.
func (u *until) Now() time.Duration { return -time.Until(u.moment) }

// SleepUntil returns at a moment, as closely as the machine allows, and says when
// it woke; with the cause of the end of ctx before that. The goroutine has its
// thread to itself meanwhile: what it does next begins without a hand-over.
func SleepUntil(ctx context.Context, moment time.Time) (woke time.Time, err error) {
	wait, done := holdThread()
	defer done()
	err = wait(ctx, &until{moment: moment}, 0)
	if err != nil && ctx.Err() == nil { // a sandbox without the system call
		_ = timerWait(ctx, &until{moment: moment}, 0)
	}
	return time.Now(), context.Cause(ctx)
}
