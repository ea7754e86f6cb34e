package agent

import (
	"context"
	"errors"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// pull works the units of one pool, one at a time.
func (a *Agent) pull(ctx context.Context, queue *bus.Queue) {
	for ctx.Err() == nil {
		d, err := queue.Next(ctx, 5*time.Second)
		switch {
		case err != nil:
			pause(ctx, 200*time.Millisecond) // a malformed unit, or the server is away
		case d != nil:
			a.serve(ctx, d)
		}
	}
}

// serve works a unit and publishes its result before acknowledging it: an agent
// that dies in between causes a second result, which the merge ignores, never
// a lost one. What its own stop has cut goes back to the queue: another agent
// measures it whole.
func (a *Agent) serve(ctx context.Context, d *bus.Delivery) {
	stop := a.claim(d)
	defer stop()
	state, ok := a.runs.of(d.Unit.Run)
	if !ok {
		a.acknowledge(ctx, d) // nobody waits for its result
		return
	}
	a.busy.Lock()
	r := a.run(state, &d.Unit, nil)
	a.busy.Unlock()
	if r.Partial && errors.Is(context.Cause(state.ctx), ErrStopped) {
		_ = d.GiveBack() // lost, it is handed out again after AckWait
		return
	}
	r.Incarnation = d.Incarnation
	a.publish(ctx, r, d)
}

// publish uses a deadline of its own: a cancelled context must not lose
// results. d is nil for a share of a gang, which no queue holds.
func (a *Agent) publish(ctx context.Context, r *wire.Result, d *bus.Delivery) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := a.bus.PublishResult(limited, r)
	if errors.Is(err, bus.ErrTooLarge) {
		err = a.bus.PublishResult(limited, unsendable(r, err))
	}
	if err != nil {
		return // unacknowledged: the unit is handed out again
	}
	if d != nil {
		a.acknowledge(ctx, d)
	}
	a.mu.Lock()
	a.units++
	a.mu.Unlock()
}

// acknowledge takes the unit off the queue; the merge counts it once, whether
// or not this gets through.
func (a *Agent) acknowledge(ctx context.Context, d *bus.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = d.Done(ctx)
}

// unsendable stands for a result that is too large to travel: without it the
// unit would be worked again and again, to the same end.
func unsendable(r *wire.Result, err error) *wire.Result {
	return &wire.Result{V: r.V, Run: r.Run, Stage: r.Stage, Unit: r.Unit, Incarnation: r.Incarnation, Seq: r.Seq, Final: true,
		Partial: r.Partial, Agent: r.Agent, Calls: r.Calls, Elapsed: r.Elapsed, Busy: r.Busy,
		Failure: &wire.Failure{Class: "harness", Message: err.Error(), Remedy: "set max_payload in the configuration of the NATS server"}}
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
