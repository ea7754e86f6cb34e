// Package dispatch hands out the units of a stage and collects their results.
//
// In go a Stage; out come its results. It bounds how many units are out at
// once, starts gangs together, halts everything when its context ends, and
// still collects what the agents had measured until then. It never looks into
// a result.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/plan"
)

// haltGrace bounds the wait for the partial results of a halted stage. A halt
// ends the calls in flight and the waits between them at once, so what is left
// is one message out and one back; an agent that is gone sends none.
const haltGrace = 5 * time.Second

// closeWait bounds the answer of a server that may be gone.
const closeWait = 2 * time.Second

// Dispatcher serves one run.
type Dispatcher struct {
	bus     *bus.Bus
	run     string
	pool    string
	stages  int
	results chan *wire.Result
	stop    []func()
}

// New listens for the results of a run.
func New(ctx context.Context, b *bus.Bus, run, pool string) (*Dispatcher, error) {
	if err := wire.CheckName("pool", pool); err != nil {
		return nil, err
	}
	d := &Dispatcher{bus: b, run: run, pool: pool, results: make(chan *wire.Result, 1024)}
	done := make(chan struct{})
	stopResults, err := b.Results(ctx, run, func(r *wire.Result) { d.deliver(done, r) })
	if err != nil {
		return nil, err
	}
	stopPoison, err := b.Poisoned(ctx, pool, run, func(u *wire.Unit) { d.deliver(done, poison(u)) })
	if err != nil {
		stopResults()
		return nil, err
	}
	d.stop = []func(){func() { close(done) }, stopResults, stopPoison}
	return d, nil
}

func (d *Dispatcher) deliver(done <-chan struct{}, r *wire.Result) {
	select {
	case d.results <- r:
	case <-done:
	}
}

// poison is the result of a unit that no agent could finish.
func poison(u *wire.Unit) *wire.Result {
	return &wire.Result{V: wire.Version, Run: u.Run, Stage: u.Stage, Unit: u.ID, Incarnation: wire.MaxDeliver, Final: true,
		Failure: &wire.Failure{Class: "harness", Message: fmt.Sprintf("handed out %d times without a result", wire.MaxDeliver),
			Remedy: "see the agents' logs: the unit kills or hangs them"}}
}

// Close stops listening, takes back what is still queued, and lets the agents
// end and close what they have of the run: no work outlives it.
func (d *Dispatcher) Close() error {
	for _, stop := range d.stop {
		stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	return errors.Join(d.bus.Purge(ctx, d.pool, d.run), d.bus.Control(d.run, wire.Control{Kind: wire.Release}))
}

// Stage runs one stage and returns its results, late and repeated ones of
// earlier units included: telling them apart is the merge's job. When ctx ends
// it halts the agents, waits a bounded time for what they had measured, and
// returns that with the cause.
func (d *Dispatcher) Stage(ctx context.Context, st *plan.Stage) ([]*wire.Result, error) {
	token := st.Number(d.run, d.stages)
	d.stages++
	if st.Gang {
		return d.gangStage(ctx, st)
	}
	return d.poolStage(ctx, st, token)
}

func (d *Dispatcher) poolStage(ctx context.Context, st *plan.Stage, token string) ([]*wire.Result, error) {
	limit := st.Parallel
	if limit <= 0 {
		limit = len(st.Units)
	}
	c := newCollector(d.run, st.Units)
	next := 0
	for c.missing() > 0 {
		for next < len(st.Units) && next-c.arrived() < limit && ctx.Err() == nil {
			if err := d.bus.PublishUnit(ctx, d.pool, token, &st.Units[next]); err != nil {
				return c.results, err
			}
			next++
		}
		if err := c.one(ctx, d.results); err != nil {
			return d.halted(ctx, c, next)
		}
	}
	return c.results, nil
}

// halted stops the agents and collects what they still report.
func (d *Dispatcher) halted(ctx context.Context, c *collector, out int) ([]*wire.Result, error) {
	cause := context.Cause(ctx)
	if err := d.bus.Control(d.run, wire.Control{Kind: wire.Halt, Reason: cause.Error()}); err != nil {
		return c.results, fmt.Errorf("halt: %w (after %w)", err, cause)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltGrace)
	defer cancel()
	for c.arrived() < out && c.one(grace, d.results) == nil {
	}
	return c.results, cause
}

// collector gathers the results of a set of units.
type collector struct {
	run     string
	open    map[string]bool
	total   int
	results []*wire.Result
}

func newCollector(run string, units []wire.Unit) *collector {
	c := &collector{run: run, open: map[string]bool{}, total: len(units)}
	for i := range units {
		c.open[units[i].ID] = true
	}
	return c
}

func (c *collector) missing() int { return len(c.open) }
func (c *collector) arrived() int { return c.total - len(c.open) }

// one waits for the next result; one of another run is dropped.
func (c *collector) one(ctx context.Context, results <-chan *wire.Result) error {
	select {
	case r := <-results:
		if r.Run != c.run {
			return nil
		}
		c.results = append(c.results, r)
		if r.Final {
			delete(c.open, r.Unit)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
