package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// runs holds what an agent keeps between the units of a run: its context, which
// halt cancels, and its open targets.
type runs struct {
	mu    sync.Mutex
	byID  map[string]*run
	cause error // set once the agent stops: later runs begin cancelled
}

// run is one run at this agent.
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	targets map[string]target.Target
	gates   map[string]chan time.Time // stage → its start
}

func newRuns() *runs { return &runs{byID: map[string]*run{}} }

// of returns the run, creating it on first sight.
func (rs *runs) of(id string) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.byID[id]
	if r == nil {
		r = &run{targets: map[string]target.Target{}, gates: map[string]chan time.Time{}}
		r.ctx, r.cancel = context.WithCancelCause(context.Background())
		if rs.cause != nil {
			r.cancel(rs.cause)
		}
		rs.byID[id] = r
	}
	return r
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

// release forgets a run and closes its targets.
func (rs *runs) release(id string) {
	rs.mu.Lock()
	r := rs.byID[id]
	delete(rs.byID, id)
	rs.mu.Unlock()
	if r != nil {
		r.cancel(errReleased)
		r.close()
	}
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

var errReleased = errors.New("the run is over")

// target returns the open target of a unit, opening it on first use.
func (r *run) target(ctx context.Context, t wire.Target) (target.Target, bool, error) {
	key, err := json.Marshal(t)
	if err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if open, ok := r.targets[string(key)]; ok {
		return open, false, nil
	}
	open, err := target.Open(ctx, t)
	if err != nil {
		return nil, false, err
	}
	r.targets[string(key)] = open
	return open, true, nil
}

func (r *run) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for key, t := range r.targets {
		_ = t.Close(ctx) // bounded by the target itself; how it went was noted by the survey
		delete(r.targets, key)
	}
}

// start opens the gate of a stage, before or after somebody waits at it.
func (r *run) start(stage string, at time.Time) {
	select {
	case r.gate(stage) <- at:
	default: // a repeated go
	}
}

// gate is where the shares of a stage wait for its start.
func (r *run) gate(stage string) chan time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gates[stage]
	if g == nil {
		g = make(chan time.Time, 1)
		r.gates[stage] = g
	}
	return g
}
