package probe

import (
	"context"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// gate slows a load down when the target reports a quota: all its workers pause
// for the time the target asks for. The refusals themselves stay counted, and
// once the budget of waiting is spent the load goes on without.
type gate struct {
	most   time.Duration // longest single pause; 0 = never pause
	mu     sync.Mutex    // guards until and budget
	until  time.Duration
	budget time.Duration
}

func newGate(l *wire.Load) *gate { return &gate{most: l.BackoffMax, budget: l.BackoffBudget} }

// see closes the gate after a refusal that is evidence of a quota: a rate limit,
// or another failure that names a wait (503 with Retry-After). Refusals that
// come in while it is closed are answers to calls sent before, and do not
// prolong it. A refusal without a hint costs the longest pause. An injected 429
// and the random one of a mock are no quota: they carry no Quota.
func (g *gate) see(x *metrics.Exchange, now time.Duration, t *metrics.Tally) {
	refused := x.Outcome == metrics.RateLimited || !x.Ok() && x.RetryAfter > 0
	if x.Quota == "" || !refused || g.most <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := x.RetryAfter
	if pause <= 0 {
		pause = g.most
	}
	pause = min(pause, g.most, g.budget)
	if pause <= 0 || now < g.until {
		return
	}
	g.until = now + pause
	g.budget -= pause
	t.Quota.Waits++
	t.Quota.WaitedUS += pause.Microseconds()
}

// closed reports whether the load pauses.
func (g *gate) closed(now time.Duration) bool {
	if g.most <= 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return now < g.until
}

// wait returns when the gate is open, or with the end of ctx.
func (g *gate) wait(ctx context.Context, clock faultproxy.Clock) error {
	if g.most <= 0 {
		return ctx.Err()
	}
	for {
		g.mu.Lock()
		left := g.until - clock.Now()
		g.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		if err := clock.Sleep(ctx, left); err != nil {
			return err
		}
	}
}
