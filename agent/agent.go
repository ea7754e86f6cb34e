package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// Options of an agent.
type Options struct {
	ID      string
	Labels  map[string]string
	Pools   []string // none = the default pool
	Version string   // of the software
	Digest  string   // of the fault schedule's probe set
	// Ready, when set, is called once: with nil when the agent has joined the
	// fleet, with the error when it could not.
	Ready func(error)
}

// Agent works units until its context ends.
type Agent struct {
	bus  *bus.Bus
	opt  Options
	runs *runs
	busy sync.Mutex // held while a unit runs: one at a time
	gang sync.WaitGroup

	mu    sync.Mutex
	units int64 // worked so far
}

// ErrStopped is the cause that ends what a stopping agent has in hand.
var ErrStopped = errors.New("the agent is stopping")

// Run joins the fleet and works until ctx ends. It returns nil then.
func Run(ctx context.Context, b *bus.Bus, opt Options) error {
	if len(opt.Pools) == 0 {
		opt.Pools = []string{wire.DefaultPool}
	}
	a := &Agent{bus: b, opt: opt, runs: newRuns()}
	leave, err := a.join(ctx)
	if opt.Ready != nil {
		opt.Ready(err)
	}
	if err != nil {
		return err
	}
	defer leave()
	return a.work(ctx)
}

// join subscribes before it announces: whoever sees the agent can reach it.
func (a *Agent) join(ctx context.Context) (leave func(), err error) {
	stopControl, err := a.bus.OnControl(a.control)
	if err != nil {
		return nil, err
	}
	stopPrepare, err := a.bus.OnPrepare(a.opt.ID, a.prepare)
	if err != nil {
		stopControl()
		return nil, err
	}
	leave = func() { stopControl(); stopPrepare(); a.leave() }
	if err := a.announce(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// work runs the loops until ctx ends, then stops what is in hand, waits for its
// results to be published and closes every target.
func (a *Agent) work(ctx context.Context) error {
	loops := []func(context.Context) error{a.heartbeat}
	for _, pool := range a.opt.Pools {
		loops = append(loops, func(ctx context.Context) error { return a.pull(ctx, pool) })
	}
	errs := make([]error, len(loops))
	var wg sync.WaitGroup
	for i, loop := range loops {
		wg.Go(func() { errs[i] = loop(ctx) })
	}
	<-ctx.Done()
	a.runs.stop(ErrStopped)
	wg.Wait()
	a.gang.Wait()
	a.runs.close()
	return errors.Join(errs...)
}

// control obeys go, halt and release.
func (a *Agent) control(run string, c wire.Control) {
	switch c.Kind {
	case wire.Go:
		a.runs.of(run).start(c.Stage, c.StartAt)
	case wire.Halt:
		a.runs.of(run).cancel(fmt.Errorf("halted: %s", c.Reason))
	case wire.Release:
		a.runs.release(run)
	}
}

func (a *Agent) announce(ctx context.Context) error {
	a.mu.Lock()
	units := a.units
	a.mu.Unlock()
	return a.bus.Announce(ctx, wire.Hello{V: wire.Version, ID: a.opt.ID, Version: a.opt.Version, Labels: a.opt.Labels,
		Pools: a.opt.Pools, Digest: a.opt.Digest, Units: units})
}

// leave runs after the context has ended, on a deadline of its own.
func (a *Agent) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.bus.Leave(ctx, a.opt.ID) // else the registry forgets it by itself
}
