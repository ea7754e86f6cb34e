package dispatch

import (
	"context"
	"slices"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
)

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
	a := &attempt{d: d, record: *rec, whole: whole, open: map[string]string{}, results: map[string]*wire.Result{}, clocks: map[string]roster.Reading{}, unsure: make([]bool, len(rec.Units))}
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
