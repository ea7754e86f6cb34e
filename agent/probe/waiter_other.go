//go:build !linux

package probe

// newWaiter waits by timers: only Linux has clock_nanosleep with a slack that
// can be set. The lag it causes is recorded.
func newWaiter(bool) (wait waiter) { return timerWait }

func holdThread() (wait waiter, done func()) { return timerWait, func() {} }
