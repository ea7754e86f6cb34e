package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/metrics/prom"
)

// Options of an agent.
type Options struct {
	ID      string
	Labels  map[string]string
	Pools   []string // none = the default pool
	Version string   // of the software
	Digest  string   // of the fault schedule's probe set
	// Capacity is how many callers it can hold at once; 0 = as many as fit, at
	// most DefaultCapacity.
	Capacity int
	// Drain is how long a stopping agent lets what it has in hand go on; 0 = it
	// cuts it at once.
	Drain time.Duration
	// Skew is added to the agent's clock. Tests set it.
	Skew time.Duration
	// Log is told what its operator should know, one line at a time; may be nil.
	Log func(text string)
	// Metrics shows the agent to Prometheus; may be nil.
	Metrics *prom.Agent
	// Ready, when set, is called once: with nil when the agent has joined all its
	// queues, with the error when it could not.
	Ready func(error)
}

// DefaultCapacity and DefaultDrain are what an agent of a fleet has unless its
// operator says otherwise.
const (
	DefaultCapacity = 1000
	DefaultDrain    = 30 * time.Second
)

// validate refuses names that do not fit a subject.
func (o *Options) validate() error {
	errs := []error{wire.CheckName("agent name", o.ID)}
	for _, pool := range o.Pools {
		errs = append(errs, wire.CheckName("pool", pool))
	}
	return errors.Join(errs...)
}

// Agent works units until its context ends.
type Agent struct {
	bus      *bus.Bus
	opt      Options
	instance string // of this process, among those of its name
	clock    clock
	runs     *runs
	gauges   gauges
	news     chan struct{} // wakes the heart; holds one

	mu       sync.Mutex
	freed    chan struct{} // not nil while the agent is busy: one unit or share calls a target at a time
	hand     hand          // what it has in hand
	shares   map[string]*share
	past     map[string]int64 // share → calls, of those that have ended
	draining bool             // takes nothing new
	stopped  chan struct{}    // closed once what is in hand is cut
	sharing  sync.WaitGroup   // gang shares; none begins while draining
	closing  sync.WaitGroup   // runs that close their targets
}

// hand is what an agent has in hand, and how much it has had.
type hand struct {
	run, unit string
	units     int64 // worked so far
}

// ErrStopped is the cause that ends what a stopping agent has in hand.
var ErrStopped = errors.New("the agent is stopping")

func newAgent(b *bus.Bus, opt Options) *Agent {
	if len(opt.Pools) == 0 {
		opt.Pools = []string{wire.DefaultPool}
	}
	if opt.Log == nil {
		opt.Log = func(string) {}
	}
	a := &Agent{bus: b, opt: opt, instance: newInstance(), clock: newClock(opt.Skew), news: make(chan struct{}, 1), shares: map[string]*share{}, past: map[string]int64{}, stopped: make(chan struct{})}
	a.gauges.metrics = opt.Metrics
	a.runs = &runs{agent: opt.ID, ask: b.AskLease, watch: &a.gauges, byID: map[string]*run{}}
	return a
}

// Run joins the fleet and works until ctx ends. It returns nil then, and an
// error when it could not join or stay: *NameTaken when another process bears
// its name.
func Run(ctx context.Context, b *bus.Bus, opt Options) error {
	a := newAgent(b, opt)
	var told sync.Once
	ready := func(err error) {
		told.Do(func() {
			if opt.Ready != nil {
				opt.Ready(err)
			}
		})
	}
	err := a.opt.validate()
	if err == nil {
		a.opt.Capacity, err = fit(opt.Capacity)
	}
	if err == nil && opt.Capacity == 0 && a.opt.Capacity < DefaultCapacity {
		a.opt.Log(fmt.Sprintf("this machine has room for %d callers, so that is this agent's capacity; see the limits on open files and memory", a.opt.Capacity))
	}
	if err == nil {
		err = a.live(ctx, func() { ready(nil) })
	}
	ready(cmp.Or(err, context.Cause(ctx)))
	return err
}

// live is the agent's life: its name is its own as long as it lasts.
func (a *Agent) live(ctx context.Context, joined func()) error {
	ctx, yield := context.WithCancelCause(ctx)
	defer yield(nil)
	release, err := a.bear(ctx)
	if err != nil || release == nil {
		return err
	}
	defer release()
	hangUp, err := a.listen(ctx)
	if err != nil || hangUp == nil {
		return err
	}
	if err := a.attend(ctx, yield, hangUp, joined); err != nil {
		return err
	}
	var taken *NameTaken
	if errors.As(context.Cause(ctx), &taken) {
		return taken
	}
	a.leave()
	return nil
}

// attend lasts until ctx ends: the agent can be reached and is announced before it
// joins its queues, and returns when all it had in hand is out of it.
func (a *Agent) attend(ctx context.Context, yield func(error), hangUp, joined func()) error {
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	var heart, loops sync.WaitGroup
	heart.Go(func() { a.heartbeat(beating) })
	heart.Go(func() { a.watchName(ctx, yield) })
	err := a.pullAll(ctx, &loops, joined)
	if err == nil {
		<-ctx.Done()
	}
	yield(err)
	a.drain(&loops)
	hangUp()
	stopBeating()
	heart.Wait()
	a.closing.Wait()
	a.runs.close()
	return err
}

// pullAll joins the queue of every pool and starts to work it.
func (a *Agent) pullAll(ctx context.Context, loops *sync.WaitGroup, joined func()) error {
	queues := make([]*bus.Queue, len(a.opt.Pools))
	for i, pool := range a.opt.Pools {
		queue, err := a.join(ctx, a.queueOf(pool))
		if err != nil || queue == nil {
			for _, joined := range queues[:i] {
				joined.Close()
			}
			return err
		}
		queues[i] = queue
	}
	for i, queue := range queues {
		loops.Go(func() { a.pull(ctx, a.queueOf(a.opt.Pools[i]), queue) })
	}
	joined()
	return nil
}

func (a *Agent) queueOf(pool string) string { return wire.QueueName(pool, a.opt.Digest) }

// control obeys go, halt, release and quota. It never waits: a halt of one run
// must not queue behind the targets of another.
func (a *Agent) control(id string, c wire.Control) {
	switch c.Kind {
	case wire.Release:
		if r := a.runs.release(id, c.Generation); r != nil {
			a.close(r)
		}
	case wire.Halt:
		if r, err := a.runs.enter(id, c.Generation); err == nil {
			r.lease.halt(fmt.Errorf("halted: %s", c.Reason))
			a.runs.leave(r)
		}
	case wire.Go:
		if r := a.runs.known(id, c.Generation); r != nil {
			r.start(c.Gang, c.At+c.Offsets[a.opt.ID])
		}
	case wire.Quota:
		if r := a.runs.known(id, c.Generation); r != nil {
			r.ration.halt(c.Pause)
			r.lease.poke()
			a.opt.Metrics.QuotaPause(c.Pause)
		}
	}
}

// close closes a run, beside everything else.
func (a *Agent) close(r *run) { a.closing.Go(r.close) }
