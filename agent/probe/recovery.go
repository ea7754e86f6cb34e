package probe

import (
	"context"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

// pass is one recovery unit at work.
type pass struct {
	env      *Env
	unit     *wire.Unit
	params   *wire.Recovery
	virtual  bool
	slots    slots
	progress Progress

	mu       sync.Mutex    // guards what is below
	budget   time.Duration // of real waiting, what is left
	tally    *metrics.Tally
	behavior *metrics.Behavior
	sent     int64
}

// retrier works operations of a pass, one after the other.
type retrier struct {
	caller
	pass     *pass
	clock    faultproxy.Clock
	tally    *metrics.Tally
	behavior *metrics.Behavior
	path     metrics.Trajectory // of the current operation; its memory is reused
	kept     int
	added    time.Time
}

// recovery tries each operation until it succeeds or the retries are used up.
// Retries are immediate, except after a rate limit. Calls are made one at a
// time; on a real target several operations are under way, see overlap.
func recovery(ctx context.Context, env *Env, u *wire.Unit, res *wire.Result, progress Progress) error {
	box := newToolbox(&u.Call, false)
	faults, err := faultSchedule(u.Faults)
	if err != nil {
		return err
	}
	session, err := env.Target.Session(ctx, 0)
	if err != nil {
		return err
	}
	p := &pass{env: env, unit: u, params: u.Recovery, virtual: env.Target.Virtual(), progress: progress, budget: u.Recovery.BackoffBudget,
		tally: metrics.NewTally(), behavior: &metrics.Behavior{}}
	retriers := 1
	if faults != nil && !p.virtual {
		retriers, p.slots = overlap, make(slots, 1)
	}
	ops := &queue{share: share{r: u.Ops, level: 1, workers: 1}}
	clock := env.newClock()
	var wg sync.WaitGroup
	for range retriers {
		r := &retrier{pass: p, clock: clock, tally: metrics.NewTally(), behavior: &metrics.Behavior{},
			caller: caller{box: box, session: session, timeout: u.Target.Timeout, label: recoveryLabel, level: 1,
				layer: faultproxy.Layer{Schedule: faults, Clock: clock}, slots: p.slots, may: env.may()}}
		env.spawn(&wg, func() { r.loop(ctx, ops) })
	}
	wg.Wait()
	res.Calls, res.Tally, res.Behavior = p.sent, p.tally, p.behavior
	return nil
}

func (r *retrier) loop(ctx context.Context, ops *queue) {
	defer r.flush()
	r.added = time.Now()
	for ctx.Err() == nil && !r.may.over {
		op, ok := ops.take()
		if !ok {
			return
		}
		r.work(ctx, op)
		if r.kept++; r.kept >= flushCalls || !r.pass.virtual && time.Since(r.added) > flushEvery {
			r.flush()
		}
	}
}

// flush adds what the retrier kept to the pass.
func (r *retrier) flush() {
	p := r.pass
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Merge(r.tally)
	p.behavior.Merge(r.behavior)
	p.sent += r.sent
	p.progress(p.behavior.Operations, p.behavior.Operations-p.behavior.Succeeded, r.tally)
	r.tally.Reset()
	*r.behavior = metrics.Behavior{}
	r.sent, r.kept, r.added = 0, 0, time.Now()
}

// now is the operation's own time: without the wait for a turn, which is ours.
func (r *retrier) now() time.Duration { return r.clock.Now() - r.queued }

// work makes the attempts of one operation and folds its trajectory.
func (r *retrier) work(ctx context.Context, op uint64) {
	tool := r.box.of(op)
	r.path.Op, r.path.Label, r.path.Invocations = op, "", r.path.Invocations[:0]
	print, start := tool.fingerprint(tool.args(r.box.salt, op)), r.now()
	var waited time.Duration
	last := max(r.pass.params.MaxRetries, 0)
	for attempt := range last + 1 {
		x := r.attempt(ctx, op, uint32(attempt))
		if r.may.over {
			if attempt > 0 {
				r.behavior.Unmeasured++ // ended before its retries were used up
			}
			return
		}
		r.may.report(x)
		begun := r.now() - x.Latency
		r.tally.Add(x, 0)
		r.pass.env.revive(ctx, r.pass.unit, x, r.tally)
		r.path.Invocations = append(r.path.Invocations, metrics.Invocation{
			Attempt: attempt + 1, Outcome: x.Outcome, Quota: x.Quota != "" && x.Origin == metrics.FromTarget, Delivered: x.Delivered, Executed: x.Executed, Fault: x.Fault,
			StartedUS: (begun - start).Microseconds(), LatencyUS: x.Latency.Microseconds(), WaitedUS: waited.Microseconds(), Fingerprint: print,
		})
		if x.Ok() || !x.Outcome.Measured() || attempt == last {
			break
		}
		var err error
		if waited, err = r.backOff(ctx, x); err != nil {
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
// for every split of the work. Where the target itself refused, nobody else
// calls it meanwhile.
func (r *retrier) backOff(ctx context.Context, x *metrics.Exchange) (time.Duration, error) {
	p := r.pass.params
	if x.Outcome != metrics.RateLimited || p.BackoffMax <= 0 {
		return 0, nil
	}
	wait := x.RetryAfter
	if wait <= 0 {
		wait = p.BackoffMax
	}
	wait = min(wait, p.BackoffMax)
	if r.pass.virtual {
		r.behavior.BackoffWaits++
		r.behavior.BackoffVirtualUS += wait.Microseconds()
		return wait, r.clock.Sleep(ctx, wait)
	}
	if wait = r.pass.spend(wait); wait <= 0 {
		r.behavior.BackoffUnwaited++
		return 0, nil
	}
	if x.Origin == metrics.FromTarget {
		queued, err := r.slots.take(ctx)
		r.queued += queued
		if err != nil {
			return 0, err
		}
		defer r.slots.free()
	}
	r.behavior.BackoffWaits++
	begun := r.clock.Now()
	err := r.clock.Sleep(ctx, wait)
	waited := r.clock.Now() - begun
	r.behavior.BackoffWaitedUS += waited.Microseconds()
	return waited, err
}

// spend takes a wait out of the budget, or what is left of it.
func (p *pass) spend(wait time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = min(wait, p.budget)
	p.budget -= max(wait, 0)
	return wait
}
