package probe

import (
	"cmp"
	"container/heap"
	"context"
	"time"

	"ordeal/faultproxy"
)

// openVirtual runs the arrivals in virtual time, in one goroutine: a call is in
// flight until its reported latency is over.
func (l *load) openVirtual(ctx context.Context) error {
	l.meter = newMeter(l.env, true)
	w, err := l.newWorker(ctx, 0)
	if err != nil {
		return err
	}
	w.warmUp(ctx, 0, 1)
	if err := l.begin(ctx, w); err != nil {
		return err
	}
	l.count([]*worker{w})
	w.start()
	w.book = l.newBook()
	defer w.book.finish()
	most := cmp.Or(l.unit.Load.MaxInFlight, defaultInFlight)
	var open ends
	var last uint64
	var at time.Duration
	for k := uint64(0); ctx.Err() == nil && !w.may.over; k++ {
		op, skip, ok := l.share.nth(k)
		if !ok {
			break
		}
		if skip {
			continue
		}
		n := op - l.unit.Load.Stage.From
		due, in := l.course.shape.Due(n)
		if !in {
			break
		}
		for len(open) > 0 && open[0] <= due {
			heap.Pop(&open)
		}
		w.virtualArrival(ctx, arrival{op, due}, &open, most)
		last, at = n+1, due
		w.book.settle(due)
	}
	if last > 0 {
		w.book.tally.Window.SpanUS = l.course.span(last, at).Microseconds()
	}
	return nil
}

func (w *worker) virtualArrival(ctx context.Context, a arrival, open *ends, most int) {
	b, measured := w.book, w.load.course.measures(a.due)
	sent := len(*open) < most && !w.gate.closed(w.clock, a.due, &b.tally.Quota)
	if sent {
		clock := &faultproxy.VirtualClock{}
		clock.Advance(a.due)
		w.clock, w.layer.Clock = clock, clock
		x := w.work(ctx, a.op, a.due, 1) // sent when due: 1 ns marks an open loop
		if w.may.over {
			return
		}
		if measured && x.Outcome.Measured() {
			b.tally.Window.Completed++
			if x.Ok() {
				b.tally.Window.Succeeded++
			}
		}
		heap.Push(open, clock.Now())
	}
	if measured {
		arrive(&b.tally.Window, sent)
	}
	b.ledger.arrive(a.due, a.due, sent, int64(len(*open)))
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
