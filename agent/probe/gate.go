package probe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// gate slows a load down when the target reports a quota, to its own workers or
// to others of the fleet: all its workers pause for the time the target asks
// for. The refusals themselves stay counted, and once the budget of waiting is
// spent the load goes on without.
type gate struct {
	most   time.Duration // longest single pause; 0 = never pause
	quota  Quota         // of the fleet; nil = none
	obeyed atomic.Uint64 // number of the last pause of the fleet
	until  atomic.Int64  // ns on the clock; changes with mu held
	mu     sync.Mutex    // guards budget
	budget time.Duration
}

func newGate(l *wire.Load, q Quota) *gate {
	return &gate{most: l.BackoffMax, budget: l.BackoffBudget, quota: q}
}

// see closes the gate after a refusal for quota. Refusals that come in while it
// is closed are answers to calls sent before, and do not prolong it. A refusal
// without a hint costs the longest pause.
func (g *gate) see(x *metrics.Exchange, now time.Duration, seen *metrics.QuotaSeen) {
	if g.most <= 0 || !forQuota(x) {
		return
	}
	pause := x.RetryAfter
	if pause <= 0 {
		pause = g.most
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now >= time.Duration(g.until.Load()) {
		g.shut(now, pause, seen)
	}
}

// obey closes the gate for a pause of the fleet that it has not taken in yet.
func (g *gate) obey(clock faultproxy.Clock, seen *metrics.QuotaSeen) {
	if g.quota == nil {
		return
	}
	number, end := g.quota.Pause()
	if number == g.obeyed.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if number > g.obeyed.Load() {
		g.obeyed.Store(number)
		g.shut(clock.Now(), time.Until(end), seen)
	}
}

// shut closes the gate, or keeps it closed for longer, as far as the longest
// pause and the budget go. A pause that is prolonged stays one. mu is held.
func (g *gate) shut(now, pause time.Duration, seen *metrics.QuotaSeen) {
	from := max(now, time.Duration(g.until.Load()))
	more := min(now+min(pause, g.most)-from, g.budget)
	if more <= 0 {
		return
	}
	if from == now {
		seen.Waits++
	}
	g.until.Store(int64(from + more))
	g.budget -= more
	seen.WaitedUS += more.Microseconds()
}

// closed reports whether the load pauses.
func (g *gate) closed(clock faultproxy.Clock, now time.Duration, seen *metrics.QuotaSeen) bool {
	if g.most <= 0 {
		return false
	}
	g.obey(clock, seen)
	return now < time.Duration(g.until.Load())
}

// wait returns the time once the gate is open, or the end of ctx. now is a time
// that was read after the last call ended.
func (g *gate) wait(ctx context.Context, clock faultproxy.Clock, now time.Duration, seen *metrics.QuotaSeen) (time.Duration, error) {
	if g.most <= 0 {
		return now, ctx.Err()
	}
	for {
		g.obey(clock, seen)
		left := time.Duration(g.until.Load()) - now
		if left <= 0 {
			return now, ctx.Err()
		}
		err := clock.Sleep(ctx, left)
		if now = clock.Now(); err != nil {
			return now, err
		}
	}
}
