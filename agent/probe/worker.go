package probe

import (
	"context"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/workload"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// worker is one caller with everything it needs to itself.
type worker struct {
	caller
	load   *load
	number int64 // within the level, from 0
	clock  faultproxy.Clock
	gate   *gate
	book   *book
	crew   *crew         // lends books; nil: the worker has its own
	script *workload.Run // of its operations; nil without a workload
	most   int           // operations it may take; 0 = as many as there are
	begun  time.Duration // when its last call ended: a closed loop reads the clock once per call
}

// newWorker is the unit's w-th user with its session open.
func (l *load) newWorker(ctx context.Context, w int) (*worker, error) {
	if l.opener != nil { // each operation opens its own
		return l.worker(w), nil
	}
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
	p := l.unit.Load
	if p.MilliRate <= 0 && p.Parts > 1 {
		return p.Part + w*p.Parts
	}
	return p.FirstWorker + w
}

// session opens the session of the unit's w-th user.
func (l *load) session(ctx context.Context, w int) (target.Session, error) {
	return l.env.Target.Session(ctx, l.user(w))
}

// worker is the unit's w-th user without a session and a book.
func (l *load) worker(w int) *worker {
	made := &worker{load: l, number: int64(l.user(w)), caller: caller{
		box: l.box, timeout: l.unit.Target.Timeout, label: loadLabel, level: l.unit.Load.Level,
		layer: faultproxy.Layer{Schedule: l.faults}, slots: l.slots, may: l.env.may(),
	}}
	if l.plan != nil {
		made.script = l.plan.NewRun()
	}
	return made
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
// every workers-th of the unit's warm-up operations. A workload warms up by time.
func (w *worker) warmUp(ctx context.Context, first, workers int) {
	if w.load.plan != nil {
		return
	}
	plain := w.caller
	plain.label, plain.layer = warmupLabel, faultproxy.Layer{Clock: &faultproxy.VirtualClock{}}
	defer func() { w.sent = plain.sent }()
	for op := first; op < w.load.unit.Load.Warmup && ctx.Err() == nil && !plain.may.over; op += workers {
		plain.may.report(plain.attempt(ctx, uint64(op), 0))
	}
}

// work works one operation that was due, or begun, at a time and is late behind
// that. It returns the exchange that decided it, which is the worker's until the next.
func (w *worker) work(ctx context.Context, op uint64, at, late time.Duration) *metrics.Exchange {
	if w.load.opener != nil {
		return w.alone(ctx, op, at, late)
	}
	return w.operate(ctx, op, at, late)
}

// operate is work in the session at hand.
func (w *worker) operate(ctx context.Context, op uint64, at, late time.Duration) *metrics.Exchange {
	if w.script != nil {
		return w.perform(ctx, op, at, late)
	}
	x := w.attempt(ctx, op, 0)
	if !w.may.over { // else it did not go out
		w.note(ctx, op, at, late, x)
	}
	return x
}

// note counts a call.
func (w *worker) note(ctx context.Context, op uint64, at, late time.Duration, x *metrics.Exchange) {
	if w.book == nil {
		w.book = w.crew.takeBook()
	}
	b := w.book
	if x.Recycled && x.Outcome == metrics.Connection {
		x.Outcome = metrics.Recycled
	}
	w.load.meter.blame(x)
	t := b.of(at)
	t.Add(x, late)
	w.checkOutput(op, x, t)
	w.begun = w.clock.Now()
	b.ledger.book(x, at, late, w.begun)
	b.sent += w.sent
	w.sent = 0
	w.may.report(x)
	w.gate.see(x, w.begun, &b.tally.Quota)
	w.load.env.revive(ctx, w.load.unit, x, b.tally)
}
