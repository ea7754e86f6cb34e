package agent

import (
	"context"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	claimEvery = wire.AckWait / 3
	claimAgain = time.Second // after one that failed
	// claimSlack is kept off the age at which a claim still counts as ours: the
	// server's clock began to run when it sent the unit.
	claimSlack = time.Second
)

// claim keeps a unit in the agent's hands while it has it.
type claim struct {
	d          *bus.Delivery
	bus        *bus.Bus
	reconnects uint64
	end        func()
	begun      bool // owned by whoever works the unit

	mu   sync.Mutex
	last *moment // the unit is ours until then
	lost bool    // for a while it may have been somebody else's
}

// claim renews the claim on a unit until end.
func (a *Agent) claim(d *bus.Delivery) *claim {
	c := &claim{d: d, bus: a.bus, reconnects: a.bus.Reconnects(), last: after(time.Now(), wire.AckWait-claimSlack)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.keep(ctx)
	}()
	c.end = sync.OnceFunc(func() { cancel(); <-done })
	return c
}

func (c *claim) keep(ctx context.Context) {
	wait := claimEvery
	for {
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		wait = claimEvery
		if c.renew(ctx) != nil { // a missed renewal costs a redelivery, not a result
			wait = claimAgain
		}
	}
}

func (c *claim) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, claimEvery)
	defer cancel()
	sent := time.Now()
	if err := c.d.Confirm(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = c.lost || c.last.passed()
	c.last = after(sent, wire.AckWait-claimSlack)
	return nil
}

// sure reports whether the unit is certainly still ours: JetStream takes back
// from us what is in another agent's hands by now. Once the connection was gone,
// the controller may have handed it on.
func (c *claim) sure() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lost && !c.last.passed() && c.bus.Connected() && c.bus.Reconnects() == c.reconnects
}
