package agent

import (
	"context"
	"sync/atomic"
	"time"
)

// term is a stretch of leave without a gap: each grant prolongs it, and once it
// is over it stays so. Work belongs to the term in which it began.
type term struct {
	ctx        context.Context // ends with the term, or with its run
	cancel     context.CancelCauseFunc
	lease      *lease
	generation uint64 // of the controller that gave it
	end        atomic.Pointer[moment]
	timer      *time.Timer // cuts the work; the look before each call is what is relied on
	lost       bool        // guarded by lease.mu
}

// moment is a time on both clocks. The monotonic one stands still while a machine
// is suspended, the wall clock may be set back: what either of them says is over
// is over.
type moment struct {
	mono time.Time
	wall int64 // ns since the Unix epoch
}

// after is the moment when d has passed since a time with both readings.
func after(t time.Time, d time.Duration) *moment {
	return &moment{mono: t.Add(d), wall: t.UnixNano() + int64(d)}
}

func (m *moment) passed() bool {
	now := time.Now()
	return !now.Before(m.mono) || now.UnixNano() >= m.wall
}

// check is ErrLeaseExpired once the term is over. It is asked right before each
// call to a real target: it costs a look at the clock. A call that is past it when
// the whole process is stopped, and not yet in the socket, goes out when it wakes:
// some microseconds' worth of calls.
func (t *term) check() error {
	if !t.end.Load().passed() {
		return nil
	}
	return t.lease.expire(t)
}
