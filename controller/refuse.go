package controller

import (
	"context"
	"errors"

	"ordeal/controller/roster"
)

// refuse says why a run cannot be, before there is one: what nobody could carry out
// leaves no record behind. Whatever else goes wrong here does so again once there
// is a record, which then tells of it.
func (r *run) refuse(ctx context.Context) error {
	if r.opt.MaxCost > 0 {
		if _, err := costRate(&r.opt); err != nil {
			return err
		}
	}
	err := r.enroll(ctx)
	if err == nil {
		err = r.gather(ctx)
	}
	var few *roster.ErrTooFew
	if errors.As(err, &few) {
		r.roster.Close()
		return err
	}
	return nil
}

// enroll follows the fleet, unless that is done already.
func (r *run) enroll(ctx context.Context) error {
	if r.roster != nil {
		return nil
	}
	fleet, err := roster.Open(ctx, r.opt.Bus)
	if err == nil {
		r.roster = fleet
	}
	return err
}

// gather waits for the agents of the run.
func (r *run) gather(ctx context.Context) error {
	wait := r.opt.WaitAgents
	if wait <= 0 {
		wait = agentWait
	}
	_, err := r.roster.Wait(ctx, r.opt.Pool, r.opt.Select, max(r.opt.MinAgents, 1), wait)
	return err
}
