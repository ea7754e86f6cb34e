package agent

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// A quota that one agent meets holds all of them: they stop calling at once, and
// make only what they are granted from then on.
func TestQuotaIsSharedByTheFleet(t *testing.T) {
	const pause, granted = 700 * time.Millisecond, 30
	w := newWorld(t)
	var limit atomic.Bool
	s := llmtest.New(t, func(r llmtest.Request) llmtest.Answer {
		time.Sleep(2 * time.Millisecond)
		if limit.CompareAndSwap(true, false) {
			return llmtest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}}
		}
		return llmtest.Answer{}
	})
	var met wire.QuotaSignal
	paused := make(chan time.Time, 1)
	left := int64(granted)
	w.boss.change(func(b *boss) {
		metered := false
		b.plan = func(a wire.Ask) wire.Grant {
			if a.Quota != nil && !metered {
				metered, met = true, *a.Quota
				if err := w.bus.Control("r1", wire.Control{Kind: wire.Quota, Generation: 1, Pause: pause}); err != nil {
					t.Error(err)
				}
				paused <- time.Now()
			}
			g := wire.Grant{Generation: 1, TTL: wire.LeaseTTL, Metered: metered}
			if over := len(paused) == 0; metered && over && a.Calls > 0 {
				g.Calls = min(a.Calls, left)
				left -= g.Calls
			}
			if metered && a.Calls > 0 && g.Calls == 0 {
				g.Wait = 10 * time.Millisecond
			}
			return g
		}
	})
	for _, id := range []string{"a1", "a2"} {
		w.agent(Options{ID: id})
		u := chatUnit(id, s.URL, 4, endless)
		u.Load.BackoffMax, u.Load.BackoffBudget = time.Minute, time.Minute
		w.publish(u)
	}
	eventually(t, "calls of both", func() bool { _, n := lastCall(s); return n > 100 })
	limit.Store(true)
	at := receive(t, paused, "word of the quota")
	paused <- at // held back until the pause is over
	time.Sleep(time.Until(at.Add(pause)))
	before := 0
	for _, e := range s.Journal() {
		if e.Received.After(at.Add(100 * time.Millisecond)) {
			t.Errorf("a call %v into the pause", e.Received.Sub(at))
		}
		before++
	}
	<-paused
	eventually(t, "the granted calls", func() bool { _, n := lastCall(s); return n == before+granted })
	_, n := settledCalls(s)
	if n != before+granted {
		t.Errorf("%d calls after the pause, want the %d that were granted", n-before, granted)
	}
	if met.RetryAfter != 30*time.Second || met.Age < time.Millisecond || met.Age > 5*time.Second {
		t.Errorf("told of %+v, want the wait and the age of the call", met)
	}
	w.control("r1", wire.Control{Kind: wire.Halt})
	var waits int64
	for range 2 {
		r := w.result()
		waits += r.Tally.Quota.Waits
		if r.Tally.Outcomes[metrics.RateLimited] > 1 {
			t.Errorf("%d refusals", r.Tally.Outcomes[metrics.RateLimited])
		}
	}
	if waits != 2 {
		t.Errorf("%d waits are counted, want one of each agent", waits)
	}
}

// A budget of calls ends a unit with what was measured, and says why.
func TestSpentBudgetEndsTheUnit(t *testing.T) {
	const budget = 100
	w := newWorld(t)
	left := int64(budget)
	w.boss.change(func(b *boss) {
		b.plan = func(a wire.Ask) wire.Grant {
			left += a.Returned
			g := wire.Grant{Generation: 1, TTL: wire.LeaseTTL, Metered: true, Calls: min(a.Calls, left)}
			if left -= g.Calls; a.Calls > 0 && g.Calls == 0 {
				g.Spent = "the budget of calls is spent"
			}
			return g
		}
	})
	s := llmtest.New(t, slowly(time.Millisecond))
	w.agent(Options{ID: "a1"})
	w.publish(chatUnit("u1", s.URL, 4, endless))
	r := w.result()
	if !r.Partial || r.Released != "the budget of calls is spent" || r.Calls != budget || r.Tally.Calls() != budget || r.Failure != nil {
		t.Errorf("partial %v, released by %q, %d calls of which %d count, failure %v; want the budget, to the call", r.Partial, r.Released, r.Calls, r.Tally.Calls(), r.Failure)
	}
	if _, n := lastCall(s); n != budget {
		t.Errorf("%d calls met the target, want %d", n, budget)
	}
}
