package probe

import (
	"context"
	"time"
)

// overlap is how many operations of a faulted pass on a real target may be
// under way for each call that may be inside the target: whoever waits out an
// injected fault leaves its place to the next, so that the waits of a pass
// overlap and its calls do not.
const overlap = 16

// slots bounds how many calls are inside the target at once. The zero value
// bounds nothing.
type slots chan struct{}

// take waits for a slot and says how long that took.
func (s slots) take(ctx context.Context) (time.Duration, error) {
	if s == nil {
		return 0, nil
	}
	select {
	case s <- struct{}{}:
		return 0, nil
	default:
	}
	begun := time.Now()
	select {
	case s <- struct{}{}:
		return time.Since(begun), nil
	case <-ctx.Done():
		return time.Since(begun), context.Cause(ctx)
	}
}

func (s slots) free() {
	if s != nil {
		<-s
	}
}
