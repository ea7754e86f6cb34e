package probe

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/pace"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// defaultInFlight bounds the open calls of an open loop that names no bound.
const defaultInFlight = 1000

// open runs an open loop: arrivals are due by the clock, whatever the target
// does. An arrival beyond the in-flight bound, or during the pause a quota asks
// for, is dropped and counted, never delayed; latency counts from the moment an
// arrival was due.
func (l *load) open(ctx context.Context, res *wire.Result) error {
	p := l.unit.Load
	shape := pace.Constant{MilliRate: p.MilliRate, Length: p.Duration}
	if l.env.Target.Virtual() {
		return l.openVirtual(ctx, shape)
	}
	// Level is how many calls are expected to be open: that many sessions are
	// ready beforehand, so that the first arrivals do not wait for a handshake.
	most := cmp.Or(p.MaxInFlight, defaultInFlight)
	workers, err := l.prepare(ctx, max(p.Workers, min(p.Level, most), 1))
	if err != nil {
		return err
	}
	if err := l.begin(ctx, workers...); err != nil {
		return err
	}
	meter := startMeter(l.env, true)
	o := &openLoop{load: l, idle: workers, most: most}
	o.jobs = make(chan arrival, o.most)
	o.run(ctx, shape, meter)
	res.Generator = meter.stop(l.tally)
	return nil
}

// arrival is one operation with the time it is due, on the unit's clock.
type arrival struct {
	op  uint64
	due time.Duration
}

// openLoop is a pacer and the slots that make its calls.
type openLoop struct {
	load     *load
	idle     []*worker // prepared workers not yet started
	most     int
	jobs     chan arrival // room for most: the pacer never blocks on it
	inFlight atomic.Int64
	slots    int64 // started
	wg       sync.WaitGroup
	window   metrics.Window
	paused   metrics.QuotaSeen // pauses of the fleet that the pacer met first
}

// run issues every arrival and waits for the last answer.
func (o *openLoop) run(ctx context.Context, shape pace.Shape, meter *meter) {
	for _, w := range o.idle {
		o.slot(ctx, w)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.load.env.crash.guard(func() { o.pace(ctx, shape, meter) })
	}()
	<-done
	close(o.jobs)
	o.wg.Wait()
	o.load.mu.Lock()
	defer o.load.mu.Unlock()
	o.load.tally.Window.Merge(o.window)
	o.load.tally.Quota.Waits += o.paused.Waits
	o.load.tally.Quota.WaitedUS += o.paused.WaitedUS
}

// pace is the pacer's loop.
func (o *openLoop) pace(ctx context.Context, shape pace.Shape, meter *meter) {
	wait, l := newWaiter(o.load.env.timers), o.load
	for k := uint64(0); ctx.Err() == nil; k++ {
		op, skip, ok := l.share.nth(k)
		if !ok {
			break
		}
		if skip {
			continue
		}
		n := op - l.unit.Load.Stage.From
		due, in := shape.Due(n)
		if !in {
			break
		}
		if wait(ctx, l.clock, due) != nil {
			break
		}
		woken := l.clock.Now()
		meter.lag.Record(max(0, (woken - due).Microseconds()))
		paused := l.gate.closed(l.clock, woken, &o.paused)
		if !paused && l.env.Quota != nil && l.env.Quota.Dry() {
			// A call that waits for its turn would be late by our own doing.
			if paused = true; l.env.Leave != nil && l.env.Leave.Check() != nil {
				break
			}
		}
		o.issue(ctx, arrival{op: op, due: due}, paused)
		o.window.SpanUS = max(woken, spanOf(shape, n+1, due)).Microseconds()
	}
}

// spanOf is the time that n arrivals take up: until the next one would be due.
func spanOf(shape pace.Shape, n uint64, last time.Duration) time.Duration {
	if c, ok := shape.(pace.Constant); ok {
		c.Length = 0
		shape = c
	}
	if next, ok := shape.Due(n); ok {
		return next
	}
	return last
}

// issue hands an arrival to a slot, or drops it.
func (o *openLoop) issue(ctx context.Context, a arrival, paused bool) {
	o.window.Scheduled++
	if paused || o.inFlight.Load() >= int64(o.most) {
		o.window.Dropped++
		return
	}
	o.window.Sent++
	open := o.inFlight.Add(1)
	o.jobs <- a
	if open > o.slots {
		o.slot(ctx, nil)
	}
}

// slot starts a goroutine that makes calls one after the other. A slot beyond
// the prepared workers opens its session on its first call. Where the target
// refuses, the next call asks again: a slot without a session is idle at once,
// and would take most arrivals from those that work.
func (o *openLoop) slot(ctx context.Context, w *worker) {
	number := int(o.slots)
	o.slots++
	o.load.env.spawn(&o.wg, func() {
		connected := w != nil
		if !connected {
			w = o.load.worker(number)
		}
		w.start()
		defer w.finish()
		for a := range o.jobs {
			if !connected {
				connected = w.connect(ctx, number)
			}
			o.answer(ctx, w, a)
		}
	})
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

// answer makes the call of one arrival.
func (o *openLoop) answer(ctx context.Context, w *worker, a arrival) {
	defer o.inFlight.Add(-1)
	late := max(w.clock.Now()-a.due, 1)
	x := w.call(ctx, a.op, late)
	if x.Outcome.Measured() {
		w.tally.Window.Completed++
		if x.Ok() {
			w.tally.Window.Succeeded++
		}
	}
	w.settle()
}

// openVirtual runs the arrivals in virtual time, in one goroutine: a call is in
// flight until its reported latency is over.
func (l *load) openVirtual(ctx context.Context, shape pace.Constant) error {
	w, err := l.newWorker(ctx, 0)
	if err != nil {
		return err
	}
	w.warmUp(ctx, 0, 1)
	if err := l.begin(ctx, w); err != nil {
		return err
	}
	w.start()
	defer w.finish()
	most := cmp.Or(l.unit.Load.MaxInFlight, defaultInFlight)
	var open ends
	for k := uint64(0); ctx.Err() == nil && !w.may.over; k++ {
		op, skip, ok := l.share.nth(k)
		if !ok {
			break
		}
		if skip {
			continue
		}
		n := op - l.unit.Load.Stage.From
		due, in := shape.Due(n)
		if !in {
			break
		}
		for len(open) > 0 && open[0] <= due {
			heap.Pop(&open)
		}
		w.virtualArrival(ctx, arrival{op, due}, &open, most)
		w.tally.Window.SpanUS = max(w.tally.Window.SpanUS, spanOf(shape, n+1, due).Microseconds())
		w.settle()
	}
	return nil
}

func (w *worker) virtualArrival(ctx context.Context, a arrival, open *ends, most int) {
	win := &w.tally.Window
	win.Scheduled++
	if len(*open) >= most || w.gate.closed(w.clock, a.due, &w.tally.Quota) {
		win.Dropped++
		return
	}
	win.Sent++
	clock := &faultproxy.VirtualClock{}
	clock.Advance(a.due)
	w.clock, w.layer.Clock = clock, clock
	x := w.call(ctx, a.op, 1) // sent when due: 1 ns marks an open loop
	if w.may.over {
		win.Scheduled--
		win.Sent--
		return
	}
	if x.Outcome.Measured() {
		win.Completed++
		if x.Ok() {
			win.Succeeded++
		}
	}
	heap.Push(open, clock.Now())
}

// ends are the times at which open calls end, the earliest first.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
