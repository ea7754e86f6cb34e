package agent

import (
	"context"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// pull works the units of one pool, one at a time.
func (a *Agent) pull(ctx context.Context, pool string) error {
	queue, err := a.bus.Queue(ctx, pool)
	switch {
	case ctx.Err() != nil:
		return nil // stopped before it had begun
	case err != nil:
		return err
	}
	for ctx.Err() == nil {
		d, err := queue.Next(ctx, 5*time.Second)
		switch {
		case err != nil:
			pause(ctx, 200*time.Millisecond) // a malformed unit, or the server is away
		case d != nil:
			a.serve(ctx, d)
		}
	}
	return nil
}

// serve runs a unit and publishes its result before acknowledging it: an agent
// that dies in between causes a second result, which the merge ignores, never
// a lost one.
func (a *Agent) serve(ctx context.Context, d *bus.Delivery) {
	stop := a.claim(d)
	defer stop()
	r := a.run(&d.Unit, nil)
	r.Incarnation = d.Incarnation
	a.publish(ctx, r, func(ctx context.Context) error { return d.Done(ctx) })
}

// publish uses a deadline of its own: a cancelled context must not lose results.
func (a *Agent) publish(ctx context.Context, r *wire.Result, done func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := a.bus.PublishResult(ctx, r); err != nil {
		return // unacknowledged: the unit is handed out again
	}
	if done != nil {
		_ = done(ctx) // the merge counts the unit once, acknowledged or not
	}
	a.mu.Lock()
	a.units++
	a.mu.Unlock()
}

// claim renews the hold on a unit every third of AckWait, independently of how
// the work goes.
func (a *Agent) claim(d *bus.Delivery) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(wire.AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = d.InProgress() // a missed renewal costs a redelivery, not a result
			}
		}
	}()
	return func() { cancel(); <-done }
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
