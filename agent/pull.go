package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	pullWait  = 5 * time.Second // of one request for a unit
	pullAgain = 200 * time.Millisecond
	// returnDelay is how long a unit rests whose controller did not answer.
	returnDelay = 3 * time.Second
)

// pull works the units of one queue, one at a time, while the agent has nothing
// else in hand.
func (a *Agent) pull(ctx context.Context, name string, queue *bus.Queue) {
	defer queue.Close()
	said := reasons{}
	for a.idle(ctx) {
		d, err := queue.Next(ctx, pullWait)
		switch {
		case err != nil:
			if a.bus.Connected() && said.news(err.Error(), time.Now()) { // a lost connection is said elsewhere
				a.opt.Log("queue " + name + ": " + err.Error())
			}
			sleep(ctx, pullAgain)
		case d != nil && !a.take():
			_ = d.GiveBack(0) // lost, it is handed out again after AckWait
			a.event(d, wire.Declined, "a share of a gang came first")
		case d != nil:
			a.serve(d)
		}
	}
}

const (
	// reasonAgain is how long a reason is not said again.
	reasonAgain = 10 * time.Minute
	keptReasons = 64
)

// reasons are those for which no unit came, with the time at which each was said.
type reasons map[string]time.Time

// news reports whether a reason is to be said.
func (r reasons) news(text string, now time.Time) bool {
	if at, said := r[text]; said && now.Sub(at) < reasonAgain {
		return false
	}
	if len(r) >= keptReasons {
		clear(r)
	}
	r[text] = now
	return true
}

// idle waits until the agent has nothing in hand; false once ctx has ended.
func (a *Agent) idle(ctx context.Context) bool {
	for ctx.Err() == nil {
		a.mu.Lock()
		freed := a.freed
		a.mu.Unlock()
		if freed == nil {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
	return false
}

// take makes the agent busy; false when it is already.
func (a *Agent) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.freed != nil {
		return false
	}
	a.freed = make(chan struct{})
	return true
}

// free is the end of take.
func (a *Agent) free() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hand.run, a.hand.unit = "", ""
	close(a.freed)
	a.freed = nil
}

// holds notes what the agent has in hand.
func (a *Agent) holds(run, unit string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hand.run, a.hand.unit = run, unit
}

// serve works a unit and publishes its result before acknowledging it: an agent
// that dies in between causes a second result, which the merge ignores, never
// a lost one. What the agent's stop or its lease has cut goes back to the queue:
// another agent measures it whole. The agent was made busy before, and is free
// once the target is called no more.
func (a *Agent) serve(d *bus.Delivery) {
	free := sync.OnceFunc(a.free)
	defer free()
	c := a.claim(d)
	defer c.end()
	state, err := a.runs.unit(d.Unit.Run, d.Unit.Gen)
	if err != nil {
		_ = d.Drop(err.Error()) // lost, it is handed out and dropped again
		return
	}
	defer a.runs.leave(state)
	w, err := state.begin(context.Background())
	if err != nil {
		a.refuse(c, state, err)
		return
	}
	defer w.end()
	a.catchUp(d.Unit.Run, state)
	a.holds(d.Unit.Run, d.Unit.ID)
	c.begun = true
	a.event(d, wire.Began, "")
	a.opt.Metrics.UnitStarted()
	r := a.run(w, &d.Unit, nil)
	free()
	r.Incarnation = d.Incarnation
	a.settle(c, w, r)
}

// refuse lets go of a unit that may not be begun.
func (a *Agent) refuse(c *claim, state *run, err error) {
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		a.deny(c, state, denied)
	case errors.Is(err, ErrStopped):
		a.giveBack(c, 0, err.Error())
	default: // nobody answers for it, or it is halted: its controller takes it back
		if errors.Is(err, errNoAnswer) {
			state.keep(a.what(c.d, wire.Declined, err.Error()))
		}
		a.giveBack(c, returnDelay, err.Error())
	}
}

// keptUnsaid bounds what is kept for a controller that may never come.
const keptUnsaid = 10_000

// keep keeps what no controller has heard, for the next one: otherwise a unit that
// was declined in between would count as one that the target may have seen.
func (r *run) keep(e wire.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsaid) < keptUnsaid {
		r.unsaid = append(r.unsaid, e)
	}
}

// catchUp says what was kept.
func (a *Agent) catchUp(id string, r *run) {
	r.mu.Lock()
	unsaid := r.unsaid
	r.unsaid = nil
	r.mu.Unlock()
	for _, e := range unsaid {
		_ = a.bus.PublishEvent(id, e)
	}
}

// deny drops a unit, and closes what is open of its run: nobody waits for either.
func (a *Agent) deny(c *claim, state *run, why *deniedError) {
	_ = c.d.Drop(why.Error())
	a.forget(c.d.Unit.Run, state)
}

// forget closes a run that is over, as its controller says. A later unit of it
// asks again.
func (a *Agent) forget(id string, state *run) {
	if a.runs.forget(id, state) {
		a.close(state)
	}
}

// settle publishes a result, or gives the unit back.
func (a *Agent) settle(c *claim, w *work, r *wire.Result) {
	cause := context.Cause(w.ctx)
	var denied *deniedError
	switch {
	case errors.As(cause, &denied) && !w.run.lease.wasHalted():
		a.opt.Metrics.UnitFailed()
		a.deny(c, w.run, denied)
	case r.Partial && errors.Is(cause, ErrStopped):
		a.opt.Metrics.UnitReturned()
		a.giveBack(c, 0, ErrStopped.Error())
	case r.Partial && errors.Is(cause, ErrLeaseExpired):
		a.opt.Log("run " + r.Run + ": unit " + r.Unit + " was cut: " + ErrLeaseExpired.Error())
		a.opt.Metrics.UnitReturned()
		a.giveBack(c, returnDelay, ErrLeaseExpired.Error())
	default:
		a.conclude(c, w, r)
	}
}

// conclude stores a result and acknowledges its unit; one that cannot be stored
// is handed out again.
func (a *Agent) conclude(c *claim, w *work, r *wire.Result) {
	if err := a.store(w, r, false); err != nil {
		a.opt.Metrics.UnitReturned()
		a.giveBack(c, returnDelay, "its result could not be stored: "+err.Error())
		return
	}
	a.acknowledge(c.d)
	a.worked(r)
}

// worked counts a unit whose result is stored.
func (a *Agent) worked(r *wire.Result) {
	a.mu.Lock()
	a.hand.units++
	a.mu.Unlock()
	if r.Failure != nil {
		a.opt.Metrics.UnitFailed()
	} else {
		a.opt.Metrics.UnitDone()
	}
}

// giveBack hands a unit to another agent after a while. One that may be in other
// hands by now is left alone.
func (a *Agent) giveBack(c *claim, delay time.Duration, why string) {
	c.end()
	if !c.sure() || c.d.GiveBack(delay) != nil {
		return // it is handed out again after AckWait
	}
	kind := wire.Declined
	if c.begun {
		kind = wire.Returned
	}
	a.event(c.d, kind, why)
}

// event tells the controller what became of a unit; lost, the unit is handed on
// later than it might be.
func (a *Agent) event(d *bus.Delivery, kind, why string) {
	e := a.what(d, kind, why)
	if kind == wire.Began {
		e.Ack = d.Ack()
	}
	_ = a.bus.PublishEvent(d.Unit.Run, e)
}

func (a *Agent) what(d *bus.Delivery, kind, why string) wire.Event {
	return wire.Event{Kind: kind, Agent: a.opt.ID, Unit: d.Unit.ID, Incarnation: d.Incarnation, Reason: why}
}
