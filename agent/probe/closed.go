package probe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	workers, err := l.prepare(ctx, callers)
	if err != nil {
		return err
	}
	if err := l.begin(ctx, workers...); err != nil {
		return err
	}
	meter := startMeter(l.env, false)
	shared := &queue{share: l.share}
	var wg sync.WaitGroup
	for i, w := range workers {
		w.start()
		ops := shared
		if l.env.Target.Virtual() {
			ops = &queue{share: l.share.stripe(uint64(i))}
		}
		l.env.spawn(&wg, func() { w.loop(ctx, ops) })
	}
	wg.Wait()
	res.Generator = meter.stop(l.tally)
	return nil
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
		return nil, errors.Join(errs...)
	}
	for i, err := range errs {
		if err != nil {
			workers[i] = l.worker(i)
			workers[i].shut(ctx, err)
			workers[i].most = int(max(1, l.unit.Ops.Len()/uint64(max(n, 1))))
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

// loop works operations until none is left, the time is up or ctx ends. An
// operation begun in time is finished.
//
// The window counts every operation of the worker and the time until its last
// answer. Operations begin only while all workers have work (they share one
// queue, or the clock), so completions over busy time times workers is the rate
// of the level, without the idle tail that a wall clock would add: the number
// of operations begun by a moment is a stopping time, and by Wald's equation
// their mean duration is not biased by the moment.
func (w *worker) loop(ctx context.Context, ops *queue) {
	defer w.finish()
	var win metrics.Window
	limit := w.load.unit.Load.Duration
	for taken := 0; (limit <= 0 || w.clock.Now() < limit) && (w.most == 0 || taken < w.most); taken++ {
		op, ok := ops.take()
		if !ok || w.gate.wait(ctx, w.clock, &w.tally.Quota) != nil {
			break
		}
		x := w.call(ctx, op, 0)
		if w.may.over || !x.Outcome.Measured() && ctx.Err() != nil {
			break
		}
		if x.Outcome.Measured() {
			win.Completed++
			win.BusyUS = int64(w.clock.Now() / time.Microsecond)
			if x.Ok() {
				win.Succeeded++
			}
		}
		w.settle()
	}
	if win.Completed > 0 {
		win.Workers = w.number + 1
		if w.level > 1 {
			win.LongestUS = win.BusyUS
		}
	}
	w.tally.Window.Merge(win)
}
