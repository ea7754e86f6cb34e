package probe

import (
	"context"
	"runtime"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// flushCalls is how many calls a worker keeps to itself before it adds them to
// the unit's tally; flushEvery bounds the wait of a slow target's progress.
const (
	flushCalls = 512
	flushEvery = 200 * time.Millisecond
)

// load is one load unit at work.
type load struct {
	env      *Env
	unit     *wire.Unit
	box      *toolbox
	faults   *schedule.Schedule
	share    share
	slots    slots
	clock    faultproxy.Clock // of the unit: real, or idle beside virtual workers
	gate     *gate            // of the unit; workers of a virtual target have their own
	progress Progress

	mu    sync.Mutex // guards tally and sent
	tally *metrics.Tally
	sent  int64 // calls that went out, warm-up included
}

func runLoad(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress Progress) error {
	box := newToolbox(&u.Call, u.Load.CheckOutput)
	faults, err := faultSchedule(u.Faults)
	if err != nil {
		return err
	}
	l := &load{env: env, unit: u, box: box, faults: faults, share: shareOf(u), progress: progress, tally: metrics.NewTally()}
	defer func() {
		res.Calls = l.sent
		res.Tally = l.tally
	}()
	if u.Load.MilliRate > 0 {
		return l.open(ctx, res)
	}
	return l.closed(ctx, res)
}

// begin ends the preparations: it waits for the others of a gang and starts the
// clock. Without a beginning the calls of the warm-up are all there is.
func (l *load) begin(ctx context.Context, workers ...*worker) error {
	if l.env.Ready != nil {
		if err := l.env.Ready(ctx); err != nil {
			l.count(workers)
			return err
		}
	}
	l.clock = l.env.newClock()
	runtime.Gosched() // shares of other agents in this process, which are due now, start their clocks first
	l.gate = newGate(l.unit.Load, l.env.Quota)
	return nil
}

// count adds the calls that workers have made so far.
func (l *load) count(workers []*worker) {
	for _, w := range workers {
		if w != nil {
			l.sent += w.sent
			w.sent = 0
		}
	}
}

// add moves what a worker has counted into the unit's tally.
func (l *load) add(w *worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Merge(w.tally)
	l.sent += w.sent
	w.sent = 0
	l.progress(l.tally.Calls(), l.tally.Failures(), w.tally)
	w.tally.Reset()
}

// worker is one caller with everything it needs to itself.
type worker struct {
	caller
	load   *load
	number int64 // within the level, from 0
	clock  faultproxy.Clock
	gate   *gate
	tally  *metrics.Tally
	most   int           // operations it may take; 0 = as many as there are
	kept   int           // calls in tally
	added  time.Duration // when tally was last added to the unit's
}

// newWorker is the unit's w-th user with its session open.
func (l *load) newWorker(ctx context.Context, w int) (*worker, error) {
	session, err := l.session(ctx, w)
	if err != nil {
		return nil, err
	}
	made := l.worker(w)
	made.session = session
	return made, nil
}

// user numbers the unit's w-th user within the level. Workers that take turns in
// slots share the users of the unit, see overlap.
func (l *load) user(w int) int {
	if l.slots != nil {
		w %= cap(l.slots)
	}
	return l.unit.Load.FirstWorker + w
}

// session opens the session of the unit's w-th user.
func (l *load) session(ctx context.Context, w int) (target.Session, error) {
	return l.env.Target.Session(ctx, l.user(w))
}

// worker is the unit's w-th user without a session.
func (l *load) worker(w int) *worker {
	return &worker{load: l, number: int64(l.user(w)), tally: metrics.NewTally(), caller: caller{
		box: l.box, timeout: l.unit.Target.Timeout, label: loadLabel, level: l.unit.Load.Level,
		layer: faultproxy.Layer{Schedule: l.faults}, slots: l.slots, may: l.env.may(),
	}}
}

// start gives the worker its time line. On a virtual target each has one of its
// own, and its own back-off, so that no worker's time depends on another's; a
// pause of the fleet is real time, which means nothing there.
func (w *worker) start() {
	w.clock, w.gate = w.load.clock, w.load.gate
	if w.load.env.Target.Virtual() {
		w.clock, w.gate = &faultproxy.VirtualClock{}, newGate(w.load.unit.Load, nil)
	}
	w.layer.Clock = w.clock
}

// warmUp makes unmeasured calls, without faults, under a label of their own:
// every workers-th of the unit's warm-up operations.
func (w *worker) warmUp(ctx context.Context, first, workers int) {
	plain := w.caller
	plain.label, plain.layer = warmupLabel, faultproxy.Layer{Clock: &faultproxy.VirtualClock{}}
	defer func() { w.sent = plain.sent }()
	for op := first; op < w.load.unit.Load.Warmup && ctx.Err() == nil && !plain.may.over; op += workers {
		x := plain.attempt(ctx, uint64(op), 0)
		plain.may.report(&x)
	}
}

// call makes one measured call that is late behind its intended start.
func (w *worker) call(ctx context.Context, op uint64, late time.Duration) metrics.Exchange {
	x := w.attempt(ctx, op, 0)
	if w.may.over {
		return x // it did not go out
	}
	w.tally.Add(&x, late)
	w.checkOutput(op, &x, w.tally)
	w.may.report(&x)
	w.gate.see(&x, w.clock.Now(), &w.tally.Quota)
	w.load.env.revive(ctx, w.load.unit, &x, w.tally)
	return x
}

// settle adds what was kept to the unit's tally when there is enough of it.
func (w *worker) settle() {
	w.kept++
	if w.kept < flushCalls && (w.load.env.Target.Virtual() || w.clock.Now()-w.added < flushEvery) {
		return
	}
	w.finish()
	w.added = w.clock.Now()
}

// finish adds what is left.
func (w *worker) finish() {
	w.load.add(w)
	w.kept = 0
}
