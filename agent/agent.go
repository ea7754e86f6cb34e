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
	busy sync.Mutex // held while a unit is worked: one at a time

	mu       sync.Mutex
	units    int64 // worked so far
	shares   map[string]*share
	stopping bool
	tasks    sync.WaitGroup // gang shares and targets that close: see spawn
}

// ErrStopped is the cause that ends what a stopping agent has in hand.
var ErrStopped = errors.New("the agent is stopping")

// Run joins the fleet and works until ctx ends. It returns nil then, and an
// error when it could not join.
func Run(ctx context.Context, b *bus.Bus, opt Options) error {
	if len(opt.Pools) == 0 {
		opt.Pools = []string{wire.DefaultPool}
	}
	a := &Agent{bus: b, opt: opt, runs: newRuns(), shares: map[string]*share{}}
	queues, leave, err := a.join(ctx)
	if opt.Ready != nil {
		opt.Ready(err)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // stopped before it had begun
	case err != nil:
		return err
	}
	defer leave()
	a.work(ctx, queues)
	return nil
}

// join queues and subscribes before it announces: whoever sees the agent can
// reach it.
func (a *Agent) join(ctx context.Context) (queues []*bus.Queue, leave func(), err error) {
	if err := a.opt.validate(); err != nil {
		return nil, nil, err
	}
	for _, pool := range a.opt.Pools {
		queue, err := a.bus.Queue(ctx, pool)
		if err != nil {
			return nil, nil, err
		}
		queues = append(queues, queue)
	}
	stopControl, err := a.bus.OnControl(a.control)
	if err != nil {
		return nil, nil, err
	}
	stopPrepare, err := a.bus.OnPrepare(a.opt.ID, a.prepare)
	if err != nil {
		stopControl()
		return nil, nil, err
	}
	leave = func() { stopPrepare(); stopControl(); a.leave() }
	if err := a.announce(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return queues, leave, nil
}

// validate refuses names that do not fit a subject.
func (o *Options) validate() error {
	errs := []error{wire.CheckName("agent name", o.ID)}
	for _, pool := range o.Pools {
		errs = append(errs, wire.CheckName("pool", pool))
	}
	return errors.Join(errs...)
}

// work runs the loops until ctx ends, then stops what is in hand, waits until
// that is published or given back, and closes every target.
func (a *Agent) work(ctx context.Context, queues []*bus.Queue) {
	var loops sync.WaitGroup
	loops.Go(func() { a.heartbeat(ctx) })
	for _, queue := range queues {
		loops.Go(func() { a.pull(ctx, queue) })
	}
	<-ctx.Done()
	a.stop()
	loops.Wait()
	a.tasks.Wait()
	a.runs.close()
}

// stop ends what is in hand; no task begins after it.
func (a *Agent) stop() {
	a.mu.Lock()
	a.stopping = true
	a.mu.Unlock()
	a.runs.stop(ErrStopped)
}

// spawn runs f on a goroutine that work waits for; false once the agent stops,
// and f has not run.
func (a *Agent) spawn(f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return false
	}
	a.tasks.Go(f)
	return true
}

// control obeys go, halt and release. It never waits: a halt of one run must
// not queue behind the targets of another.
func (a *Agent) control(run string, c wire.Control) {
	if c.Kind == wire.Release {
		if r := a.runs.release(run); r != nil && !a.spawn(r.close) {
			r.close() // the agent stops, and waits for this handler
		}
		return
	}
	r, ok := a.runs.of(run)
	switch {
	case !ok: // late
	case c.Kind == wire.Go:
		r.start(c.Stage)
	case c.Kind == wire.Halt:
		r.cancel(fmt.Errorf("halted: %s", c.Reason))
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
