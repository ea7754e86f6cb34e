package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"ordeal/agent/wire"
)

var (
	errNoGo    = errors.New("no go came for a prepared share")
	errAborted = errors.New("the controller took the share back")
)

// share is a share of a gang stage in the agent's hands.
//
//	taken ── prepared ── go ── measured ── published
//	   └────────┴── aborted, failed: nothing is published
type share struct {
	unit     wire.Unit
	started  <-chan struct{}
	prepared chan struct{} // closed once its sessions are open and its warm-up is done
	aborted  chan struct{} // closed when the controller wants it back
	abort    sync.Once
	ended    chan struct{} // closed once the agent is free again
	failure  *wire.Failure // set before ended is closed
}

func (s *share) key() string { return s.unit.Run + "/" + s.unit.ID }

// prepare takes a share of a gang stage and answers once it is prepared, or at
// once that the agent is busy; the measured part waits for go.
func (a *Agent) prepare(p wire.Prepare) wire.Ready {
	ready := wire.Ready{V: wire.Version, Agent: a.opt.ID}
	if p.Abort {
		a.giveUp(&p.Unit)
		return ready
	}
	s := &share{unit: p.Unit, prepared: make(chan struct{}), aborted: make(chan struct{}), ended: make(chan struct{})}
	if ready.Failure = a.take(s); ready.Failure != nil {
		return ready
	}
	select {
	case <-s.prepared:
	case <-s.ended:
		if ready.Failure = s.failure; ready.Failure == nil {
			ready.Failure = &wire.Failure{Class: "harness", Message: "the share ended before it was ready"}
		}
	}
	return ready
}

// take starts the share on a goroutine of its own, unless the agent has
// something else to do.
func (a *Agent) take(s *share) *wire.Failure {
	state, ok := a.runs.of(s.unit.Run)
	if !ok {
		return &wire.Failure{Class: "cancelled", Message: errReleased.Error()}
	}
	if !a.busy.TryLock() {
		return &wire.Failure{Class: wire.Busy, Message: "agent " + a.opt.ID + " is busy with other work", Remedy: "scan again once it is free, or use another pool"}
	}
	s.started = state.gate(s.unit.Stage)
	a.hold(s)
	if !a.spawn(func() { a.workShare(state, s) }) {
		a.drop(s)
		a.busy.Unlock()
		return &wire.Failure{Class: "cancelled", Message: ErrStopped.Error()}
	}
	return nil
}

func (a *Agent) workShare(state *run, s *share) {
	defer close(s.ended)
	r := a.run(state, &s.unit, s.ready)
	a.drop(s)
	a.busy.Unlock()
	s.failure = r.Failure
	select {
	case <-s.aborted:
		return
	default:
	}
	select {
	case <-s.prepared:
		a.publish(state.ctx, r, nil)
	default: // it failed before it was ready: the answer says so
	}
}

// ready waits for go between the preparations and the measured part.
func (s *share) ready(ctx context.Context) error {
	close(s.prepared)
	select {
	case <-s.started:
		return context.Cause(ctx)
	case <-s.aborted:
		return errAborted
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wire.GoWait):
		return errNoGo
	}
}

// giveUp lets go of a share and returns once the agent is free again.
func (a *Agent) giveUp(u *wire.Unit) {
	a.mu.Lock()
	s := a.shares[u.Run+"/"+u.ID]
	a.mu.Unlock()
	if s != nil {
		s.abort.Do(func() { close(s.aborted) })
		<-s.ended
	}
}

func (a *Agent) hold(s *share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shares[s.key()] = s
}

func (a *Agent) drop(s *share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shares, s.key())
}
