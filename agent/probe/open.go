package probe

import (
	"cmp"
	"context"
	"time"

	"ordeal/agent/wire"
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
	if l.env.Target.Virtual() {
		return l.openVirtual(ctx)
	}
	// Level is how many calls are expected to be open: that many sessions are
	// ready beforehand, so that the first arrivals do not wait for a handshake.
	most := cmp.Or(p.MaxInFlight, defaultInFlight)
	pacer := &pacer{load: l, ledger: ledger{periods: l.periods}}
	l.meter = newMeter(l.env, true)
	workers, err := l.prepare(ctx, max(p.Workers, min(p.Level, most), 1))
	if err != nil {
		return err
	}
	if err := l.begin(ctx, workers...); err != nil {
		return err
	}
	l.count(workers)
	l.crew = newCrew(ctx, l, most, workers)
	l.meter.start(l.env)
	pacer.run(ctx)
	res.Generator = l.meter.stop(l.tally)
	return nil
}

// arrival is one operation with the time it is due, on the unit's clock.
type arrival struct {
	op  uint64
	due time.Duration
}

// pacer issues the arrivals of an open loop when they are due.
type pacer struct {
	load   *load
	ledger ledger
	window metrics.Window
	paused metrics.QuotaSeen // pauses of the fleet that the pacer met first
	last   uint64            // arrivals of the stage until the last one issued
	at     time.Duration     // when that was
}

// run issues every arrival and waits for the last answer.
func (p *pacer) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.load.env.crash.guard(func() { p.pace(ctx) })
	}()
	<-done
	p.load.crew.disband()
	p.ledger.flush()
	p.window.SpanUS = p.load.course.span(p.last, p.at).Microseconds()
	p.load.mu.Lock()
	defer p.load.mu.Unlock()
	if p.last > 0 {
		p.load.tally.Window.Merge(p.window)
	}
	p.load.tally.Quota.Waits += p.paused.Waits
	p.load.tally.Quota.WaitedUS += p.paused.WaitedUS
}

// pace is the pacer's loop.
func (p *pacer) pace(ctx context.Context) {
	l := p.load
	wait, done := newWaiter(ctx, l.env.timers)
	defer done()
	for k := uint64(0); ctx.Err() == nil; k++ {
		op, skip, ok := l.share.nth(k)
		if !ok {
			break
		}
		if skip {
			continue
		}
		n := op - l.unit.Load.Stage.From
		due, in := l.course.shape.Due(n)
		if !in || wait(ctx, l.clock, due) != nil {
			break
		}
		woken := l.clock.Now()
		l.meter.woke(woken - due)
		if !p.issue(arrival{op: op, due: due}, woken) {
			break
		}
		p.last, p.at = n+1, woken
	}
}

// issue hands an arrival to the crew, or drops it: also one that this pacer is so
// far behind with that whoever called would have given up by now, so that a load
// that is too much for its generator ends when it should. False: nothing may be
// called any more.
func (p *pacer) issue(a arrival, woken time.Duration) (more bool) {
	l := p.load
	if l.crew.spent.Load() {
		return false
	}
	paused := l.gate.closed(l.clock, woken, &p.paused)
	if !paused && l.env.Quota != nil && l.env.Quota.Dry() {
		// A call that waits for its turn would be late by our own doing.
		if paused = true; l.env.Leave != nil && l.env.Leave.Check() != nil {
			return false
		}
	}
	limit := l.unit.Target.Timeout
	given := limit > 0 && woken-a.due > limit
	sent := !paused && !given && l.crew.send(a)
	p.count(a.due, woken, sent)
	return true
}

func (p *pacer) count(due, woken time.Duration, sent bool) {
	if p.load.course.measures(due) {
		arrive(&p.window, sent)
	}
	p.ledger.arrive(due, woken, sent, p.load.crew.busy.Load())
	if !sent && p.load.env.dropped != nil {
		p.load.env.dropped.Add(1)
	}
}

// arrive counts an arrival.
func arrive(w *metrics.Window, sent bool) {
	w.Scheduled++
	if sent {
		w.Sent++
	} else {
		w.Dropped++
	}
}
