package probe

import (
	"context"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// retrier works the operations of a recovery unit, one after the other.
type retrier struct {
	caller
	clock    faultproxy.Clock
	params   *wire.Recovery
	virtual  bool
	budget   time.Duration // of real waiting, what is left
	tally    *metrics.Tally
	behavior *metrics.Behavior
	path     metrics.Trajectory // of the current operation; its memory is reused
}

// recovery tries each operation until it succeeds or the retries are used up.
// Retries are immediate, except after a rate limit.
func recovery(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress func(done, errors int64)) error {
	box := newToolbox(&u.Call, false)
	faults, err := faultSchedule(u.Faults)
	if err != nil {
		return err
	}
	session, err := env.Target.Session(ctx, 0)
	if err != nil {
		return err
	}
	clock := env.newClock()
	r := &retrier{clock: clock, params: u.Recovery, virtual: env.Target.Virtual(), budget: u.Recovery.BackoffBudget,
		tally: metrics.NewTally(), behavior: &metrics.Behavior{},
		caller: caller{box: box, session: session, timeout: u.Target.Timeout, label: recoveryLabel, level: 1,
			layer: faultproxy.Layer{Schedule: faults, Clock: clock}}}
	said := time.Now()
	for op := u.Ops.From; op < u.Ops.To && ctx.Err() == nil; op++ {
		r.work(ctx, op)
		if (op-u.Ops.From)%flushCalls == 0 || !r.virtual && time.Since(said) > flushEvery {
			said = time.Now()
			progress(r.behavior.Operations, r.behavior.Operations-r.behavior.Succeeded)
		}
	}
	progress(r.behavior.Operations, r.behavior.Operations-r.behavior.Succeeded)
	res.Calls, res.Tally, res.Behavior = r.sent, r.tally, r.behavior
	return nil
}

// work makes the attempts of one operation and folds its trajectory.
func (r *retrier) work(ctx context.Context, op uint64) {
	tool := r.box.of(op)
	r.path.Op, r.path.Label, r.path.Invocations = op, "", r.path.Invocations[:0]
	print, start := tool.fingerprint(tool.args(r.box.salt, op)), r.clock.Now()
	var waited time.Duration
	last := max(r.params.MaxRetries, 0)
	for attempt := range last + 1 {
		begun := r.clock.Now()
		x := r.attempt(ctx, op, uint32(attempt))
		r.tally.Add(&x, 0)
		r.path.Invocations = append(r.path.Invocations, metrics.Invocation{
			Attempt: attempt + 1, Outcome: x.Outcome, Delivered: x.Delivered, Executed: x.Executed, Fault: x.Fault,
			StartedUS: (begun - start).Microseconds(), LatencyUS: x.Latency.Microseconds(), WaitedUS: waited.Microseconds(), Fingerprint: print,
		})
		if x.Ok() || !x.Outcome.Measured() || attempt == last {
			break
		}
		var err error
		if waited, err = r.backOff(ctx, &x); err != nil {
			r.behavior.Unmeasured++ // stopped before its retries were used up
			return
		}
	}
	if r.path.Disrupted() {
		r.path.Label = opLabel(tool.name, op)
	}
	r.behavior.Fold(&r.path)
}

// backOff waits before the retry of a rate-limited attempt: as long as the
// target asks, or the longest wait when it names none, within what is left of
// the budget. A wait on a virtual clock costs nobody anything: it is booked,
// and leaves the budget alone, which would otherwise run out in another place
// for every split of the work.
func (r *retrier) backOff(ctx context.Context, x *metrics.Exchange) (time.Duration, error) {
	if x.Outcome != metrics.RateLimited || r.params.BackoffMax <= 0 {
		return 0, nil
	}
	wait := x.RetryAfter
	if wait <= 0 {
		wait = r.params.BackoffMax
	}
	wait = min(wait, r.params.BackoffMax)
	if r.virtual {
		r.behavior.BackoffWaits++
		r.behavior.BackoffVirtualUS += wait.Microseconds()
		return wait, r.clock.Sleep(ctx, wait)
	}
	if wait = min(wait, r.budget); wait <= 0 {
		r.behavior.BackoffUnwaited++
		return 0, nil
	}
	r.budget -= wait
	r.behavior.BackoffWaits++
	begun := r.clock.Now()
	err := r.clock.Sleep(ctx, wait)
	waited := r.clock.Now() - begun
	r.behavior.BackoffWaitedUS += waited.Microseconds()
	return waited, err
}
