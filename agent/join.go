package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	joinAgain = time.Second     // between two tries, half of it drawn
	openWait  = 2 * time.Second // for a queue that nobody has opened
	openEvery = 10              // tries: agents that may not are told so by their server each time
)

var errClosed = errors.New("the connection to NATS is closed")

// listen subscribes to control messages and requests.
func (a *Agent) listen(ctx context.Context) (hangUp func(), err error) {
	return a.subscribe(ctx, func() (func(), error) {
		stopControl, err := a.bus.OnControl(a.control)
		if err != nil {
			return nil, err
		}
		stopRequests, err := a.bus.OnRequest(a.opt.ID, a.request)
		if err != nil {
			stopControl()
			return nil, err
		}
		return func() { stopRequests(); stopControl() }, nil
	})
}

// subscribe waits for a server that is not there yet. stop is nil when ctx ended
// first.
func (a *Agent) subscribe(ctx context.Context, on func() (stop func(), err error)) (stop func(), err error) {
	for ctx.Err() == nil {
		if stop, err := on(); err == nil {
			return stop, nil
		}
		if a.bus.Closed() {
			return nil, errClosed
		}
		a.again(ctx)
	}
	return nil, nil
}

// join joins the shared consumer of a queue. One that nobody has opened it opens
// itself, if it may; else it waits for a controller to set the fleet up. The
// queue is nil when ctx ended first.
func (a *Agent) join(ctx context.Context, name string) (*bus.Queue, error) {
	for try := 0; ctx.Err() == nil; try++ {
		queue, err := a.bus.Queue(ctx, name)
		if errors.Is(err, bus.ErrNoQueue) && try%openEvery == 0 {
			queue, err = a.open(ctx, name)
		}
		switch {
		case err == nil:
			return queue, nil
		case a.bus.Closed():
			return nil, errClosed
		case try == 0:
			a.opt.Log("waiting for a controller to set the fleet up: " + err.Error())
		}
		a.again(ctx)
	}
	return nil, nil
}

func (a *Agent) open(ctx context.Context, name string) (*bus.Queue, error) {
	limited, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	_ = a.bus.OpenQueue(limited, name) // refused where agents may not: a controller does it
	return a.bus.Queue(ctx, name)
}

func (a *Agent) again(ctx context.Context) { sleep(ctx, joinAgain/2+rand.N(joinAgain)) }

// announce puts the agent into the registry, or renews it there.
func (a *Agent) announce(ctx context.Context, cpuMilli int64) error {
	a.mu.Lock()
	hand, draining := a.hand, a.draining
	a.mu.Unlock()
	return a.bus.Announce(ctx, wire.Hello{V: wire.Version, ID: a.opt.ID, Instance: a.instance, Version: a.opt.Version, Labels: a.opt.Labels,
		Pools: a.opt.Pools, Digest: a.opt.Digest, Capacity: a.opt.Capacity, Units: hand.units, Draining: draining,
		Load: wire.Holding{Run: hand.run, Unit: hand.unit, CPUMilli: cpuMilli, Cores: cores()}})
}

// leave runs after the context has ended, on a deadline of its own.
func (a *Agent) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.bus.Leave(ctx, a.opt.ID) // else the registry forgets it by itself
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
