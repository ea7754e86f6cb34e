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

// run works one unit and always returns a final result; the caller holds busy.
// ready, when set, is called between a load's preparations and its measured
// part.
func (a *Agent) run(state *run, u *wire.Unit, ready func(context.Context) error) (r *wire.Result) {
	begun := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r = failed(&wire.Failure{Class: "harness", Message: fmt.Sprintf("panic: %v", p), Stderr: string(debug.Stack())})
		}
		a.complete(r, u, state, begun)
	}()
	t, f := open(state, u)
	if f != nil {
		return failed(f)
	}
	report, stop := a.reporter(u)
	defer stop()
	return probe.Run(state.ctx, probe.Env{Target: t, Ready: ready}, u, report)
}

// complete fills what every result says about its unit.
func (a *Agent) complete(r *wire.Result, u *wire.Unit, state *run, begun time.Time) {
	r.V, r.Run, r.Stage, r.Unit, r.Agent, r.Final = wire.Version, u.Run, u.Stage, u.ID, a.opt.ID, true
	if r.Incarnation == 0 {
		r.Incarnation = 1
	}
	if r.Elapsed == 0 {
		r.Elapsed = time.Since(begun)
	}
	r.Partial = state.ctx.Err() != nil
}

// open reaches the unit's target and, when it had been open before, checks that
// it still lives; a dead server is restarted once per unit, which the survey of
// the target counts.
func open(state *run, u *wire.Unit) (target.Target, *wire.Failure) {
	t, fresh, err := state.target(state.ctx, u.Target)
	if err != nil {
		return nil, failure(err)
	}
	if fresh || t.Virtual() {
		return t, nil
	}
	alive, _, exit := t.Alive(state.ctx)
	if alive || state.ctx.Err() != nil {
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
