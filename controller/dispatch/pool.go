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

// window bounds how many units of a stage are queued at once, where the stage
// itself does not.
const window = 4096

// poolStage queues units as far as the stage allows and collects their results.
// Those that an earlier controller of the run has collected are not queued
// again.
func (d *Dispatcher) poolStage(ctx context.Context, st *plan.Stage, sink Sink) error {
	sink.Planned(st.Units)
	c := newCollector(d, st.Units, sink)
	waiting := d.replay(c, st.Units)
	for c.missing() > 0 {
		if err := d.queueMore(ctx, st, c, &waiting); err != nil {
			return d.halted(ctx, err, c, len(st.Units)-len(waiting))
		}
		if err := d.one(ctx, c); err != nil {
			return d.halted(ctx, err, c, len(st.Units)-len(waiting))
		}
	}
	d.tidy(st.Units)
	return nil
}

// replay counts what is stored and returns the units that are to be queued: those
// that are neither stored nor queued.
func (d *Dispatcher) replay(c *collector, units []wire.Unit) (waiting []*wire.Unit) {
	for i := range units {
		if r := d.opt.Stored[units[i].ID]; r != nil {
			c.take(r)
			continue
		}
		if !d.opt.Queued[units[i].ID] {
			waiting = append(waiting, &units[i])
		}
	}
	return waiting
}

func (d *Dispatcher) queueMore(ctx context.Context, st *plan.Stage, c *collector, waiting *[]*wire.Unit) error {
	limit := st.Parallel
	if limit <= 0 {
		limit = window
	}
	room := limit - (c.missing() - len(*waiting))
	if limit == window && room < window/2 && len(*waiting) > room && c.missing() > len(*waiting) {
		return nil // in larger batches
	}
	n := min(room, len(*waiting))
	if n <= 0 || ctx.Err() != nil {
		return nil
	}
	if err := d.publish(ctx, (*waiting)[:n]); err != nil && ctx.Err() == nil {
		return err
	}
	d.opt.Meter.UnitsDispatched(n)
	*waiting = (*waiting)[n:]
	return nil
}

// publish queues units, as often as it takes while the server is away: one that
// is queued already stays as it is.
func (d *Dispatcher) publish(ctx context.Context, units []*wire.Unit) error {
	for begun := time.Now(); ; {
		if d.sure(ctx) != nil {
			return nil // the caller sees why
		}
		err := d.opt.Bus.PublishUnits(ctx, d.queue, units)
		if err == nil || ctx.Err() != nil || errors.Is(err, bus.ErrFull) || time.Since(begun) > storeWait {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(publishAgain):
		}
	}
}

const publishAgain = 250 * time.Millisecond

// one waits for the next result.
func (d *Dispatcher) one(ctx context.Context, c *collector) error {
	select {
	case r := <-d.results:
		c.take(r)
		return nil
	case l := <-d.here.lost:
		c.sink.Lost(l.agent)
		return nil
	case err := <-d.trouble:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settled is how long a halted stage waits for units whose agents have not even
// said that they began them.
const settled = 200 * time.Millisecond

// halted stops the agents and collects what they still report: what is queued is
// taken back, what is in hand comes partial.
func (d *Dispatcher) halted(ctx context.Context, cause error, c *collector, out int) error {
	if err := d.halt(cause); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltGrace)
	defer cancel()
	if d.opt.Sure() {
		if err := d.opt.Bus.Purge(limited, d.queue, d.opt.Run); err != nil {
			d.warn("%v", err)
		}
	}
	for begun := time.Now(); c.arrived() < out; {
		if d.hands.empty() && time.Since(begun) > settled {
			break
		}
		next, stop := context.WithTimeout(limited, settled)
		err := d.one(next, c)
		stop()
		if err != nil && limited.Err() != nil {
			break
		}
	}
	return cause
}

// collector passes the results of a set of units on.
type collector struct {
	d     *Dispatcher
	stage string
	sink  Sink
	open  map[string]bool
	total int
}

func newCollector(d *Dispatcher, units []wire.Unit, sink Sink) *collector {
	c := &collector{d: d, stage: units[0].Stage, sink: sink, open: make(map[string]bool, len(units)), total: len(units)}
	for i := range units {
		c.open[units[i].ID] = true
	}
	return c
}

func (c *collector) missing() int { return len(c.open) }
func (c *collector) arrived() int { return c.total - len(c.open) }

// take passes a result on; one of another run is dropped.
func (c *collector) take(r *wire.Result) {
	ours := c.open[r.Unit]
	if r.Run != c.d.opt.Run || !ours && c.d.early(r) {
		return
	}
	if ours && r.Stage == "" {
		r.Stage = c.stage
	}
	c.sink.Add(r)
	if ours && r.Final {
		delete(c.open, r.Unit)
		c.d.passed(r.Unit)
	}
}

// poison is the result of a unit that no agent could finish; its collector knows
// the stage.
func poison(run, unit string) *wire.Result {
	return &wire.Result{V: wire.Version, Run: run, Unit: unit, Incarnation: wire.MaxBegun, Final: true,
		Failure: &wire.Failure{Class: "harness", Message: fmt.Sprintf("begun %d times without a result", wire.MaxBegun),
			Remedy: "see the agents' logs: the unit kills or hangs them"}}
}
