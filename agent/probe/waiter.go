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
