package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
)

const (
	prepareWait = 90 * time.Second // an agent may have to start the server first
	startAhead  = 20 * time.Millisecond
	agentPoll   = 100 * time.Millisecond
)

// ErrNoAgents means that nobody serves the pool.
var ErrNoAgents = errors.New("no agent serves the pool")

// gangStage shares the stage's one unit among the agents of the pool, waits
// until all are ready, and starts them together.
func (d *Dispatcher) gangStage(ctx context.Context, st *plan.Stage) ([]*wire.Result, error) {
	fleet, err := d.members(ctx)
	if err != nil {
		return nil, err
	}
	whole := st.Units[0]
	shares := plan.Share(whole, len(fleet))
	for i := range shares {
		shares[i].ID = fmt.Sprintf("%s.%d", whole.ID, i)
	}
	st.Units = shares
	c := newCollector(shares)
	if err := d.prepare(ctx, fleet, shares, c); err != nil {
		return c.results, err
	}
	if c.missing() == 0 {
		return c.results, nil // nobody got ready
	}
	if err := d.bus.Control(d.run, wire.Control{Kind: wire.Go, Stage: st.Name, StartAt: time.Now().Add(startAhead)}); err != nil {
		return c.results, fmt.Errorf("start stage %s: %w", st.Name, err)
	}
	for c.missing() > 0 {
		if err := c.one(ctx, d.results); err != nil {
			return d.halted(ctx, c, len(shares))
		}
	}
	return c.results, nil
}

// WaitAgents returns when somebody serves the pool, or an error once that took
// too long.
func (d *Dispatcher) WaitAgents(ctx context.Context, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		_, err := d.members(ctx)
		if err == nil || !errors.Is(err, ErrNoAgents) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(agentPoll):
		}
	}
}

// members of the pool, by id.
func (d *Dispatcher) members(ctx context.Context) ([]wire.Hello, error) {
	all, err := d.bus.Agents(ctx)
	if err != nil {
		return nil, err
	}
	fleet := slices.DeleteFunc(all, func(h wire.Hello) bool { return h.V != wire.Version || !slices.Contains(h.Pools, d.pool) })
	if len(fleet) == 0 {
		return nil, fmt.Errorf("%w %q", ErrNoAgents, d.pool)
	}
	slices.SortFunc(fleet, func(a, b wire.Hello) int { return strings.Compare(a.ID, b.ID) })
	return fleet, nil
}

// prepare asks every member at once; one that cannot take its share yields a
// failed result for it, so that the level shows what is missing.
func (d *Dispatcher) prepare(ctx context.Context, fleet []wire.Hello, shares []wire.Unit, c *collector) error {
	ctx, cancel := context.WithTimeout(ctx, prepareWait)
	defer cancel()
	failures := make([]*wire.Failure, len(shares))
	errs := make([]error, len(shares))
	var wg sync.WaitGroup
	for i := range shares {
		wg.Go(func() {
			ready, err := d.bus.Prepare(ctx, fleet[i].ID, shares[i])
			failures[i], errs[i] = ready.Failure, err
		})
	}
	wg.Wait()
	for i, f := range failures {
		if f == nil {
			continue
		}
		c.results = append(c.results, &wire.Result{V: wire.Version, Run: d.run, Stage: shares[i].Stage, Unit: shares[i].ID,
			Agent: fleet[i].ID, Incarnation: 1, Final: true, Failure: f})
		delete(c.open, shares[i].ID)
	}
	return errors.Join(errs...)
}
