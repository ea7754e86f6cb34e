package lead

import (
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/guard"
)

// meter hands out calls while they are counted: under a budget, and once a quota
// of the target was met.
type meter struct {
	opt   *Options
	began time.Time

	mu     sync.Mutex
	budget *budget // nil = none
	quota  *guard.Quota
}

const (
	budgetSpent = "the budget of calls is spent"
	// reserveWait is about how long it takes to store a reservation.
	reserveWait = 20 * time.Millisecond
)

// newMeter goes on behind the calls that earlier controllers have granted.
func newMeter(opt *Options, granted int64) *meter {
	m := &meter{opt: opt, began: time.Now(), quota: guard.NewQuota(0)}
	if opt.MaxCalls > 0 {
		m.budget = newBudget(opt.MaxCalls, granted)
	}
	return m
}

// stored takes note of what the record says.
func (m *meter) stored(r *wire.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget != nil {
		m.budget.stored(r.Granted)
	}
}

// grant fills in what an agent asked for beside its lease. pause is not 0 when
// the agent met a quota that the whole fleet must learn of.
func (m *meter) grant(g *wire.Grant, a *wire.Ask) (pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget != nil {
		m.budget.giveBack(a.Agent, a.Returned)
	}
	now := time.Since(m.began)
	if a.Quota != nil && !m.opt.Unpaced {
		pause = m.seen(now, a.Quota)
	}
	_, _, limited := m.quota.Limited()
	g.Metered = limited || m.budget != nil
	if g.Metered && a.Calls > 0 {
		m.hand(now, g, a)
	}
	return pause
}

// seen takes in a refusal for quota; the pause is 0 when it changes nothing for
// the fleet, as the tenth refusal of the same second does not.
func (m *meter) seen(now time.Duration, s *wire.QuotaSignal) time.Duration {
	_, before, _ := m.quota.Limited()
	signal := guard.Signal{RetryAfter: s.RetryAfter, Limit: s.Limit, Window: s.Window, Age: s.Age}
	if m.opt.Rate != nil {
		signal.Rate = m.opt.Rate()
	}
	m.quota.Seen(now, signal)
	if _, until, _ := m.quota.Limited(); until != before {
		return until - now
	}
	return 0
}

// hand gives an agent calls that both the quota and the budget allow.
func (m *meter) hand(now time.Duration, g *wire.Grant, a *wire.Ask) {
	if m.budget == nil {
		g.Calls, g.Wait = m.quota.Grant(now, a.Agent, a.Calls)
		return
	}
	if m.budget.calls.Left() == 0 {
		g.Spent = budgetSpent
		return
	}
	n := min(a.Calls, max(m.budget.room(), 1))
	if n, g.Wait = m.quota.Grant(now, a.Agent, n); n == 0 {
		return
	}
	if g.Calls = m.budget.take(a.Agent, n); g.Calls == 0 {
		g.Wait = reserveWait
	}
}

// gone takes an agent out of the reckoning: the calls it holds count as made.
func (m *meter) gone(agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget != nil {
		m.budget.calls.Lost(agent)
	}
}
