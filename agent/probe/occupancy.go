package probe

import (
	"context"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// occupancy integrates the time in which at least one call is in flight or one
// deliberate wait goes on: what is left of a run is the instrument's own.
type occupancy struct {
	mu    sync.Mutex
	n     int
	since time.Time
	total time.Duration
}

func (o *occupancy) enter() {
	o.mu.Lock()
	if o.n++; o.n == 1 {
		o.since = time.Now()
	}
	o.mu.Unlock()
}

func (o *occupancy) leave() {
	o.mu.Lock()
	if o.n--; o.n == 0 {
		o.total += time.Since(o.since)
	}
	o.mu.Unlock()
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
	return occupiedSession{s, t.occupancy}, nil
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
