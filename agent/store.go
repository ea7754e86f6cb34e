package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/metrics"
)

const (
	storeWait  = 2 * time.Second // of one try: a server that was cut off in mid-answer says no more
	storeFirst = 100 * time.Millisecond
	storeMost  = 2 * time.Second
	// storeGrace is how long a result may still be stored once the agent stops,
	// and that of a share once its lease is over: nobody else can work it.
	storeGrace = 10 * time.Second
	// sayEvery is how often the controller hears of a result that finds no place.
	sayEvery = 5 * time.Second
)

// store keeps at storing a result while the lease of its run lasts: a server that
// restarts, a full disk that is made free and a cut of some seconds cost time
// only. Its deadlines are its own: what ended the work must not lose its result.
// shared marks a share of a gang, which no queue holds.
func (a *Agent) store(w *work, r *wire.Result, shared bool) error {
	var ending, said time.Time
	for pause := storeFirst; ; pause = min(2*pause, storeMost) {
		err := a.publish(r)
		if err == nil {
			return nil
		}
		if time.Since(said) > sayEvery && a.unstored(r, err) == nil {
			a.opt.Log("run " + r.Run + ": the result of unit " + r.Unit + " cannot be stored yet: " + err.Error())
			said = time.Now()
		}
		lease := w.run.lease.inForce()
		switch {
		case lease && !a.isStopped():
			ending = time.Time{}
		case !lease && !shared, !ending.IsZero() && time.Since(ending) > storeGrace:
			return err
		case ending.IsZero():
			ending = time.Now()
		}
		time.Sleep(pause/2 + rand.N(pause/2)) // at most storeMost
	}
}

// publish tries once. What is too large for the server goes in longer periods,
// whose sums are the same; a result that is so without them is lost, and says why.
func (a *Agent) publish(r *wire.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	err := a.bus.PublishResult(ctx, r)
	for errors.Is(err, bus.ErrTooLarge) && len(r.Periods) > 1 && r.Period > 0 {
		r = longer(r)
		err = a.bus.PublishResult(ctx, r)
	}
	if errors.Is(err, bus.ErrTooLarge) {
		err = a.bus.PublishResult(ctx, unsendable(r, err))
	}
	return err
}

// longer is the same result with each two of its periods as one.
func longer(r *wire.Result) *wire.Result {
	out := *r
	out.Period, out.Periods = 2*r.Period, make([]metrics.Period, (len(r.Periods)+1)/2)
	for i := range r.Periods {
		p := &out.Periods[i/2]
		inFlight, callers := max(p.InFlight, r.Periods[i].InFlight), max(p.Callers, r.Periods[i].Callers)
		p.Merge(&r.Periods[i])
		p.InFlight, p.Callers = inFlight, callers // of one agent, at different times
	}
	return &out
}

func (a *Agent) unstored(r *wire.Result, why error) error {
	return a.bus.PublishEvent(r.Run, wire.Event{Kind: wire.Unstored, Agent: a.opt.ID, Unit: r.Unit, Incarnation: r.Incarnation, Reason: why.Error()})
}

func (a *Agent) isStopped() bool {
	select {
	case <-a.stopped:
		return true
	default:
		return false
	}
}

// acknowledge takes the unit off the queue; the merge counts it once, whether
// or not this gets through.
func (a *Agent) acknowledge(d *bus.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	_ = d.Done(ctx)
}

// unsendable stands for a result that is too large to travel: without it the
// unit would be worked again and again, to the same end.
func unsendable(r *wire.Result, err error) *wire.Result {
	return &wire.Result{V: r.V, Run: r.Run, Stage: r.Stage, Unit: r.Unit, Incarnation: r.Incarnation, Seq: r.Seq, Final: true,
		Partial: r.Partial, Released: r.Released, Start: r.Start, Agent: r.Agent, Calls: r.Calls, Elapsed: r.Elapsed, Busy: r.Busy,
		Failure: &wire.Failure{Class: "harness", Message: err.Error(), Remedy: "set max_payload in the configuration of the NATS server"}}
}
