package probe

import (
	"context"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Leave says whether a unit may still call its target. Its errors end the unit:
// what was measured until then is its result.
type Leave interface {
	// Take returns when one more call may go out, and how long it had to wait
	// for that. It is asked right before the call: its last look at the clock is
	// all that keeps a process that was stopped for a while from calling on.
	Take(ctx context.Context) (waited time.Duration, err error)
	// Check fails once no call may go out any more.
	Check() error
}

// Quota is what an agent shares of its target's rate limits with its fleet.
type Quota interface {
	// Dry reports that Take would wait.
	Dry() bool
	// Seen tells the fleet of a rate limit.
	Seen(wire.QuotaSignal)
	// Pause is the last pause that the fleet agreed on: its number, 0 for none
	// yet, and its end.
	Pause() (number uint64, end time.Time)
}

// may is what a caller may do; the zero value may do everything.
type may struct {
	leave     Leave
	quota     Quota
	occupancy *occupancy // of a real target: a wait for leave is a deliberate one
	over      bool       // leave was refused: its unit ends
}

func (env *Env) may() *may { return &may{leave: env.Leave, quota: env.Quota, occupancy: env.occupancy} }

// take waits for leave to make a call.
func (m *may) take(ctx context.Context) (waited time.Duration, err error) {
	if m.leave == nil {
		return 0, nil
	}
	return m.ask(ctx)
}

func (m *may) ask(ctx context.Context) (waited time.Duration, err error) {
	wait := m.occupancy != nil && m.quota != nil && m.quota.Dry()
	if wait {
		m.occupancy.enter()
	}
	if waited, err = m.leave.Take(ctx); err != nil {
		m.over = true
	}
	if wait {
		m.occupancy.leave()
	}
	return waited, err
}

// check fails once nothing may be said to the target any more.
func (m *may) check() error {
	if m.leave == nil {
		return nil
	}
	return m.leave.Check()
}

// notSent stands for a call that did not go out.
func notSent(err error) metrics.Exchange {
	return metrics.Exchange{Outcome: metrics.Cancelled, Origin: metrics.FromGenerator, Message: oneLine("not sent: " + err.Error())}
}

// report tells the fleet of evidence of a quota.
func (m *may) report(x *metrics.Exchange) {
	if x.Quota != "" && m.quota != nil {
		m.tell(x)
	}
}

func (m *may) tell(x *metrics.Exchange) {
	if forQuota(x) {
		m.quota.Seen(wire.QuotaSignal{RetryAfter: x.RetryAfter, Limit: x.QuotaLimit, Window: x.QuotaWindow, Age: x.Latency})
	}
}

// forQuota reports whether an exchange is a refusal that is evidence of a quota:
// a rate limit, or another failure that names a wait (503 with Retry-After). An
// injected 429 and the random one of a mock carry no Quota, and are none.
func forQuota(x *metrics.Exchange) bool {
	return x.Quota != "" && (x.Outcome == metrics.RateLimited || !x.Ok() && x.RetryAfter > 0)
}
