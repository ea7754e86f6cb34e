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
	"ordeal/controller/plan"
)

const (
	busyPause = 200 * time.Millisecond // half of it at least: the rest is drawn
	abortWait = 2 * time.Second
)

// prepare gets the members ready within wait. Those that are gone, or cannot take
// their share, are lost before anything was sent: the level begins without them, at
// its full size. Where the others have no room for that, a failed result stands for
// the share, and the level is degraded; where nobody is ready, all results are such.
// An error means that ctx ended.
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
		i := slices.IndexFunc(failures, passes)
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
	spared := a.spared(failures)
	for i, f := range failures {
		switch {
		case f == nil:
		case f.Class == lostClass, spared:
			a.lose(loss{a.members[i].ID, f.Message})
		default:
			a.fail(a.shares[i].ID, a.members[i].ID, f)
		}
	}
	return nil
}

// spared reports whether those that are ready can carry the whole load.
func (a *attempt) spared(failures []*wire.Failure) bool {
	var capacities []int
	for i, f := range failures {
		if f == nil {
			capacities = append(capacities, a.members[i].Capacity)
		}
	}
	if len(capacities) == 0 {
		return false
	}
	_, err := plan.ShareAmong(*a.whole, capacities)
	return err == nil
}

const (
	// lostClass marks a member that was gone when it was asked.
	lostClass = "lost"
	// unheardClass marks one whose answer was lost with the controller's connection.
	unheardClass = "unheard"
)

func busy(f *wire.Failure) bool { return f != nil && f.Class == wire.Busy }

// passes reports whether a share may be offered again.
func passes(f *wire.Failure) bool { return busy(f) || f != nil && f.Class == unheardClass }

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
	ready, err := a.askLinked(ctx, a.members[i].ID, wire.Request{Kind: wire.Prepare, Unit: &a.shares[i]})
	switch {
	case err == nil:
		return ready.Failure
	case errors.Is(err, bus.ErrGone):
		a.d.opt.Roster.Gone(a.members[i].ID)
		return &wire.Failure{Class: lostClass, Message: "it was gone when it was asked to get ready"}
	}
	a.unsure[i] = a.abort(ctx, i) != nil
	if ctx.Err() == nil {
		return &wire.Failure{Class: unheardClass, Message: err.Error(), Remedy: "see to the connection between the controller and NATS"}
	}
	return &wire.Failure{Class: "harness", Message: err.Error(), Remedy: "see the agent's log"}
}

// askLinked gives a request up when the connection over which it was sent is
// lost, and its answer with it.
func (a *attempt) askLinked(ctx context.Context, agent string, r wire.Request) (wire.Ready, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	links := a.d.opt.Bus.Reconnects()
	var watching sync.WaitGroup
	watching.Go(func() {
		look := time.NewTicker(lookLinked)
		defer look.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-look.C:
				if a.d.opt.Bus.Reconnects() != links {
					cancel(errUnlinked)
				}
			}
		}
	})
	ready, err := a.d.opt.Bus.Ask(ctx, agent, r)
	cancel(nil)
	watching.Wait()
	return ready, err
}

// lookLinked is how soon a lost connection is noticed.
const lookLinked = 250 * time.Millisecond

var errUnlinked = errors.New("the connection to NATS was lost, and the answer with it")

// letGo takes back the shares that were taken, or may have been; why they failed
// is cause then.
func (a *attempt) letGo(ctx context.Context, failures []*wire.Failure, cause *wire.Failure) {
	taken := map[string]bool{}
	for i, f := range failures {
		if f == nil {
			failures[i] = cause
			taken[a.shares[i].ID] = true
		}
		if a.unsure[i] {
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
		a.unsure[i] = false
	}
	return err
}
