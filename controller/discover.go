package controller

import (
	"context"
	"fmt"
	"strings"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
	"ordeal/controller/spec"
)

// discover connects, chooses what to call, and tries it once.
func (r *run) discover(ctx context.Context) error {
	s := &r.opt.Spec
	survey, err := r.only(ctx, plan.Survey(s))
	if err != nil {
		return err
	}
	r.survey = survey.Survey
	candidates, err := plan.Choose(s, r.survey)
	if err != nil {
		return err
	}
	r.choice = candidates[0]
	for _, w := range r.choice.Warnings {
		r.warn(w)
	}
	if r.choice.Verify != nil {
		stale, err := r.only(ctx, plan.Oracle(s, r.choice))
		if err != nil {
			return err
		}
		if err := checkOracle(s, stale.Oracle); err != nil {
			return err
		}
	}
	return r.try(ctx, candidates)
}

// try makes the preflight call with each candidate until one is accepted. When
// none is, the refusal is about the first.
func (r *run) try(ctx context.Context, candidates []*plan.Choice) error {
	var first error
	var rejected []string
	for _, c := range candidates {
		tried, err := r.preflightOf(ctx, c)
		if tried == nil {
			return err
		}
		if err == nil {
			r.choice, r.preflight, c.Rejected = c, tried, rejected
			if len(rejected) > 0 {
				r.warn(fmt.Sprintf("scanning %s: the arguments synthesized for %s were rejected; choose with --tool and --tool-args", c.Name(), strings.Join(rejected, ", ")))
			}
			return nil
		}
		rejected = append(rejected, c.Name())
		if first == nil {
			first = err
		}
	}
	return first
}

// preflightTries bounds the preflight calls of one candidate: one rejection may
// be a target that fails now and then, three are its answer.
const preflightTries = 3

// preflightOf calls with a candidate until that is not rejected. Without an
// answer the error stands alone.
func (r *run) preflightOf(ctx context.Context, c *plan.Choice) (*wire.Preflight, error) {
	var last *wire.Preflight
	var rejected error
	for range preflightTries {
		tried, err := r.only(ctx, plan.Preflight(&r.opt.Spec, c))
		if err != nil {
			return nil, err
		}
		last = tried.Preflight
		if rejected = plan.CheckPreflight(&r.opt.Spec, c, last, r.warn); rejected == nil {
			return last, nil
		}
	}
	return last, rejected
}

// only runs a stage of one unit that everything after it depends on, and
// returns that unit's result: one of an earlier stage may arrive again among them.
func (r *run) only(ctx context.Context, st plan.Stage) (*wire.Result, error) {
	var got *wire.Result
	err := r.stage(ctx, &st, func(res *wire.Result) {
		if res.Unit == st.Units[0].ID {
			got = res
		}
	})
	switch {
	case err != nil:
		return nil, err
	case got == nil:
		return nil, fmt.Errorf("stage %s returned no result", st.Name)
	case got.Failure != nil:
		return nil, &Unmeasurable{*got.Failure}
	}
	return got, nil
}

// checkOracle refuses ids that are there before anything was written.
func checkOracle(s *spec.Spec, o *wire.OracleResult) error {
	if o == nil || o.Status != "ok" {
		message := "no answer"
		if o != nil {
			message = o.Message
		}
		return &plan.Refusal{Reason: fmt.Sprintf("--verify-tool %s could not be read: %s", s.VerifyTool, message),
			Remedy: "check --verify-args and --verify-count against what the tool answers"}
	}
	for _, n := range o.Effects {
		if n > 0 {
			return &plan.Refusal{Reason: "the target already holds operation ids of this seed: its writes could not be told from old ones",
				Remedy: "reset the target's state or scan with another --seed"}
		}
	}
	return nil
}
