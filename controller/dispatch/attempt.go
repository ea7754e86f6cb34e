package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
)

// attempt is one try at a gang stage.
type attempt struct {
	d       *Dispatcher
	record  wire.GangRecord
	whole   *wire.Unit
	shares  []wire.Unit
	members []roster.Member
	clocks  map[string]roster.Reading
	open    map[string]string       // unit → agent, without a result
	results map[string]*wire.Result // by unit
	late    []*wire.Result          // of other units
	why     string                  // the first member was lost
	lostAt  time.Time               // when the last one was found to be
	began   bool                    // go was said
	called  sync.Map                // unit → calls, of shares that were given up
	unsure  []bool                  // share → its agent may hold it: it was offered, and no answer came
}

// newAttempt shares the stage among the members of the pool, those without that
// were lost a moment ago: the registry may not know it yet.
func (d *Dispatcher) newAttempt(st *plan.Stage, whole *wire.Unit, token string, number int, without []string) (*attempt, error) {
	fit, err := d.members(without)
	if err != nil {
		return nil, err
	}
	capacities := make([]int, len(fit))
	for i, m := range fit {
		capacities[i] = m.Capacity
	}
	shares, err := plan.ShareAmong(*whole, capacities)
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", st.Name, err)
	}
	a := &attempt{d: d, whole: whole, shares: shares, members: fit[:len(shares)], open: map[string]string{}, results: map[string]*wire.Result{}, unsure: make([]bool, len(shares))}
	a.record = wire.GangRecord{Stage: st.Name, Gang: fmt.Sprintf("%s-a%d", token, number), Attempt: number}
	for i := range shares {
		shares[i].ID, shares[i].Gang = fmt.Sprintf("%s-%d", a.record.Gang, i), a.record.Gang
		a.open[shares[i].ID] = fit[i].ID
		a.record.Units = append(a.record.Units, shares[i].ID)
		a.record.Agents = append(a.record.Agents, fit[i].ID)
	}
	return a, nil
}

// run gets the members ready, starts them, and collects what they measured. It
// returns nil when the attempt came to an end, with or without losses.
func (a *attempt) run(ctx context.Context, last bool) error {
	if err := a.prepare(ctx, wire.PrepareWait); err != nil {
		return err
	}
	a.measure(ctx)
	if len(a.record.Lost) > 0 {
		return a.drop(ctx)
	}
	if len(a.open) == 0 {
		return nil // nobody got ready
	}
	a.d.here.members(a.waiting())
	defer a.d.here.members(nil)
	if err := a.start(ctx); err != nil {
		return err
	}
	return a.collect(ctx, last)
}

// waiting are the members without a result.
func (a *attempt) waiting() []string {
	var ids []string
	for i := range a.shares {
		if id, ok := a.open[a.shares[i].ID]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// measure finds out how far the members' clocks are from the controller's. One
// that cannot be measured could not be told when to begin.
func (a *attempt) measure(ctx context.Context) {
	a.clocks = a.d.opt.Roster.Clock(ctx, a.waiting())
	for id, c := range a.clocks {
		if c.Err != nil {
			a.lose(loss{id, "its clock could not be measured: " + c.Err.Error()})
		}
	}
}

// start tells the members when to begin.
func (a *attempt) start(ctx context.Context) error {
	if err := a.keep(ctx); err != nil {
		return err
	}
	lead, offsets := wire.StartLead, map[string]int64{}
	for id, c := range a.clocks {
		offsets[id] = int64(c.Offset)
		lead = max(lead, wire.StartLead+2*c.Bound)
	}
	if err := a.d.sure(ctx); err != nil {
		return err
	}
	a.began = true
	if len(a.shares) == 1 {
		lead = 0 // nobody to begin together with
	}
	at := a.d.opt.Roster.Now() + int64(lead)
	err := a.d.control(wire.Control{Kind: wire.Go, Gang: a.record.Gang, At: at, Offsets: offsets})
	if err != nil {
		return fmt.Errorf("start stage %s: %w", a.record.Stage, err)
	}
	return nil
}

// keep records the attempt where a second controller finds it.
func (a *attempt) keep(ctx context.Context) error {
	r := &a.record
	r.Workers, r.Offsets, r.Bounds = nil, nil, nil
	for i := range a.shares {
		c := a.clocks[r.Agents[i]]
		r.Workers = append(r.Workers, a.shares[i].Load.Workers)
		r.Offsets, r.Bounds = append(r.Offsets, int64(c.Offset)), append(r.Bounds, int64(c.Bound))
	}
	return a.d.opt.Record(ctx, *r)
}

func (a *attempt) collect(ctx context.Context, last bool) error {
	for len(a.open) > 0 {
		select {
		case r := <-a.d.results:
			a.take(r)
		case l := <-a.d.here.lost:
			a.lose(l)
			if !last {
				return errors.Join(a.drop(ctx), a.keep(ctx))
			}
		case err := <-a.d.trouble:
			return a.halted(ctx, err)
		case <-ctx.Done():
			return a.halted(ctx, context.Cause(ctx))
		}
	}
	return nil
}

func (a *attempt) take(r *wire.Result) {
	if _, ours := a.open[r.Unit]; !ours || r.Run != a.d.opt.Run {
		if !a.d.early(r) {
			a.late = append(a.late, r)
		}
		return
	}
	if r.Final {
		a.d.passed(r.Unit)
		a.results[r.Unit] = r
		delete(a.open, r.Unit)
	}
}

// lose notes a member that is gone. What it measured until then died with it.
func (a *attempt) lose(l loss) {
	for unit, agent := range a.open {
		if agent != l.agent {
			continue
		}
		a.record.Lost = append(a.record.Lost, agent)
		a.lostAt = time.Now()
		if a.why == "" {
			a.why = l.why
		}
		a.fail(unit, agent, &wire.Failure{Class: "lost", Message: "agent " + agent + " was lost: " + l.why})
		a.d.opt.Meter.GangMembersLost(1)
	}
}

// fail ends a share without a measurement.
func (a *attempt) fail(unit, agent string, f *wire.Failure) {
	a.results[unit] = &wire.Result{V: wire.Version, Run: a.d.opt.Run, Stage: a.record.Stage, Unit: unit, Agent: agent, Incarnation: 1, Final: true, Failure: f}
	delete(a.open, unit)
}

// drop makes everybody give the attempt up.
func (a *attempt) drop(ctx context.Context) error {
	a.takeBack(ctx, func(unit string) bool { return a.open[unit] != "" })
	return context.Cause(ctx)
}

// halted stops the members and collects what they still report.
func (a *attempt) halted(ctx context.Context, cause error) error {
	if err := a.d.halt(cause); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltGrace)
	defer cancel()
	for len(a.open) > 0 {
		select {
		case r := <-a.d.results:
			a.take(r)
		case l := <-a.d.here.lost:
			a.lose(l)
		case <-limited.Done():
			return cause
		}
	}
	return cause
}

// sent is how many operations the target has seen of an attempt that counts for
// nothing, as far as its members had said.
func (a *attempt) sent() int64 {
	var n int64
	for i := range a.shares {
		n += a.made(a.shares[i].ID)
	}
	return n
}

// made is the calls of a share, by who knows them best: its result, the agent that
// gave it up, a result that was cut, its samples.
func (a *attempt) made(unit string) int64 {
	if r := a.results[unit]; r != nil && r.Failure == nil {
		return r.Calls
	}
	if n, ok := a.called.Load(unit); ok {
		return max(n.(int64), a.d.opt.Cut[unit])
	}
	return max(a.d.opt.Cut[unit], a.d.opt.Sent(unit))
}

// discard lets what some members had measured count as ignored.
func (a *attempt) discard(sink Sink) {
	for _, r := range a.results {
		if r.Failure == nil {
			sink.Add(r)
		}
	}
}

// conclude passes on what the attempt brought.
func (a *attempt) conclude(st *plan.Stage, g *merge.Gang, sink Sink) {
	st.Units = a.shares
	sink.Planned(a.shares)
	var missing []string // members whose share failed
	g.Name, g.Arrivals = a.record.Gang, st.Units[0].Load.MilliRate > 0
	for i := range a.shares {
		member := merge.GangMember{ID: a.members[i].ID, Workers: a.shares[i].Load.Workers}
		if c, ok := a.clocks[member.ID]; ok && c.Err == nil {
			member.Offset, member.Bound = c.Offset, c.Bound
		}
		r := a.results[a.shares[i].ID]
		if r != nil {
			member.Start = r.Start
			sink.Add(r)
		}
		g.Planned += member.Workers
		switch {
		case r != nil && r.Failure == nil:
			g.Achieved += member.Workers
		case !slices.Contains(g.Lost, member.ID):
			missing = append(missing, member.ID)
		}
		g.Agents = append(g.Agents, member)
	}
	for _, r := range a.late {
		sink.Add(r)
	}
	if g.Arrivals { // every member makes the same number of them
		g.Planned, g.Achieved = 1000, 1000*g.Achieved/g.Planned
	}
	if 0 < g.Achieved && g.Achieved < g.Planned { // whatever the reason
		g.Lost, g.Degraded = append(g.Lost, missing...), true
	}
	g.Degraded = g.Degraded || len(a.record.Lost) > 0
	if skew, _, ok := g.Skew(); ok {
		a.d.opt.Meter.GangStarted(skew)
	}
	sink.Gang(*g)
}
