package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"ordeal/agent/probe"
	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// run works one unit and always returns a final result; the caller has made the
// agent busy. ready, when set, is called between a load's preparations and its
// measured part.
func (a *Agent) run(w *work, u *wire.Unit, ready func(context.Context) error) (r *wire.Result) {
	begun := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r = failed(&wire.Failure{Class: "harness", Message: fmt.Sprintf("panic: %v", p), Stderr: string(debug.Stack())})
		}
		a.complete(r, u, w, begun)
	}()
	t, f := open(w, u)
	if f != nil {
		return failed(f)
	}
	w.timed = !t.Virtual()
	s := a.sample(u)
	defer s.end()
	return probe.Run(w.ctx, probe.Env{Target: t, Ready: ready, Leave: w, Quota: w, Watch: s.watch}, u, s.add)
}

// complete fills what every result says about its unit.
func (a *Agent) complete(r *wire.Result, u *wire.Unit, w *work, begun time.Time) {
	r.V, r.Run, r.Stage, r.Unit, r.Agent, r.Final = wire.Version, u.Run, u.Stage, u.ID, a.opt.ID, true
	if r.Incarnation == 0 {
		r.Incarnation = 1
	}
	if r.Elapsed == 0 {
		r.Elapsed = time.Since(begun)
	}
	r.Released = w.released()
	// Whatever ended it: a load that made fewer calls than planned is no whole one.
	short := r.Failure == nil && r.Tally != nil && r.Tally.Calls() < probe.Planned(u)
	r.Partial = w.ctx.Err() != nil || r.Released != "" || short
	a.opt.Metrics.Lag(&r.Generator.Lag)
	if r.Generator.Saturated {
		a.opt.Metrics.Saturated()
	}
}

// open reaches the unit's target and, when it had been open before, checks that
// it still lives; a dead server is restarted once per unit, which the survey of
// the target counts.
func open(w *work, u *wire.Unit) (target.Target, *wire.Failure) {
	t, fresh, err := w.run.target(w.ctx, u.Target)
	if err != nil {
		return nil, failure(err)
	}
	if fresh || t.Virtual() {
		return t, nil
	}
	if w.Check() != nil {
		return t, nil // nothing may be said to it any more
	}
	alive, _, exit := t.Alive(w.ctx)
	if alive || w.ctx.Err() != nil {
		return t, nil
	}
	f := &wire.Failure{Class: "unreachable", Message: "the target no longer answers", Remedy: "see what the server logged; scan it again once it stays up"}
	if exit != "" {
		f.Message += ": " + exit
	}
	return nil, f
}

func failed(f *wire.Failure) *wire.Result { return &wire.Result{Failure: f} }

// failure turns an error of opening into data.
func failure(err error) *wire.Failure {
	var known probe.Failer
	switch {
	case errors.As(err, &known):
		return known.Failure()
	case errors.Is(err, context.Canceled), errors.Is(err, errReleased):
		return &wire.Failure{Class: "cancelled", Message: "stopped before the target answered"}
	}
	return &wire.Failure{Class: "harness", Message: err.Error()}
}
