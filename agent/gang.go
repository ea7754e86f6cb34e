package agent

import (
	"context"
	"errors"
	"time"

	"ordeal/agent/wire"
)

// goWait bounds how long a prepared share waits for go.
const goWait = 90 * time.Second

var errNoGo = errors.New("no go came for a prepared share")

// prepare starts a share of a gang stage and answers once its sessions are open
// and its warm-up is done; the measured part waits for go.
func (a *Agent) prepare(u wire.Unit) wire.Ready {
	ready := wire.Ready{V: wire.Version, Agent: a.opt.ID}
	state := a.runs.of(u.Run)
	started := state.gate(u.Stage)
	prepared := make(chan struct{})
	finished := make(chan *wire.Result, 1)
	a.gang.Go(func() {
		r := a.run(&u, func(ctx context.Context) error {
			close(prepared)
			return waitGo(ctx, started)
		})
		finished <- r
		select {
		case <-prepared:
			a.publish(state.ctx, r, nil)
		default: // it failed before it was ready: the answer says so
		}
	})
	select {
	case <-prepared:
	case r := <-finished:
		if ready.Failure = r.Failure; ready.Failure == nil {
			ready.Failure = &wire.Failure{Class: "harness", Message: "the share ended before it was ready"}
		}
	}
	return ready
}

func waitGo(ctx context.Context, started <-chan time.Time) error {
	select {
	case at := <-started:
		pause(ctx, time.Until(at))
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(goWait):
		return errNoGo
	}
}
