package lead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// Leader leads a run until Finish or Close, or until somebody else takes it. All
// methods may be called from several goroutines.
type Leader struct {
	opt    Options
	run    string
	meter  *meter
	ctx    context.Context // for Context
	cancel context.CancelCauseFunc
	lost   chan struct{}
	poke   chan struct{} // wakes the keeper; holds one
	work   sync.WaitGroup
	end    func()          // stops the keeper
	quit   <-chan struct{} // closed by end
	closed sync.Once

	mu        sync.Mutex
	record    wire.Run // as it is to be stored next
	revision  uint64   // of the record as it is stored
	changes   uint64   // made to the record so far
	stored    uint64   // of those
	progress  chan struct{}
	urgent    bool      // somebody waits for a write
	unclear   bool      // the answer to a write was lost: it may be stored
	sent      time.Time // when the last stored renewal was sent
	link      uint64    // reconnects of the bus at that time
	retry     time.Time // no write before
	began     time.Time // this lead
	before    time.Duration
	inherited time.Time
	denied    string // why agents get no leave any more
	over      bool   // neither leads nor speaks any more
	cause     error  // of the loss
}

// errClosed is what remains of a leader after Finish or Close.
var errClosed = errors.New("the run is not led by this controller any more")

// Create stores the record of a new run and leads it, as generation 1.
func Create(ctx context.Context, opt Options) (*Leader, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	r := clone(&opt.Record)
	if err := wire.CheckName("run", r.ID); err != nil {
		return nil, err
	}
	r.State, r.Generation, r.TTL = wire.Running, 1, opt.TTL
	if r.TTL == 0 {
		r.TTL = wire.LeaseTTL
	}
	if r.Started.IsZero() {
		r.Started = time.Now().UTC()
	}
	l := newLeader(ctx, opt, &r)
	err := l.begin(ctx, func() (uint64, error) { return opt.Bus.CreateRun(ctx, &l.record) })
	if errors.Is(err, bus.ErrFenced) {
		return nil, fmt.Errorf("run %s exists already: see ordeal runs show %s", r.ID, r.ID)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// newLeader prepares to lead a run; its record is that of the run so far.
func newLeader(ctx context.Context, opt Options, r *wire.Run) *Leader {
	l := &Leader{opt: opt, run: r.ID, record: clone(r), before: r.Active, meter: newMeter(&opt, r.Granted), end: func() {},
		lost: make(chan struct{}), poke: make(chan struct{}, 1), progress: make(chan struct{})}
	l.record.Holder, l.record.Claim = opt.Holder, newClaim()
	if b := l.meter.budget; b != nil {
		b.asked = b.next()
		b.reserve = func(total int64) { l.change(func(r *wire.Run) { r.Granted = total }, true) }
		l.record.Granted = b.asked
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// begin subscribes, writes the first record, and starts the keeper. Until the
// write has succeeded the leader is not sure and answers nothing.
func (l *Leader) begin(ctx context.Context, write func() (uint64, error)) error {
	hangUp, err := l.listen()
	if err != nil {
		l.cancel(errClosed)
		return err
	}
	now, link := time.Now(), l.opt.Bus.Reconnects()
	revision, err := write()
	if err != nil {
		revision, err = l.found(ctx, err)
	}
	if err != nil {
		hangUp()
		l.cancel(err)
		return err
	}
	l.mu.Lock()
	l.revision, l.sent, l.link, l.began = revision, now, link, now
	l.mu.Unlock()
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end, l.quit = end, keeping.Done()
	l.meter.stored(&l.record)
	l.work.Go(func() {
		defer hangUp()
		l.keep(keeping)
	})
	return nil
}

// found looks whether a first write of which err is all that came back is stored
// nevertheless.
func (l *Leader) found(ctx context.Context, err error) (uint64, error) {
	r, revision, lookup := l.opt.Bus.Run(ctx, l.run)
	if lookup == nil && r.Claim == l.record.Claim {
		return revision, nil
	}
	return 0, err
}

// Context ends with the lead: its cause is bus.ErrFenced when another controller
// has taken the run over, a *Halted when somebody ordered it to stop, or that of
// the context the leader was made with. Only the first ends the lead itself.
func (l *Leader) Context() context.Context { return l.ctx }

// Lost is closed once another controller leads the run; Err says who.
func (l *Leader) Lost() <-chan struct{} { return l.lost }

// Err is nil until the lead is lost; it is a bus.ErrFenced then.
func (l *Leader) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Generation is the fencing token of this lead.
func (l *Leader) Generation() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.Generation
}

// Inherited is when the last leave ends that a predecessor has given to an agent
// which cannot be reached; the zero time when there is none.
func (l *Leader) Inherited() time.Time { return l.inherited }

// lose ends the lead: somebody else has it.
func (l *Leader) lose(cause error) {
	l.mu.Lock()
	l.over, l.cause = true, cause
	l.mu.Unlock()
	close(l.lost)
	l.cancel(cause)
	l.opt.Log(cause.Error())
}

// Close gives the lead up and leaves the record as it is: another controller may
// take the run at once. After Finish it does nothing.
func (l *Leader) Close() {
	l.closed.Do(func() {
		l.end()
		l.mu.Lock()
		l.over = true
		l.mu.Unlock()
		l.work.Wait()
		l.cancel(errClosed)
	})
}

// clone copies a record so deeply that changes to the copy do not show.
func clone(r *wire.Run) wire.Run {
	c := *r
	c.Words, c.Order, c.Gangs = slices.Clone(r.Words), slices.Clone(r.Order), slices.Clone(r.Gangs)
	for i := range c.Gangs {
		g := &c.Gangs[i]
		g.Units, g.Agents, g.Lost = slices.Clone(g.Units), slices.Clone(g.Agents), slices.Clone(g.Lost)
	}
	return c
}
