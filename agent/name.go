package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"ordeal/agent/wire"
)

// NameTaken is returned by Run when another process of the fleet bears the
// agent's name: two of one name would be taken for one, by controllers and by
// whoever reads their results.
type NameTaken struct {
	Name    string
	Process string // that bears it
}

func (e *NameTaken) Error() string {
	return fmt.Sprintf("another agent called %s is at work (%s): give this one a --name of its own, or stop that one first", e.Name, e.Process)
}

const (
	// drainedAgain is how often a name is asked for whose bearer is about to leave.
	drainedAgain = 250 * time.Millisecond
	// lookAway is how often a process looks whether it stood still, and away for how
	// long it must have, for another one to be let in: that waits for wire.AskWait.
	lookAway = wire.AskWait / 2
	away     = 3 * wire.AskWait / 4
)

// newInstance is unlike that of any other process, and sorts by the time of the
// start.
func newInstance() string { return fmt.Sprintf("%016x-%08x", time.Now().UnixNano(), rand.Uint32()) }

// bear takes the agent's name, which is its own until release. The name of a
// process that does not answer is free: it was killed, or is cut off, and finds
// out when it comes back. release is nil when ctx ended first.
//
//	nobody there, no answer ──▶ taken at once
//	its bearer drains       ──▶ taken once it has left
//	its bearer is alive     ──▶ refused
func (a *Agent) bear(ctx context.Context) (release func(), err error) {
	for said := false; ctx.Err() == nil; said = true {
		limited, cancel := context.WithTimeout(ctx, wire.AskWait)
		who, err := a.bus.Bearer(limited, a.opt.ID)
		cancel()
		if err != nil {
			break
		}
		if !who.Draining {
			return nil, &NameTaken{Name: a.opt.ID, Process: who.Process}
		}
		if !said {
			a.opt.Log(fmt.Sprintf("waiting for the other agent called %s (%s), which is about to leave", a.opt.ID, who.Process))
		}
		sleep(ctx, drainedAgain)
	}
	return a.subscribe(ctx, func() (func(), error) { return a.bus.OnName(a.opt.ID, a.bearer) })
}

// bearer is what others are told.
func (a *Agent) bearer() wire.Bearer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return wire.Bearer{V: wire.Version, Agent: a.opt.ID, Instance: a.instance, Process: thisProcess(), Draining: a.draining}
}

// thisProcess names this one for people.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// watchName ends the agent when another one bears its name too. Of two that were
// started in one moment the first one stays; who was away finds that it was
// followed by another, and goes.
func (a *Agent) watchName(ctx context.Context, yield func(error)) {
	links, last := a.bus.Reconnects(), time.Now().Add(lookAway)
	a.meet(ctx, yield, func(who wire.Bearer) bool { return who.Instance < a.instance })
	tick := time.NewTicker(lookAway)
	defer tick.Stop()
	for ; ; last = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := a.bus.Reconnects(); n != links || time.Since(last) > away {
			links = n
			a.meet(ctx, yield, func(wire.Bearer) bool { return true })
		}
	}
}

// meet asks for lookAway who else bears the name, and yields to whom it must.
func (a *Agent) meet(ctx context.Context, yield func(error), to func(wire.Bearer) bool) {
	ctx, cancel := context.WithTimeout(ctx, lookAway)
	defer cancel()
	_ = a.bus.Bearers(ctx, a.opt.ID, func(who wire.Bearer) { // an error means that the connection is lost again
		if who.Instance != a.instance && !who.Draining && to(who) {
			yield(&NameTaken{Name: a.opt.ID, Process: who.Process})
		}
	})
}
