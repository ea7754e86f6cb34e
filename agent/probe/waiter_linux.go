package probe

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ordeal/faultproxy"
)

// A pacer does not sleep in the kernel, because a thread that sleeps in a system
// call keeps its processor of the runtime until the runtime notices: with one
// processor every answer that comes in meanwhile is late. It waits for a timer of
// the kernel that is a file, as it would wait for a socket: the thread that polls
// wakes by the expiry itself, not at the next whole millisecond like for a timer of
// the runtime, has the pacer in hand, and runs the call that the pacer readies once
// the pacer waits again: no thread is woken on the way.
//
// What is left is how long an idle CPU takes to wake up, some 30 µs on a virtual
// machine, and rather constant. The timer is set to expire earlier by that lead,
// which follows what is seen; what was too early is spun away.
const (
	leadMost = 50 * time.Microsecond
	spinMost = 10 * time.Microsecond // a wait as short is spun whole
	leadUp   = 500 * time.Nanosecond // after a wake-up that was late
	leadDown = 3 * leadUp            // after one that was early: three of four are a little late
)

// newWaiter returns the wait of a pacer; done gives back what it holds.
func newWaiter(ctx context.Context, timers bool) (wait waiter, done func()) {
	if timers {
		return timerWait, func() {}
	}
	alarm, err := newAlarm()
	if err != nil { // a sandbox without the system call
		return timerWait, func() {}
	}
	stop := context.AfterFunc(ctx, func() { _ = alarm.file.SetReadDeadline(time.Unix(1, 0)) }) // a file that was closed has nobody waiting
	return alarm.wait, func() { stop(); _ = alarm.file.Close() }
}

// alarm is a timer of the kernel.
type alarm struct {
	file *os.File
	poll syscall.RawConn
	ring func(fd uintptr) bool // one for all waits
	lead time.Duration
	nap  time.Duration
	set  bool // since the wait began
	err  error
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer")}
	a.ring = a.arm
	a.poll, err = a.file.SyscallConn()
	return a, err
}

// arm sets the timer when the wait for it begins, and is content when it is over:
// how often it has expired need not be read, setting it anew forgets that.
func (a *alarm) arm(fd uintptr) (done bool) {
	if a.set {
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(a.nap))}
	a.err, a.set = unix.TimerfdSettime(int(fd), 0, &spec, nil), true
	return a.err != nil
}

func (a *alarm) wait(ctx context.Context, clock faultproxy.Clock, due time.Duration) error {
	left := due - clock.Now()
	if left > spinMost && left <= leadMost { // at such a rate several come due by one wake-up
		if err := a.sleep(ctx, left); err != nil {
			return err
		}
		left = due - clock.Now()
	}
	for left > leadMost {
		if err := a.sleep(ctx, left-a.lead); err != nil {
			return err
		}
		switch left = due - clock.Now(); {
		case left > leadMost: // an expiry of before
		case left > 0:
			a.lead = max(a.lead-leadDown, 0)
		default:
			a.lead = min(a.lead+leadUp, leadMost)
		}
	}
	for ; left > 0; left = due - clock.Now() {
		runtime.Gosched() // a call may go out meanwhile
	}
	return ctx.Err()
}

func (a *alarm) sleep(ctx context.Context, nap time.Duration) error {
	a.nap, a.set = nap, false
	if err := a.poll.Read(a.ring); err != nil || a.err != nil {
		return errors.Join(ctx.Err(), err, a.err)
	}
	return nil
}

// fineOnce is how long before its moment a wait that is made once, for which one
// processor less is no matter, goes over from a timer of the runtime to a sleep of
// the kernel, which a context cannot interrupt: the timer before it is served by a
// thread that has to wait for its turn among those of all agents on the machine.
const fineOnce = 40 * time.Millisecond

// holdThread locks the goroutine to its thread for one wait that sleeps in the
// kernel: Go's timers are half a millisecond late at the median, because the poller
// sleeps whole milliseconds; clock_nanosleep with the least timer slack is late by
// some microseconds. done gives the thread back as it was. Where the process may,
// the thread goes before all others meanwhile: many that wait for one moment on few
// cores would begin one slice of time after the other.
func holdThread() (wait waiter, done func()) {
	runtime.LockOSThread()
	// Refused in some sandboxes: then the kernel adds up to 50 µs, and the lag
	// shows them.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	before, err := unix.SchedGetAttr(0, 0)
	first := err == nil && unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0) == nil
	return kernelWait, func() {
		if first {
			_ = unix.SchedSetAttr(0, before, 0)
		}
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // 0: as it was when the thread began
		runtime.UnlockOSThread()
	}
}

// kernelWait waits by a timer until fineOnce before it is due, and sleeps then.
func kernelWait(ctx context.Context, clock faultproxy.Clock, due time.Duration) error {
	for {
		left := due - clock.Now()
		if left <= 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		if left > fineOnce {
			coarse(ctx, left-fineOnce)
			continue
		}
		nap := unix.NsecToTimespec(int64(left))
		if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &nap, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return err
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
