package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	busyPause = 200 * time.Millisecond // half of it at least: the rest is drawn
	abortWait = 2 * time.Second
)

// prepare gets the members ready within wait. One that cannot take its share yields a
// failed result for it, so that the level shows what is missing; one that is gone
// is lost. An error means that ctx ended.
//
// Two runs on one fleet would wait for each other if each held a part of it.
// So a run that meets a busy agent lets go of the others and begins again after
// a while, and every run asks the agent with the lowest id first, alone: mostly
// it decides who goes first.
func (a *attempt) prepare(ctx context.Context, wait time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	failures := a.ask(limited)
	for limited.Err() == nil {
		i := slices.IndexFunc(failures, busy)
		if i < 0 {
			break
		}
		a.letGo(ctx, failures, failures[i])
		select {
		case <-limited.Done():
		case <-time.After(busyPause/2 + rand.N(busyPause)):
			failures = a.ask(limited)
		}
	}
	if ctx.Err() != nil {
		a.letGo(ctx, failures, &wire.Failure{Class: "cancelled"})
		return context.Cause(ctx)
	}
	for i, f := range failures {
		switch {
		case f == nil:
		case f.Class == lostClass:
			a.lose(loss{a.members[i].ID, f.Message})
		default:
			a.fail(a.shares[i].ID, a.members[i].ID, f)
		}
	}
	return nil
}

// lostClass marks a member that was gone when it was asked.
const lostClass = "lost"

func busy(f *wire.Failure) bool { return f != nil && f.Class == wire.Busy }

// ask offers every member its share, and says why it did not take it. Behind a
// busy first member nobody is asked.
func (a *attempt) ask(ctx context.Context) []*wire.Failure {
	failures := make([]*wire.Failure, len(a.shares))
	failures[0] = a.offer(ctx, 0)
	if busy(failures[0]) {
		for i := range failures {
			failures[i] = failures[0]
		}
		return failures
	}
	var wg sync.WaitGroup
	for i := 1; i < len(a.shares); i++ {
		wg.Go(func() { failures[i] = a.offer(ctx, i) })
	}
	wg.Wait()
	return failures
}

// offer asks one agent; one that does not answer may still come to hold the
// share, and is told to let go of it.
func (a *attempt) offer(ctx context.Context, i int) *wire.Failure {
	ready, err := a.d.opt.Bus.Ask(ctx, a.members[i].ID, wire.Request{Kind: wire.Prepare, Unit: &a.shares[i]})
	switch {
	case err == nil:
		return ready.Failure
	case errors.Is(err, bus.ErrGone):
		a.d.opt.Roster.Gone(a.members[i].ID)
		return &wire.Failure{Class: lostClass, Message: "it was gone when it was asked to get ready"}
	}
	_ = a.abort(ctx, i)
	return &wire.Failure{Class: "harness", Message: err.Error(), Remedy: "see the agent's log"}
}

// letGo takes back the shares that were taken; why they failed is cause then.
func (a *attempt) letGo(ctx context.Context, failures []*wire.Failure, cause *wire.Failure) {
	taken := map[string]bool{}
	for i, f := range failures {
		if f == nil {
			failures[i] = cause
			taken[a.shares[i].ID] = true
		}
	}
	a.takeBack(ctx, func(unit string) bool { return taken[unit] })
}

// takeBack makes the members give up the shares that held says they hold, and
// reports whether all of them said that they have.
func (a *attempt) takeBack(ctx context.Context, held func(unit string) bool) (all bool) {
	var silent atomic.Bool
	var wg sync.WaitGroup
	for i := range a.shares {
		if held(a.shares[i].ID) {
			wg.Go(func() {
				if a.abort(ctx, i) != nil {
					silent.Store(true)
				}
			})
		}
	}
	wg.Wait()
	return !silent.Load()
}

// abort has a deadline of its own: an ended run leaves no agent waiting. Without
// an answer the agent is gone, or lets go after wire.GoWait or with its lease.
func (a *attempt) abort(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
	defer cancel()
	ready, err := a.d.opt.Bus.Ask(ctx, a.members[i].ID, wire.Request{Kind: wire.Abort, Unit: &a.shares[i]})
	if err == nil {
		a.called.Store(a.shares[i].ID, ready.Calls)
	}
	return err
}
