package probe

import (
	"context"
	"sync"
	"sync/atomic"

	"ordeal/metrics"
)

// spareSlots is how many idle slots beyond the prepared ones are kept for the next
// burst. Those of a longer one leave, and take their memory with them.
const spareSlots = 64

// crew is the slots that make the calls of an open loop. Who was idle last is
// called first: its memory and its connection are warm, and the slots of a burst
// stay out of the way afterwards.
//
//	pacer ─ send ─▶ slot on top of the stack ─▶ call ─▶ back onto the stack
//	             └▶ a new one, if none is idle and fewer than most are at work
//	             └▶ none: the arrival is dropped
type crew struct {
	ctx  context.Context
	load *load
	most int64
	kept int // idle slots that stay
	busy atomic.Int64
	// spent: no call may go out any more.
	spent atomic.Bool
	wg    sync.WaitGroup

	mu      sync.Mutex // guards what is below
	idle    []*slot    // with a session; the one idle last on top
	shut    []*slot    // whom the target did not let in, so far
	free    []int      // numbers of slots that have left
	started int        // numbers given out
	books   []*book    // not in use
	all     []*book
	over    bool
}

// slot is a goroutine that makes one call at a time.
type slot struct {
	*worker
	index     int // among the unit's users
	connected bool
	next      chan arrival // room for the one call it waits for: who sends never waits
}

func newCrew(ctx context.Context, l *load, most int, workers []*worker) *crew {
	c := &crew{ctx: ctx, load: l, most: int64(most), kept: len(workers) + spareSlots, started: len(workers)}
	for i := len(workers) - 1; i >= 0; i-- {
		c.idle = append(c.idle, c.start(workers[i], i))
	}
	return c
}

// start runs a slot; one without a prepared worker opens its session on its first
// call.
func (c *crew) start(w *worker, index int) *slot {
	s := &slot{worker: w, index: index, connected: w != nil, next: make(chan arrival, 1)}
	if w == nil {
		s.worker = c.load.worker(index)
	}
	s.crew = c
	s.worker.start()
	c.load.env.spawn(&c.wg, func() { c.work(s) })
	return s
}

// send hands an arrival to a slot; false when all that there may be are at work.
func (c *crew) send(a arrival) bool {
	if c.busy.Load() >= c.most {
		return false
	}
	c.busy.Add(1)
	c.take().next <- a
	return true
}

// take is a slot that is idle, or new.
func (c *crew) take() *slot {
	c.mu.Lock()
	for _, stack := range []*[]*slot{&c.idle, &c.shut} {
		if n := len(*stack); n > 0 {
			s := (*stack)[n-1]
			*stack = (*stack)[:n-1]
			c.mu.Unlock()
			return s
		}
	}
	index := c.started
	if n := len(c.free); n > 0 {
		index, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.started++
	}
	c.mu.Unlock()
	return c.start(nil, index)
}

// work makes the calls of a slot.
func (c *crew) work(s *slot) {
	for a := range s.next {
		c.answer(s, a)
		if !c.park(s) {
			return
		}
	}
}

// park makes a slot idle; false when it is not needed any more. Where the target
// refused a session, the slot asks again on its next call, and waits behind all who
// have one: it is idle at once, and would take most arrivals from those that work.
func (c *crew) park(s *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy.Add(-1)
	switch {
	case c.over:
		return false
	case !s.connected:
		c.shut = append(c.shut, s)
	case len(c.idle) >= c.kept:
		c.free = append(c.free, s.index)
		return false
	default:
		c.idle = append(c.idle, s)
	}
	return true
}

// disband waits for the calls that are open, and adds up what all have counted.
func (c *crew) disband() {
	c.mu.Lock()
	c.over = true
	for _, s := range append(c.idle, c.shut...) {
		close(s.next)
	}
	c.mu.Unlock()
	c.wg.Wait()
	for _, b := range c.all {
		b.finish()
	}
}

// answer makes the call of one arrival. What it brought is counted in a book that
// nobody else uses at the time: there are as many of them as calls end at once, not
// as there are slots.
func (c *crew) answer(s *slot, a arrival) {
	late := max(s.clock.Now()-a.due, 1)
	c.load.meter.handed(late)
	if !s.connected && c.load.opener == nil {
		s.connected = s.connect(c.ctx, s.index)
		late = max(s.clock.Now()-a.due, 1)
	}
	x := s.work(c.ctx, a.op, a.due, late)
	b := s.book
	if s.may.over {
		c.spent.Store(true)
	}
	if b == nil {
		return // it did not go out
	}
	if x.Outcome.Measured() && c.load.course.measures(a.due) {
		b.tally.Window.Completed++
		if x.Ok() {
			b.tally.Window.Succeeded++
		}
	}
	b.settle(s.begun)
	c.giveBook(s.worker)
	s.in.Structured, s.in.Text, s.in.Gaps = nil, "", nil // an idle slot holds on to no answer
}

// takeBook is a book that nobody uses.
func (c *crew) takeBook() *book {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.books); n > 0 {
		b := c.books[n-1]
		c.books = c.books[:n-1]
		return b
	}
	b := c.load.newBook()
	c.all = append(c.all, b)
	return b
}

// giveBook gives the book of a worker back. One that has its own keeps it.
func (c *crew) giveBook(w *worker) {
	if c == nil || w.book == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books = append(c.books, w.book)
	w.book = nil
}

// connect opens the session of a late worker. When the target refuses it, the
// call at hand fails the way a caller without a connection fails.
func (w *worker) connect(ctx context.Context, number int) bool {
	session, err := w.load.session(ctx, number)
	if err == nil {
		w.session = session
		return true
	}
	w.shut(ctx, err)
	return false
}

// shut gives a worker whom the target did not let in a session that fails.
func (w *worker) shut(ctx context.Context, err error) {
	outcome := metrics.Connection
	if ctx.Err() != nil {
		outcome = metrics.Cancelled
	}
	w.session = refused{metrics.Exchange{Outcome: outcome, Executed: metrics.No, Message: "no further session: " + oneLine(err.Error())}}
}
