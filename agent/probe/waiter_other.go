//go:build !linux

package probe

import "context"

// newWaiter waits by timers: only Linux has timers of the kernel that are files. The
// lag it causes is recorded.
func newWaiter(context.Context, bool) (wait waiter, done func()) { return timerWait, func() {} }

func holdThread() (wait waiter, done func()) { return timerWait, func() {} }
