package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
	"ordeal/faultproxy/schedule"
)

const (
	agentPoll = 100 * time.Millisecond
	busyPause = 200 * time.Millisecond // half of it at least: the rest is drawn
	abortWait = 2 * time.Second
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
	c := newCollector(d.run, shares)
	if err := d.prepare(ctx, fleet, shares, c, wire.PrepareWait); err != nil {
		return c.results, err
	}
	if c.missing() == 0 {
		return c.results, nil // nobody got ready
	}
	if err := d.bus.Control(d.run, wire.Control{Kind: wire.Go, Stage: st.Name}); err != nil {
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

// members of the pool, by id: those that speak the run's protocol and draw from
// its fault schedule.
func (d *Dispatcher) members(ctx context.Context) ([]wire.Hello, error) {
	all, err := d.bus.Agents(ctx)
	if err != nil {
		return nil, err
	}
	var fleet []wire.Hello
	var refused []string
	for _, h := range all {
		switch why := d.refuse(&h); {
		case !slices.Contains(h.Pools, d.pool):
		case why != "":
			refused = append(refused, h.ID+" "+why)
		default:
			fleet = append(fleet, h)
		}
	}
	if len(fleet) == 0 && len(refused) > 0 {
		slices.Sort(refused)
		return nil, fmt.Errorf("%w %q (refused: %s; run agents of the same build)", ErrNoAgents, d.pool, strings.Join(refused, ", "))
	}
	if len(fleet) == 0 {
		return nil, fmt.Errorf("%w %q", ErrNoAgents, d.pool)
	}
	slices.SortFunc(fleet, func(a, b wire.Hello) int { return strings.Compare(a.ID, b.ID) })
	return fleet, nil
}

// refuse says why an agent's work would not be this run's; empty when it is.
func (d *Dispatcher) refuse(h *wire.Hello) string {
	switch {
	case h.V != wire.Version:
		return fmt.Sprintf("speaks protocol %d, not %d", h.V, wire.Version)
	case h.Digest != schedule.Digest():
		return fmt.Sprintf("of version %q draws other faults", h.Version)
	}
	return ""
}

// prepare gets the members ready within wait. One that cannot take its share yields a
// failed result for it, so that the level shows what is missing; an error means
// that ctx ended.
//
// Two runs on one fleet would wait for each other if each held a part of it.
// So a run that meets a busy agent lets go of the others and begins again after
// a while, and every run asks the agent with the lowest id first, alone: mostly
// it decides who goes first.
func (d *Dispatcher) prepare(ctx context.Context, fleet []wire.Hello, shares []wire.Unit, c *collector, wait time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	failures := d.ask(limited, fleet, shares)
	for limited.Err() == nil {
		i := slices.IndexFunc(failures, busy)
		if i < 0 {
			break
		}
		d.abort(ctx, fleet, shares, failures, failures[i])
		select {
		case <-limited.Done():
		case <-time.After(busyPause/2 + rand.N(busyPause)):
			failures = d.ask(limited, fleet, shares)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, f := range failures {
		if f == nil {
			continue
		}
		c.results = append(c.results, &wire.Result{V: wire.Version, Run: d.run, Stage: shares[i].Stage, Unit: shares[i].ID,
			Agent: fleet[i].ID, Incarnation: 1, Final: true, Failure: f})
		delete(c.open, shares[i].ID)
	}
	return nil
}

func busy(f *wire.Failure) bool { return f != nil && f.Class == wire.Busy }

// ask offers every member its share, and says why it did not take it. Behind a
// busy first member nobody is asked.
func (d *Dispatcher) ask(ctx context.Context, fleet []wire.Hello, shares []wire.Unit) []*wire.Failure {
	failures := make([]*wire.Failure, len(shares))
	failures[0] = d.offer(ctx, fleet[0].ID, shares[0])
	if busy(failures[0]) {
		for i := range failures {
			failures[i] = failures[0]
		}
		return failures
	}
	var wg sync.WaitGroup
	for i := 1; i < len(shares); i++ {
		wg.Go(func() { failures[i] = d.offer(ctx, fleet[i].ID, shares[i]) })
	}
	wg.Wait()
	return failures
}

// offer asks one agent; one that does not answer may still come to hold the
// share, and is told to let go of it.
func (d *Dispatcher) offer(ctx context.Context, agent string, share wire.Unit) *wire.Failure {
	ready, err := d.bus.Prepare(ctx, agent, share)
	if err == nil {
		return ready.Failure
	}
	d.takeBack(ctx, agent, share)
	return &wire.Failure{Class: "harness", Message: err.Error(), Remedy: "see the agent's log"}
}

// abort takes back the shares that were taken; why they failed is cause then.
func (d *Dispatcher) abort(ctx context.Context, fleet []wire.Hello, shares []wire.Unit, failures []*wire.Failure, cause *wire.Failure) {
	var wg sync.WaitGroup
	for i, f := range failures {
		if f == nil {
			failures[i] = cause
			wg.Go(func() { d.takeBack(ctx, fleet[i].ID, shares[i]) })
		}
	}
	wg.Wait()
}

// takeBack has a deadline of its own: an ended run leaves no agent waiting.
func (d *Dispatcher) takeBack(ctx context.Context, agent string, share wire.Unit) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
	defer cancel()
	_ = d.bus.Abort(ctx, agent, share) // no answer: the agent is gone, or lets go after wire.GoWait
}
