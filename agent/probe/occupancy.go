package probe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// occupancy integrates the time in which at least one call is in flight or one
// deliberate wait goes on: what is left of a run is the instrument's own. Calls that
// overlap meet no lock.
type occupancy struct {
	n atomic.Int64 // calls and waits under way

	mu    sync.Mutex // guards what is below
	busy  bool       // as far as it was told
	since time.Time
	total time.Duration
}

func (o *occupancy) enter() {
	if o.n.Add(1) == 1 {
		o.turn()
	}
}

func (o *occupancy) leave() {
	if o.n.Add(-1) == 0 {
		o.turn()
	}
}

// turn begins or ends a busy stretch. Whoever comes first after a change of n sees
// what it is by then, so one that overtakes another leaves it nothing to do.
func (o *occupancy) turn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch busy := o.n.Load() > 0; {
	case busy && !o.busy:
		o.busy, o.since = true, time.Now()
	case !busy && o.busy:
		o.busy = false
		o.total += time.Since(o.since)
	}
}

func (o *occupancy) spent() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// observe lets a real target and its clocks report to the occupancy. Without
// leave nothing is said to the target at all; calls are held to it one by one,
// by whoever makes them.
func (o *occupancy) observe(t target.Target, leave Leave) target.Target {
	return occupied{t, o, may{leave: leave}}
}

type occupied struct {
	target.Target
	occupancy *occupancy
	may       may
}

func (t occupied) Survey(ctx context.Context) (*wire.Survey, error) {
	if err := t.may.check(); err != nil {
		return nil, err
	}
	t.occupancy.enter()
	defer t.occupancy.leave()
	return t.Target.Survey(ctx)
}

// Alive says that a target lives which may not be asked: nothing is known of a
// death.
func (t occupied) Alive(ctx context.Context) (alive, restarted bool, exit string) {
	if t.may.check() != nil {
		return true, false, ""
	}
	t.occupancy.enter()
	defer t.occupancy.leave()
	return t.Target.Alive(ctx)
}

func (t occupied) Session(ctx context.Context, user int) (target.Session, error) {
	if err := t.may.check(); err != nil {
		return nil, err
	}
	t.occupancy.enter()
	defer t.occupancy.leave()
	s, err := t.Target.Session(ctx, user)
	if err != nil {
		return nil, err
	}
	return t.occupancy.session(s), nil
}

// session lets a session report to the occupancy. Nil watches nothing.
func (o *occupancy) session(s target.Session) target.Session {
	if o == nil {
		return s
	}
	return occupiedSession{s, o}
}

type occupiedSession struct {
	session   target.Session
	occupancy *occupancy
}

func (s occupiedSession) Call(ctx context.Context, c target.Call) metrics.Exchange {
	s.occupancy.enter()
	defer s.occupancy.leave()
	return s.session.Call(ctx, c)
}

// occupiedClock counts its sleeps: injected latency and back-off.
type occupiedClock struct {
	*faultproxy.RealClock
	occupancy *occupancy
}

func (c occupiedClock) Sleep(ctx context.Context, d time.Duration) error {
	c.occupancy.enter()
	defer c.occupancy.leave()
	return c.RealClock.Sleep(ctx, d)
}
