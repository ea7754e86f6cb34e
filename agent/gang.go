package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordeal/agent/probe"
	"ordeal/agent/wire"
)

// goLate is how late a share may still begin: beyond that the others have
// measured a level that it was no part of.
const goLate = time.Second

var (
	errNoGo    = errors.New("no go came for a prepared share")
	errLateGo  = fmt.Errorf("go came more than %v after the start", goLate)
	errAborted = errors.New("the controller took the share back")
)

// share is a share of a gang stage in the agent's hands.
//
//	taken ── leave ── prepared ── go ── due ── measured ── published
//	   └────────┴────────┴─────────┴─────┴── aborted, never ready: nothing is published
type share struct {
	unit     wire.Unit
	started  <-chan int64 // the start, on the agent's clock
	prepared chan struct{}
	ctx      context.Context // ends when the controller wants it back
	abort    context.CancelCauseFunc
	ended    chan struct{} // closed once the agent is free again
	start    *wire.Start   // once it is measured
	failure  *wire.Failure // set before ended is closed
}

func (s *share) key() string { return s.unit.Run + "/" + s.unit.ID }

// request answers what a controller asks of this agent.
func (a *Agent) request(r wire.Request) wire.Ready {
	ready := wire.Ready{V: wire.Version, Agent: a.opt.ID}
	switch {
	case r.Kind == wire.Ping:
		ready.Clock = a.clock.now()
	case r.Unit == nil:
		ready.Failure = &wire.Failure{Class: "harness", Message: fmt.Sprintf("request %q without a unit", r.Kind)}
	case r.Kind == wire.Prepare:
		ready.Failure = a.prepare(r.Unit)
	case r.Kind == wire.Abort:
		ready.Calls = a.giveUp(r.Unit)
	default:
		ready.Failure = &wire.Failure{Class: "harness", Message: fmt.Sprintf("unknown request %q: this agent is older than its controller", r.Kind)}
	}
	return ready
}

// prepare takes a share of a gang stage and answers once it is prepared, or at
// once that the agent is busy; the measured part waits for go.
func (a *Agent) prepare(u *wire.Unit) *wire.Failure {
	if l := u.Load; l != nil && l.Workers > a.opt.Capacity {
		return &wire.Failure{Class: "capacity", Message: fmt.Sprintf("agent %s holds %d callers, not %d", a.opt.ID, a.opt.Capacity, l.Workers),
			Remedy: "add agents, or raise their --capacity"}
	}
	state, err := a.runs.enter(u.Run, u.Gen)
	if err != nil {
		return &wire.Failure{Class: "cancelled", Message: err.Error()}
	}
	s := &share{unit: *u, prepared: make(chan struct{}), ended: make(chan struct{})}
	s.ctx, s.abort = context.WithCancelCause(context.Background())
	if f := a.begin(state, s); f != nil {
		a.runs.leave(state)
		return f
	}
	select {
	case <-s.prepared:
		return nil
	case <-s.ended:
	}
	if s.failure == nil {
		return &wire.Failure{Class: "harness", Message: "the share ended before it was ready"}
	}
	return s.failure
}

// begin starts the share on a goroutine of its own, unless the agent has
// something else to do.
func (a *Agent) begin(state *run, s *share) *wire.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.freed != nil:
		return &wire.Failure{Class: wire.Busy, Message: "agent " + a.opt.ID + " is busy with other work", Remedy: "scan again once it is free, or use another pool"}
	case a.draining:
		return &wire.Failure{Class: "cancelled", Message: ErrStopped.Error()}
	}
	a.freed = make(chan struct{})
	a.hand.run, a.hand.unit = s.unit.Run, s.unit.ID
	a.shares[s.key()] = s
	a.sharing.Go(func() {
		defer a.runs.leave(state)
		a.workShare(state, s)
	})
	return nil
}

// workShare works a share under the lease of its run and publishes the result,
// unless it ended before it was ready: then the answer says so.
func (a *Agent) workShare(state *run, s *share) {
	started, done := state.gate(s.unit.Gang)
	defer done()
	s.started = started
	end := sync.OnceFunc(func() {
		a.drop(s)
		a.free()
		close(s.ended)
	})
	defer end()
	w, err := state.begin(s.ctx)
	if err != nil {
		s.failure = refused(err)
		a.denied(&s.unit, state, err)
		return
	}
	defer w.end()
	a.opt.Metrics.UnitStarted()
	r := a.run(w, &s.unit, func(ctx context.Context) error { return a.await(ctx, s) })
	r.Start, s.failure = s.start, r.Failure
	a.made(s.key(), r.Calls)
	end()
	a.settleShare(w, s, r)
}

// refused says why a share may not be begun. A controller that does not answer, since
// it was cut off a moment ago, may offer it again.
func refused(err error) *wire.Failure {
	if errors.Is(err, errNoAnswer) {
		return &wire.Failure{Class: wire.Busy, Message: err.Error(), Remedy: "see to the connection between the controller and NATS"}
	}
	return &wire.Failure{Class: "cancelled", Message: err.Error()}
}

// settleShare publishes what was measured. A share whose lease ran out is part of
// the result all the same: nobody else can work it. Of one that the agent's stop
// has cut nothing is said: the agent is gone from the gang, which begins again.
func (a *Agent) settleShare(w *work, s *share, r *wire.Result) {
	cause := context.Cause(w.ctx)
	select {
	case <-s.prepared:
	default:
		cause = errAborted // never ready
	}
	var denied *deniedError
	switch {
	case r.Partial && errors.Is(cause, ErrStopped):
		a.opt.Metrics.UnitReturned()
	case errors.Is(cause, errAborted), errors.As(cause, &denied) && !w.run.lease.wasHalted(), a.store(w, r, true) != nil:
		a.opt.Metrics.UnitFailed()
		a.denied(&s.unit, w.run, cause)
	default:
		a.worked(r)
	}
}

// denied closes what is open of a run that is over.
func (a *Agent) denied(u *wire.Unit, state *run, err error) {
	var denied *deniedError
	if errors.As(err, &denied) {
		a.forget(u.Run, state)
	}
}

// await says that the share is prepared, and returns when its measured part is
// due.
func (a *Agent) await(ctx context.Context, s *share) error {
	close(s.prepared)
	timer := time.NewTimer(wire.GoWait)
	defer timer.Stop()
	select {
	case due := <-s.started:
		return a.startAt(ctx, s, due)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errNoGo
	}
}

// startAt waits for the start. Whoever learns of it too late begins at once, and
// says so; much too late is no part of the gang.
func (a *Agent) startAt(ctx context.Context, s *share, due int64) error {
	woke, err := probe.SleepUntil(ctx, a.clock.moment(due))
	if err != nil {
		return err
	}
	at := a.clock.at(woke)
	if time.Duration(at-due) > goLate {
		return errLateGo
	}
	s.start = &wire.Start{Due: due, At: at}
	return nil
}

// giveUp lets go of a share and returns once the agent is free again, with the
// calls that the share had made.
func (a *Agent) giveUp(u *wire.Unit) (calls int64) {
	key := u.Run + "/" + u.ID
	a.mu.Lock()
	s := a.shares[key]
	a.mu.Unlock()
	if s != nil && u.Gen >= s.unit.Gen {
		s.abort(errAborted)
		<-s.ended
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.past[key]
}

// keptShares bounds of how many past shares an agent knows the calls.
const keptShares = 256

// made notes the calls of a share that has ended.
func (a *Agent) made(key string, calls int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.past) >= keptShares {
		clear(a.past)
	}
	a.past[key] = calls
}

func (a *Agent) drop(s *share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shares, s.key())
}
