// Package dispatch hands out the units of a stage and collects their results.
//
// In go a Stage; out come its results, one by one as they arrive. It bounds how
// many units are out at once, starts gangs together, hands on the units of
// agents that died, halts everything when its context ends, and still collects
// what the agents had measured until then. It never looks into a result.
//
//	Stage ─┬─ pool   queue ─ collect
//	       └─ gang   measure clocks ─ prepare ─ go ─ collect; once more when a member is lost
//
//	New starts:  results    reads the stream of results
//	             events     notes which agent has which unit in hand
//	             presence   asks the agents that have work whether they are there
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics/prom"
)

// haltGrace bounds the wait for the partial results of a halted stage. A halt
// ends the calls in flight and the waits between them at once, so what is left
// is one message out and one back; an agent that is gone sends none.
const haltGrace = 5 * time.Second

// closeWait bounds the answer of a server that may be gone.
const closeWait = 2 * time.Second

// storeWait is how long an agent may fail to store a result before the run ends:
// a server restart passes, a full disk does not.
const storeWait = 30 * time.Second

// Sink takes what a stage brings, on one goroutine.
type Sink interface {
	// Planned says of which units the stage consists, before any of them counts.
	Planned(units []wire.Unit)
	// Add takes a result; late and repeated ones come too.
	Add(*wire.Result)
	// Gang says what became of a gang stage.
	Gang(merge.Gang)
	// Lost names an agent that went away with work in hand.
	Lost(agent string)
}

// Options of a dispatcher.
type Options struct {
	Bus    *bus.Bus
	Roster *roster.Roster
	Run    string
	Pool   string
	Select roster.Selector
	// Generation of the controller: the fencing token of all it sends.
	Generation uint64
	// Sure reports whether the controller still leads the run for certain: it
	// sends nothing while it is not.
	Sure func() bool
	// LeaseTTL is how long a silent member of a gang counts as alive.
	LeaseTTL time.Duration
	// Stored are the final results of the run that were there when this controller
	// took it over, and After the place in the stream behind them; nil for a new
	// run. More of them may come before their stage does: they are added.
	Stored map[string]*wire.Result
	After  uint64
	// Gangs are the attempts at gang stages that earlier controllers began, and
	// Inherited when the last leave ends that one of them gave to an agent which
	// cannot be reached.
	Gangs     []wire.GangRecord
	Cut       map[string]int64 // unit → calls of stored results that were cut
	Queued    map[string]bool  // units that were queued or in hand before Stored was read
	Inherited time.Time
	// Record keeps an attempt at a gang stage before its go, and again when it
	// has lost a member.
	Record func(context.Context, wire.GangRecord) error
	// Sent is how many operations of a unit have gone out, as far as is known.
	Sent func(unit string) int64
	// Gone is told of agents that were lost; may be nil.
	Gone  func(agent string)
	Warn  func(text string)
	Meter *prom.Controller // may be nil
}

// Dispatcher serves one run.
type Dispatcher struct {
	opt     Options
	queue   string
	stages  int
	results chan *wire.Result
	trouble chan error // an agent cannot store what it has measured
	hands   hands
	here    *presence
	done    chan struct{} // closed when the dispatcher stops listening
	tidying sync.WaitGroup
	stop    []func()

	mu       sync.Mutex
	unstored map[string]time.Time // unit and agent → when it first failed to store the result
}

// New listens for the results of a run.
func New(ctx context.Context, opt Options) (*Dispatcher, error) {
	if err := wire.CheckName("pool", opt.Pool); err != nil {
		return nil, err
	}
	d := &Dispatcher{opt: opt, queue: wire.QueueName(opt.Pool, schedule.Digest()), results: make(chan *wire.Result, 1024),
		trouble: make(chan error, 1), unstored: map[string]time.Time{}}
	if err := opt.Bus.OpenQueue(ctx, d.queue); err != nil {
		return nil, err
	}
	d.done = make(chan struct{})
	d.stop = append(d.stop, func() { close(d.done); d.tidying.Wait() })
	if err := d.listen(ctx, d.done); err != nil {
		d.hangUp()
		return nil, err
	}
	d.here = newPresence(d)
	d.stop = append(d.stop, d.here.close)
	return d, nil
}

func (d *Dispatcher) listen(ctx context.Context, done <-chan struct{}) error {
	stop, err := d.opt.Bus.OnEvent(d.opt.Run, func(e wire.Event) { d.event(done, e) })
	if err != nil {
		return err
	}
	d.stop = append(d.stop, stop)
	stop, err = d.opt.Bus.Results(ctx, d.opt.Run, d.opt.After, func(r *wire.Result) { d.deliver(done, r) })
	if err != nil {
		return err
	}
	d.stop = append(d.stop, stop)
	return nil
}

func (d *Dispatcher) deliver(done <-chan struct{}, r *wire.Result) {
	if r.Final {
		d.hear(r)
		r.Incarnation = max(1, r.Incarnation-min(r.Incarnation, d.hands.done(r.Unit)))
		d.stored(r.Unit)
	}
	select {
	case d.results <- r:
	case <-done:
	}
}

// hear waits a moment for what agents said of a unit that was handed out more
// than once: it comes another way than its result.
func (d *Dispatcher) hear(r *wire.Result) {
	for until := time.Now().Add(hearWait); r.Incarnation > 1 && !d.hands.knows(r.Unit, r.Incarnation) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}

const hearWait = 100 * time.Millisecond

func (d *Dispatcher) hangUp() {
	for _, stop := range d.stop {
		stop()
	}
	d.stop = nil
}

// Close stops listening, takes back what is still queued, and lets the agents
// end and close what they have of the run: no work outlives it.
func (d *Dispatcher) Close() error {
	d.hangUp()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if !d.opt.Sure() {
		return errNotSure // what is queued may be another controller's
	}
	return errors.Join(d.opt.Bus.Purge(ctx, d.queue, d.opt.Run), d.control(wire.Control{Kind: wire.Release}))
}

var errNotSure = errors.New("not sure to lead the run: its units are left alone")

// Abandon stops listening and leaves everything as it is: another controller
// has taken the run over.
func (d *Dispatcher) Abandon() { d.hangUp() }

func (d *Dispatcher) control(c wire.Control) error {
	c.Generation = d.opt.Generation
	return d.opt.Bus.Control(d.opt.Run, c)
}

// Stage runs one stage. When ctx ends it halts the agents, waits a bounded time
// for what they had measured, and returns the cause.
func (d *Dispatcher) Stage(ctx context.Context, st *plan.Stage, sink Sink) error {
	token := st.Number(d.opt.Run, d.stages)
	d.stages++
	for i := range st.Units {
		st.Units[i].Digest, st.Units[i].Gen = schedule.Digest(), d.opt.Generation
	}
	if st.Gang {
		return d.gangStage(ctx, st, token, sink)
	}
	return d.poolStage(ctx, st, sink)
}

// early keeps a result whose stage has not come yet: of a unit that was in hand
// when the run was taken over.
func (d *Dispatcher) early(r *wire.Result) bool {
	if d.opt.Stored == nil || !r.Final || r.Partial || r.Run != d.opt.Run || d.opt.Stored[r.Unit] != nil {
		return false
	}
	d.opt.Stored[r.Unit] = r
	return true
}

// counted stands for a result that has been passed on.
var counted = &wire.Result{}

func (d *Dispatcher) passed(unit string) {
	if d.opt.Stored != nil {
		d.opt.Stored[unit] = counted
	}
}

// sure waits until the controller is certain to lead the run.
func (d *Dispatcher) sure(ctx context.Context) error {
	for !d.opt.Sure() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(sureEvery):
		}
	}
	return nil
}

const sureEvery = 20 * time.Millisecond

// halt stops the agents. A controller that was replaced leaves them alone: they
// obey its successor, and so must it.
func (d *Dispatcher) halt(cause error) error {
	if errors.Is(cause, bus.ErrFenced) {
		return cause
	}
	if err := d.control(wire.Control{Kind: wire.Halt, Reason: cause.Error()}); err != nil {
		return fmt.Errorf("%w (and the agents could not be told: %w; their lease ends it)", cause, err)
	}
	return nil
}

func (d *Dispatcher) warn(format string, args ...any) {
	if d.opt.Warn != nil {
		d.opt.Warn(fmt.Sprintf(format, args...))
	}
}
