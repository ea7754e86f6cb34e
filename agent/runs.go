package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// keptReleased bounds how many released runs an agent remembers. Their queued
// units are taken back by their controller; this catches what was on its way.
const keptReleased = 256

var errReleased = errors.New("the run is over")

// runs holds what an agent keeps between the units of a run: its context, which
// halt cancels, and its open targets.
type runs struct {
	mu       sync.Mutex
	byID     map[string]*run
	released []string // oldest first, at most keptReleased
	cause    error    // set once the agent stops: later runs begin cancelled
}

// run is one run at this agent.
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	targets map[string]*opened
	gates   map[string]chan struct{} // stage → its start
}

// opened is a target of a run. Whoever comes first opens it, without holding
// the run: a server may take half a minute to start.
type opened struct {
	once   sync.Once
	target target.Target
	err    error
}

func newRuns() *runs { return &runs{byID: map[string]*run{}} }

// of returns the run, creating it on first sight; false for a released one.
func (rs *runs) of(id string) (*run, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if slices.Contains(rs.released, id) {
		return nil, false
	}
	r := rs.byID[id]
	if r == nil {
		r = &run{targets: map[string]*opened{}, gates: map[string]chan struct{}{}}
		r.ctx, r.cancel = context.WithCancelCause(context.Background())
		if rs.cause != nil {
			r.cancel(rs.cause)
		}
		rs.byID[id] = r
	}
	return r, true
}

// stop cancels every run, present and future.
func (rs *runs) stop(cause error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.cause = cause
	for _, r := range rs.byID {
		r.cancel(cause)
	}
}

// release cancels a run and forgets all but its id. The caller closes what it
// returns; nil when the agent had nothing of the run.
func (rs *runs) release(id string) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if !slices.Contains(rs.released, id) {
		rs.released = append(rs.released, id)
	}
	if extra := len(rs.released) - keptReleased; extra > 0 {
		rs.released = slices.Delete(rs.released, 0, extra)
	}
	r := rs.byID[id]
	delete(rs.byID, id)
	if r != nil {
		r.cancel(errReleased)
	}
	return r
}

// close closes the targets of every run, in parallel: each takes up to its
// shut-down bound.
func (rs *runs) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range rs.byID {
		wg.Go(r.close)
	}
	wg.Wait()
}

// target returns the open target of a unit, opening it on first use; fresh says
// that this call did.
func (r *run) target(ctx context.Context, t wire.Target) (open target.Target, fresh bool, err error) {
	key, err := json.Marshal(t)
	if err != nil {
		return nil, false, err
	}
	o := r.slot(string(key))
	if o == nil {
		return nil, false, errReleased
	}
	o.once.Do(func() {
		fresh = true
		o.target, o.err = target.Open(ctx, t)
	})
	if o.err != nil {
		r.forget(string(key), o) // the next unit tries again
	}
	return o.target, fresh, o.err
}

// slot is where a target is or will be; nil once the run is closed.
func (r *run) slot(key string) *opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	o := r.targets[key]
	if o == nil {
		o = &opened{err: errors.New("opening the target was cut short")}
		r.targets[key] = o
	}
	return o
}

func (r *run) forget(key string, o *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.targets[key] == o {
		delete(r.targets, key)
	}
}

// close closes the run's targets, the one that is just being opened included;
// none is opened after it.
func (r *run) close() {
	r.mu.Lock()
	targets := r.targets
	r.closed, r.targets = true, nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, o := range targets {
		o.once.Do(func() { o.err = errReleased })
		if o.err == nil {
			_ = o.target.Close(ctx) // bounded by the target itself; how it went was noted by the survey
		}
	}
}

// start opens the gate of a stage, before or after somebody waits at it.
func (r *run) start(stage string) {
	select {
	case r.gate(stage) <- struct{}{}:
	default: // a repeated go
	}
}

// gate is where the share of a stage waits for its start.
func (r *run) gate(stage string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gates[stage]
	if g == nil {
		g = make(chan struct{}, 1)
		r.gates[stage] = g
	}
	return g
}
