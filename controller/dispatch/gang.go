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
	"ordeal/agent/wire/bus"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
)

// ErrNoAgents means that nobody who could take part serves the pool.
var ErrNoAgents = errors.New("no agent serves the pool")

// tries of a gang stage: a level that loses a member is repeated once.
const tries = 2

// gangStage shares the stage's one unit among the agents of the pool, waits
// until all are ready, and starts them together. An attempt that loses a member
// counts for nothing and is repeated once with those that are left; when that
// loses one too, the rest of it counts, marked degraded.
func (d *Dispatcher) gangStage(ctx context.Context, st *plan.Stage, token string, sink Sink) error {
	whole := st.Units[0]
	if d.replayGang(st, sink) {
		return nil
	}
	var outcome merge.Gang
	first, err := d.endEarlier(ctx, st, &outcome)
	if err != nil {
		return err
	}
	var absent []string
	for number, try := first, 0; ; number++ {
		a, err := d.newAttempt(st, &whole, token, number, append(absent, outcome.Lost...))
		if errors.Is(err, ErrNoAgents) {
			if err := d.awaitMembers(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		d.forget(sink)
		err = a.run(ctx, try+1 == tries)
		if err == nil && len(a.record.Lost) > 0 && !a.began { // nothing was sent: the level begins without them
			absent = append(absent, a.record.Lost...)
			continue
		}
		try++
		outcome.Attempts++
		outcome.Lost = append(outcome.Lost, a.record.Lost...)
		if err == nil && len(a.record.Lost) > 0 && try < tries {
			outcome.Repeated += a.sent()
			a.discard(sink)
			d.warn("stage %s lost %s (%s): it is repeated with the others", st.Name, strings.Join(a.record.Lost, ", "), a.why)
			if err := d.outlive(ctx, a.lostAt); err != nil {
				return err
			}
			continue
		}
		a.conclude(st, &outcome, sink)
		return err
	}
}

// awaitMembers returns once somebody serves the pool: the agents of a run may
// have been lost between two of its stages.
func (d *Dispatcher) awaitMembers(ctx context.Context) error {
	poll := time.NewTicker(askEvery)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			if _, err := d.members(nil); err == nil {
				return nil
			}
		case err := <-d.trouble:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// forget passes on the losses of what was done before: an agent of the same name
// may be back.
func (d *Dispatcher) forget(sink Sink) {
	for {
		select {
		case l := <-d.here.lost:
			sink.Lost(l.agent)
		default:
			return
		}
	}
}

// outlive waits until a member that was lost can work no more: one that is only
// cut off has its lease.
func (d *Dispatcher) outlive(ctx context.Context, lost time.Time) error {
	select {
	case <-time.After(time.Until(lost.Add(d.opt.LeaseTTL))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt is one try at a gang stage.
type attempt struct {
	d       *Dispatcher
	record  wire.GangRecord
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
	a := &attempt{d: d, shares: shares, members: fit[:len(shares)], open: map[string]string{}, results: map[string]*wire.Result{}}
	a.record = wire.GangRecord{Stage: st.Name, Gang: fmt.Sprintf("%s-a%d", token, number), Attempt: number}
	for i := range shares {
		shares[i].ID, shares[i].Gang = fmt.Sprintf("%s-%d", a.record.Gang, i), a.record.Gang
		a.open[shares[i].ID] = fit[i].ID
		a.record.Units = append(a.record.Units, shares[i].ID)
		a.record.Agents = append(a.record.Agents, fit[i].ID)
	}
	return a, nil
}

// members of the pool that may take part, by id.
func (d *Dispatcher) members(without []string) ([]roster.Member, error) {
	fit, refused := d.opt.Roster.Members(d.opt.Pool, d.opt.Select)
	fit = slices.DeleteFunc(fit, func(m roster.Member) bool { return slices.Contains(without, m.ID) })
	if len(fit) == 0 && len(refused) > 0 {
		return nil, fmt.Errorf("%w %q (refused: %s)", ErrNoAgents, d.opt.Pool, strings.Join(refused, "; "))
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%w %q", ErrNoAgents, d.opt.Pool)
	}
	return fit, nil
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
		if r != nil && r.Failure == nil {
			g.Achieved += member.Workers
		}
		g.Agents = append(g.Agents, member)
	}
	for _, r := range a.late {
		sink.Add(r)
	}
	if g.Arrivals { // every member makes the same number of them
		g.Planned, g.Achieved = 1000, 1000*g.Achieved/g.Planned
	}
	g.Degraded = len(a.record.Lost) > 0
	if skew, _, ok := g.Skew(); ok {
		a.d.opt.Meter.GangStarted(skew)
	}
	sink.Gang(*g)
}

// replayGang takes the results of an attempt that an earlier controller of the
// run had seen to its end.
func (d *Dispatcher) replayGang(st *plan.Stage, sink Sink) bool {
	for _, rec := range slices.Backward(d.opt.Gangs) {
		if rec.Stage != st.Name || len(rec.Lost) > 0 || slices.ContainsFunc(rec.Units, func(id string) bool { return d.opt.Stored[id] == nil }) {
			continue
		}
		a := d.recorded(&rec, &st.Units[0])
		for _, id := range rec.Units {
			a.results[id] = d.opt.Stored[id]
		}
		a.conclude(st, &merge.Gang{Attempts: rec.Attempt}, sink)
		return true
	}
	return false
}

// recorded is an attempt of an earlier controller.
func (d *Dispatcher) recorded(rec *wire.GangRecord, whole *wire.Unit) *attempt {
	a := &attempt{d: d, record: *rec, open: map[string]string{}, results: map[string]*wire.Result{}, clocks: map[string]roster.Reading{}}
	for i, id := range rec.Units {
		share, load := *whole, *whole.Load
		share.ID, share.Gang, load.Workers = id, rec.Gang, rec.Workers[i]
		share.Load = &load
		a.shares = append(a.shares, share)
		a.members = append(a.members, roster.Member{Seen: bus.Seen{Hello: wire.Hello{ID: rec.Agents[i]}}})
		a.clocks[rec.Agents[i]] = roster.Reading{Offset: time.Duration(rec.Offsets[i]), Bound: time.Duration(rec.Bounds[i])}
	}
	return a
}

// endEarlier ends the attempts that earlier controllers of the run had begun and
// not seen to their end, and returns the number of the next one. Their members
// obey this generation by now; one that cannot be reached may work on until its
// lease ends, and a gang must have the target to itself.
func (d *Dispatcher) endEarlier(ctx context.Context, st *plan.Stage, g *merge.Gang) (next int, err error) {
	next = 1
	for _, rec := range d.opt.Gangs {
		if rec.Stage != st.Name {
			continue
		}
		next = max(next, rec.Attempt+1)
		old := d.recorded(&rec, &st.Units[0])
		for _, id := range rec.Units {
			if r := d.opt.Stored[id]; r != nil {
				old.results[id] = r
			}
		}
		all := old.takeBack(ctx, func(string) bool { return true })
		g.Repeated += old.sent()
		if all {
			continue
		}
		select {
		case <-time.After(time.Until(d.opt.Inherited)):
		case <-ctx.Done():
			return next, context.Cause(ctx)
		}
	}
	return next, nil
}
