package probe

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// script answers the attempts of each operation in turn; 20 ms each.
func script(outcomes map[uint64][]metrics.Exchange) *fake {
	return &fake{answer: func(ctx context.Context, c target.Call) metrics.Exchange {
		if after(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return metrics.Exchange{Outcome: metrics.Cancelled}
		}
		if answers := outcomes[c.Op]; int(c.Attempt) < len(answers) {
			return answers[c.Attempt]
		}
		return metrics.Exchange{Delivered: true, Executed: metrics.Yes}
	}}
}

// alone counts how many calls of a fake are inside it now, and were at most.
func alone(f *fake) (inside, most *atomic.Int64) {
	inside, most = new(atomic.Int64), new(atomic.Int64)
	answer := f.answer
	f.answer = func(ctx context.Context, c target.Call) metrics.Exchange {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		return answer(ctx, c)
	}
	return inside, most
}

func recoveryUnit(n uint64, r wire.Recovery) *wire.Unit {
	return &wire.Unit{ID: "r", Kind: wire.RecoveryUnit, Ops: wire.Range{To: n}, Recovery: &r, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t"}}}}
}

var (
	limited = func(hint time.Duration) metrics.Exchange {
		return metrics.Exchange{Outcome: metrics.RateLimited, Delivered: true, Executed: metrics.No, RetryAfter: hint}
	}
	broken = metrics.Exchange{Outcome: metrics.ServerError, Delivered: true}
)

func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := script(map[uint64][]metrics.Exchange{
			1: {broken},
			2: {broken, broken, broken},
			3: {limited(time.Second)},
		})
		res := run(t, f.env(), recoveryUnit(5, wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: 30 * time.Second}))
		b := res.Behavior
		got := *b
		got.Recovery, got.Kept = metrics.Dist{}, nil
		want := metrics.Behavior{Operations: 5, Attempts: 9, Retried: 3, MaxAttempts: 3, Succeeded: 4, Disrupted: 3, Recovered: 2,
			CleanAttempts: 9, CleanFailed: 5, DisruptedClean: 3, RecoveredClean: 2, Unrecovered: map[string]int64{"none": 1},
			BackoffWaits: 1, BackoffWaitedUS: 1_000_000}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(metrics.Dist{})); diff != "" {
			t.Error(diff)
		}
		if b.Recovery.Min() != 40_000 || b.Recovery.Max() != 1_040_000 {
			t.Errorf("recovery took %d to %d µs, want 40000 and 1040000", b.Recovery.Min(), b.Recovery.Max())
		}
		if res.Calls != 9 || res.Tally.Calls() != 9 {
			t.Errorf("%d calls, %d tallied; want 9", res.Calls, res.Tally.Calls())
		}
		var labels []string
		for _, k := range b.Kept {
			labels = append(labels, k.Label)
		}
		if diff := cmp.Diff([]string{"t#2", "t#1", "t#3"}, labels); diff != "" {
			t.Error(diff)
		}
		last := b.Kept[2].Invocations[1]
		if last.StartedUS != 1_020_000 || last.WaitedUS != 1_000_000 || last.LatencyUS != 20_000 || last.Attempt != 2 {
			t.Errorf("the retry after the wait is %+v", last)
		}
	})
}

func TestBackOff(t *testing.T) {
	rows := []struct {
		name            string
		r               wire.Recovery
		hint            time.Duration
		waits, unwaited int64
		waited          time.Duration
	}{
		{"Hint", wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: time.Minute}, 2 * time.Second, 2, 0, 4 * time.Second},
		{"NoHintWaitsLongest", wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: time.Minute}, 0, 2, 0, 10 * time.Second},
		{"CappedHint", wire.Recovery{MaxRetries: 1, BackoffMax: 5 * time.Second, BackoffBudget: time.Minute}, time.Hour, 1, 0, 5 * time.Second},
		{"BudgetSpent", wire.Recovery{MaxRetries: 4, BackoffMax: 5 * time.Second, BackoffBudget: 7 * time.Second}, 5 * time.Second, 2, 2, 7 * time.Second},
		{"Off", wire.Recovery{MaxRetries: 3, BackoffBudget: time.Minute}, 5 * time.Second, 0, 0, 0},
		{"NoRetries", wire.Recovery{BackoffMax: 5 * time.Second, BackoffBudget: time.Minute}, 5 * time.Second, 0, 0, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				always := limited(r.hint)
				f := script(map[uint64][]metrics.Exchange{0: {always, always, always, always, always}})
				start := time.Now()
				b := run(t, f.env(), recoveryUnit(1, r.r)).Behavior
				if b.BackoffWaits != r.waits || b.BackoffUnwaited != r.unwaited || b.BackoffWaitedUS != r.waited.Microseconds() {
					t.Errorf("waits %d, unwaited %d, waited %d µs; want %d, %d, %v", b.BackoffWaits, b.BackoffUnwaited, b.BackoffWaitedUS, r.waits, r.unwaited, r.waited)
				}
				if took, want := time.Since(start), r.waited+time.Duration(b.Attempts)*20*time.Millisecond; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				if b.Attempts != int64(r.r.MaxRetries)+1 {
					t.Errorf("%d attempts with %d retries", b.Attempts, r.r.MaxRetries)
				}
			})
		})
	}
}

// TestRecoveryHalt: an operation cut in its back-off or in a call is not one
// that failed to recover.
func TestRecoveryHalt(t *testing.T) {
	for name, stop := range map[string]time.Duration{"InBackOff": 500 * time.Millisecond, "InCall": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), stop)
				defer cancel()
				f := script(map[uint64][]metrics.Exchange{0: {limited(2 * time.Second)}})
				b := Run(ctx, f.env(), recoveryUnit(9, wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: time.Minute}), nil).Behavior
				if b.Operations != 0 || b.Unmeasured != 1 || b.Disrupted != 0 {
					t.Errorf("behavior %+v, want one unmeasured operation and nothing else", b)
				}
			})
		})
	}
}

// TestRecoveryFaults: on a flawless target the trajectories are those of an
// ideal caller on the same schedule; injected waits are really spent, beside
// each other, while calls are made one at a time.
func TestRecoveryFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := script(nil)
		inside, most := alone(f)
		u := recoveryUnit(2000, wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: time.Hour})
		u.Faults, u.Target.Timeout = mockFaults(300_000_000), 3*time.Second
		s, err := faultSchedule(u.Faults)
		if err != nil {
			t.Fatal(err)
		}
		ideal := s.Replay(0, 2000, 2)
		start := time.Now()
		res := run(t, f.env(), u)
		b := res.Behavior
		if b.Disrupted != ideal.Disrupted || b.Recovered != ideal.Recovered || b.Attempts != ideal.Attempts {
			t.Errorf("disrupted %d, recovered %d, attempts %d; ideal %+v", b.Disrupted, b.Recovered, b.Attempts, ideal)
		}
		var spent int64
		for kind, n := range ideal.ByKind {
			if b.Faults[kind.String()] != n {
				t.Errorf("%v injected %d times, want %d", kind, b.Faults[kind.String()], n)
			}
		}
		for _, d := range []*metrics.Dist{&res.Tally.Service, &res.Tally.Failed, &res.Tally.TimedOut} {
			spent += d.Sum()
		}
		spent += b.BackoffWaitedUS
		if took := time.Since(start).Microseconds(); took > spent/4 || took < spent/overlap {
			t.Errorf("took %d µs; %d were spent in calls and back-off, at most %d beside each other", took, spent, overlap)
		}
		if most.Load() != 1 || inside.Load() != 0 {
			t.Errorf("%d calls were inside the target at once, want 1", most.Load())
		}
		if b.CleanFailed != 0 || res.Calls == b.Attempts {
			t.Errorf("clean failures %d, %d calls of %d attempts reached the target", b.CleanFailed, res.Calls, b.Attempts)
		}
	})
}

// TestVirtualBackOff: on a virtual target waits are booked, whatever the budget.
func TestVirtualBackOff(t *testing.T) {
	env := mockEnv(t, "failing")
	u := recoveryUnit(500, wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: time.Second})
	u.Call = mockCall()
	start := time.Now()
	b := run(t, env, u).Behavior
	if b.BackoffWaits == 0 || b.BackoffVirtualUS != b.BackoffWaits*5_000_000 || b.BackoffWaitedUS != 0 || b.BackoffUnwaited != 0 {
		t.Errorf("waits %d, booked %d µs, waited %d, unwaited %d", b.BackoffWaits, b.BackoffVirtualUS, b.BackoffWaitedUS, b.BackoffUnwaited)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("booked waits took %v", took)
	}
}
