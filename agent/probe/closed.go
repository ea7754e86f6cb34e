package probe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/pace"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// closed runs a closed loop: each worker makes its next call when the last one
// was answered.
func (l *load) closed(ctx context.Context, res *wire.Result) error {
	callers := max(l.unit.Load.Workers, 1)
	if l.faults != nil && !l.env.Target.Virtual() {
		l.slots = make(slots, callers)
		callers *= overlap
	}
	l.meter = newMeter(l.env, false)
	workers, err := l.prepare(ctx, callers)
	if err != nil {
		return err
	}
	if err := l.begin(ctx, workers...); err != nil {
		return err
	}
	l.count(workers)
	l.meter.start(l.env)
	shared := &queue{share: l.share}
	var wg sync.WaitGroup
	for i, w := range workers {
		w.start()
		w.book = l.newBook()
		ops := shared
		if l.env.Target.Virtual() {
			ops = &queue{share: l.stripe(i)}
		}
		l.env.spawn(&wg, func() { w.loop(ctx, ops) })
	}
	wg.Wait()
	l.periods.crest(l.stays, l.course.think > 0)
	res.Generator = l.meter.stop(l.tally)
	return nil
}

// stripe is the operations of the unit's w-th worker on a virtual target: those of
// its number in the level, whoever else is at work.
func (l *load) stripe(w int) share {
	if p := l.unit.Load; p.Parts > 1 {
		return share{r: p.Stage, level: uint64(max(p.Level, 1)), first: uint64(l.user(w)), workers: 1}
	}
	return l.share.stripe(uint64(w))
}

// openAtOnce bounds the handshakes that are under way at the same time: a
// thousand callers are the load to measure, a thousand handshakes are not.
const openAtOnce = 32

// prepare opens the sessions and warms up, all workers at once. Users whom the
// target does not let in while it lets others fail the share of the operations
// that is theirs; when it lets nobody in, nothing can be measured.
func (l *load) prepare(ctx context.Context, n int) ([]*worker, error) {
	workers, errs := make([]*worker, n), make([]error, n)
	door := make(chan struct{}, openAtOnce)
	var wg sync.WaitGroup
	for i := range n {
		errs[i] = errCrashed // unless it comes further
		l.env.spawn(&wg, func() {
			workers[i], errs[i] = l.enter(ctx, i, door)
			if errs[i] == nil {
				workers[i].warmUp(ctx, i, n)
			}
		})
	}
	wg.Wait()
	in := slices.ContainsFunc(errs, func(err error) bool { return err == nil })
	if !in || ctx.Err() != nil {
		l.count(workers)
		return nil, ours(errors.Join(errs...))
	}
	for i, err := range errs {
		if err != nil {
			workers[i] = l.worker(i)
			workers[i].shut(ctx, err)
			workers[i].most = 1 // where the time decides, the others go on without it
			if l.course.length == 0 {
				workers[i].most = int(max(1, l.unit.Ops.Len()/uint64(max(n, 1))))
			}
		}
	}
	return workers, nil
}

// enter opens the session of the unit's w-th user when the door lets it.
func (l *load) enter(ctx context.Context, w int, door chan struct{}) (*worker, error) {
	door <- struct{}{}
	defer func() { <-door }()
	return l.newWorker(ctx, w)
}

// queue hands out the operations of a share in order, to any number of takers.
type queue struct {
	share share
	taken atomic.Uint64
}

func (q *queue) take() (op uint64, ok bool) {
	for {
		op, skip, ok := q.share.nth(q.taken.Add(1) - 1)
		if !skip || !ok {
			return op, ok
		}
	}
}

// loop works the shifts of a worker until no operation is left or ctx ends.
func (w *worker) loop(ctx context.Context, ops *queue) {
	defer w.book.finish()
	var win metrics.Window
	left := w.most
	for _, shift := range w.load.course.shifts(w.number) {
		if wait := shift.From - w.clock.Now(); wait > 0 && w.clock.Sleep(ctx, wait) != nil {
			break
		}
		if !w.shift(ctx, ops, shift, &win, &left) {
			break
		}
	}
	if win.Completed > 0 {
		win.Workers = w.number + 1
		if w.level > 1 {
			win.LongestUS = win.BusyUS
		}
	}
	w.book.tally.Window.Merge(win)
}

// shift works operations until none is left, the time is up or ctx ends; false when
// the worker is done for good. An operation begun in time is finished.
//
// The window counts every measured operation of the worker and the time from the
// first of them, or the start, until the last answer. Operations begin only while
// all workers have work (they share one queue, or the clock), so completions over
// busy time times workers is the rate of the level, without the idle tail that a
// wall clock would add: the number of operations begun by a moment is a stopping
// time, and by Wald's equation their mean duration is not biased by the moment.
func (w *worker) shift(ctx context.Context, ops *queue, shift pace.Span, win *metrics.Window, left *int) (more bool) {
	from := w.clock.Now()
	w.begun = from
	if shift.From == 0 {
		from = 0
	}
	busy, first := win.BusyUS, time.Duration(-1)
	defer func() { w.load.stayed(stay{from, w.clock.Now()}) }()
	for w.begun < shift.To {
		op, ok := ops.take()
		if !ok {
			return false
		}
		at, err := w.gate.wait(ctx, w.clock, w.begun, &w.book.tally.Quota)
		if err != nil {
			return false
		}
		x := w.work(ctx, op, at, 0)
		if w.may.over || !x.Outcome.Measured() && ctx.Err() != nil {
			return false
		}
		if w.load.course.measures(at) && x.Outcome.Measured() {
			if first < 0 {
				first = max(from, w.load.course.measured.From)
			}
			win.Completed++
			win.BusyUS = busy + int64((w.begun-first)/time.Microsecond)
			if x.Ok() {
				win.Succeeded++
			}
		}
		w.book.settle(w.begun)
		if *left--; *left == 0 || !w.think(ctx, shift.To) {
			return false
		}
	}
	return true
}

// think lets the think time pass, or the rest of the shift.
func (w *worker) think(ctx context.Context, end time.Duration) bool {
	pause := min(w.load.course.think, end-w.begun)
	if pause <= 0 {
		return true
	}
	err := w.clock.Sleep(ctx, pause)
	w.begun = w.clock.Now()
	return err == nil
}
