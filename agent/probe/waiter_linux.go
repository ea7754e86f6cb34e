package probe

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ordeal/faultproxy"
)

// fine is how long before it is due a wait goes over from a timer of the runtime,
// which is a millisecond late, to a sleep of the kernel, which a context cannot
// interrupt. The runtime notices only after a while that a thread sleeps there,
// and can run nothing else on its processor until then: the shorter the better.
const fine = 2 * time.Millisecond

// fineOnce is that of a wait that is made once, for which one processor less is no
// matter: the timer before it is served by a thread that has to wait for its turn
// among those of all agents on the machine.
const fineOnce = 40 * time.Millisecond

// newWaiter locks the goroutine to its thread and returns a wait that sleeps in
// the kernel: Go's timers are half a millisecond late at the median, because
// the poller sleeps whole milliseconds; clock_nanosleep with the least timer
// slack is late by some microseconds. The slack stays with the thread, so the
// goroutine never unlocks it and the thread dies with the goroutine.
func newWaiter(timers bool) waiter {
	if timers {
		return timerWait
	}
	runtime.LockOSThread()
	// Refused in some sandboxes: then the kernel adds up to 50 µs, and the lag
	// shows them.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return kernelWait(fine)
}

// holdThread is newWaiter for one wait: done gives the thread back as it was.
// Where the process may, the thread goes before all others meanwhile: many that
// wait for one moment on few cores would begin one slice of time after the other.
func holdThread() (wait waiter, done func()) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // see newWaiter
	before, err := unix.SchedGetAttr(0, 0)
	first := err == nil && unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0) == nil
	return kernelWait(fineOnce), func() {
		if first {
			_ = unix.SchedSetAttr(0, before, 0)
		}
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0: as it was when the thread began
		runtime.UnlockOSThread()
	}
}

// kernelWait waits by a timer until fine before it is due, and sleeps then.
func kernelWait(fine time.Duration) waiter {
	return func(ctx context.Context, clock faultproxy.Clock, due time.Duration) error {
		for {
			left := due - clock.Now()
			if left <= 0 || ctx.Err() != nil {
				return ctx.Err()
			}
			if left > fine {
				coarse(ctx, left-fine)
				continue
			}
			nap := unix.NsecToTimespec(int64(left))
			if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &nap, nil); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
}

// coarse waits by a timer. It is none of the clock's: that one books its sleeps.
func coarse(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
