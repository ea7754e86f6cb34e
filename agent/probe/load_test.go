package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

func loadUnit(n uint64, l wire.Load) *wire.Unit {
	whole := wire.Range{To: n}
	l.Stage = whole
	return &wire.Unit{ID: "u", Kind: wire.LoadUnit, Ops: whole, Load: &l, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t"}}}}
}

func run(t *testing.T, env Env, u *wire.Unit) *wire.Result {
	t.Helper()
	res := Run(t.Context(), env, u, nil)
	if res.Failure != nil {
		t.Fatalf("unit not worked: %s: %s", res.Failure.Class, res.Failure.Message)
	}
	return res
}

func near(t *testing.T, what string, got int64, want time.Duration, tolerance float64) {
	t.Helper()
	if off := math.Abs(float64(got)-float64(want.Microseconds())) / float64(want.Microseconds()); off > tolerance {
		t.Errorf("%s = %d µs, want %v within %.0f %%", what, got, want, tolerance*100)
	}
}

// stalling answers in 10 ms, but holds everything that arrives between second 3
// and 5 until second 5.
func stalling(start time.Time) *fake {
	return &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange {
		d := 10 * time.Millisecond
		if at := time.Since(start); at >= 3*time.Second && at < 5*time.Second {
			d += 5*time.Second - at
		}
		return after(ctx, d)
	}}
}

// TestStallOpenLoop: 100 arrivals a second for 10 s, 2 s of them stalled: a
// fifth of all calls is touched, evenly over 0 to 2 s.
func TestStallOpenLoop(t *testing.T) {
	for _, limit := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := stalling(time.Now())
			tally := run(t, f.env(), loadUnit(5000, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, Duration: 10 * time.Second, MaxInFlight: limit})).Tally
			if w := tally.Window; w.Scheduled != 1000 || w.Sent != 1000 || w.Dropped != 0 || w.SpanUS != 10_000_000 {
				t.Errorf("window %+v, want 1000 scheduled and sent in 10 s", w)
			}
			near(t, "p50", tally.Latency.Quantile(500), 10*time.Millisecond, 0.1)
			near(t, "p90", tally.Latency.Quantile(900), time.Second, 0.1)
			near(t, "p95", tally.Latency.Quantile(950), 1500*time.Millisecond, 0.1)
			near(t, "p99", tally.Latency.Quantile(990), 1900*time.Millisecond, 0.1)
			if n := tally.Late.N(); n != 1000 {
				t.Errorf("lateness of %d sends, want every one of 1000", n)
			}
		})
	}
}

// TestLateness: arrivals that wait for a session to open are late, and their
// latency says so although their service time does not.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, 15*time.Millisecond) }}
		f.session = func(user int) error {
			if user > 0 {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		tally := run(t, f.env(), loadUnit(1000, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, MaxInFlight: 1000})).Tally
		if tally.Late.Max() < 500_000 {
			t.Errorf("latest send %d µs behind its time, want over half a second", tally.Late.Max())
		}
		if want := tally.Late.Max() + 15_000; tally.Latency.Max() != want || tally.Service.Max() != 15_000 {
			t.Errorf("latency at most %d µs, service %d; want %d and 15000", tally.Latency.Max(), tally.Service.Max(), want)
		}
	})
}

// TestRefusedSessionIsAskedForAgain: one refused handshake costs the call that
// asked for it, not every call that an idle slot would draw to itself.
func TestRefusedSessionIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, 50*time.Millisecond) }}
		f.session = func(user int) (err error) {
			if user == 3 {
				once.Do(func() { err = closedDoor{} })
			}
			return err
		}
		tally := run(t, f.env(), loadUnit(600, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, MaxInFlight: 64})).Tally
		if tally.Outcomes[metrics.Connection] != 1 || tally.Successes() != 599 {
			t.Errorf("outcomes %v, want the one call without a session to fail", tally.Outcomes)
		}
	})
}

// TestTimedLevel: a level with a duration lasts that long, on every number of
// agents, whatever its operations.
func TestTimedLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, 100*time.Millisecond) }}
		u := loadUnit(1<<40, wire.Load{Workers: 1, Level: 1, Duration: 10 * time.Second})
		u.Faults, u.Target.Timeout = mockFaults(300_000_000), time.Second
		start := time.Now()
		tally := run(t, f.env(), u).Tally
		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second || tally.Calls() < 100 {
			t.Errorf("%d calls in %v, want 10 s and the last call", tally.Calls(), took)
		}
	})
	units := func(k int) []wire.Unit {
		return loadUnits(wire.Range{From: 1 << 40, To: 2 << 40}, 8, k, wire.Load{Duration: time.Minute}, nil)
	}
	want, _ := merged(t, "degraded", units(1))
	for _, k := range []int{2, 4, 8} {
		if got, _ := merged(t, "degraded", units(k)); got != want {
			t.Errorf("a timed level on %d agents differs from one agent:\n%s\n%s", k, got, want)
		}
	}
}

// TestStallClosedLoop: ten callers hide the same stall: it is ten slow calls of
// thousands.
func TestStallClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := stalling(time.Now())
		tally := run(t, f.env(), loadUnit(1<<30, wire.Load{Workers: 10, Level: 10, Duration: 10 * time.Second})).Tally
		near(t, "p99", tally.Latency.Quantile(990), 10*time.Millisecond, 0.1)
		near(t, "max", tally.Latency.Max(), 2010*time.Millisecond, 0.1)
		if n := tally.Calls(); n < 7900 || n > 8100 {
			t.Errorf("%d calls, want about 8000: 100 a second for each of 10 callers in 8 s", n)
		}
	})
}

// TestRateNotSustained: a target that takes 50 a second is asked for 100.
func TestRateNotSustained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := make(chan struct{}, 1)
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange {
			lock <- struct{}{}
			defer func() { <-lock }()
			return after(ctx, 20*time.Millisecond)
		}}
		tally := run(t, f.env(), loadUnit(1000, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, MaxInFlight: 50})).Tally
		w := tally.Window
		if w.Scheduled != 1000 || w.Sent+w.Dropped != w.Scheduled || w.Completed != w.Sent {
			t.Errorf("window %+v: want scheduled = sent + dropped and all sent ones answered", w)
		}
		if w.Sent < 540 || w.Sent > 560 { // 500 in 10 s and 50 in flight at the end
			t.Errorf("%d sent, want about 550", w.Sent)
		}
		near(t, "p90", tally.Latency.Quantile(900), time.Second, 0.1) // 50 in flight, 20 ms each
		if f.opened > 50 {
			t.Errorf("%d sessions for at most 50 open calls", f.opened)
		}
	})
}

// TestNeverAnswers: no latency above the limit, and the run ends when the last
// call gave up.
func TestNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange {
			x := after(ctx, time.Second)
			x.Outcome, x.Delivered = metrics.Timeout, false
			return x
		}}
		tally := run(t, f.env(), loadUnit(500, wire.Load{Workers: 1, Level: 1, MilliRate: 50_000, Duration: 4 * time.Second})).Tally
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v, want at most 5 s", took)
		}
		if tally.Outcomes[metrics.Timeout] != 200 || tally.TimedOut.Max() > 1_001_000 || tally.Latency.N() != 0 {
			t.Errorf("outcomes %v, longest timeout %d µs", tally.Outcomes, tally.TimedOut.Max())
		}
	})
}

// TestClosedLoop: each operation is made once, by as many users as the level
// has, after warm-up and go.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, c target.Call) metrics.Exchange {
			return after(ctx, time.Duration(1+c.Op%7)*time.Millisecond)
		}}
		env := f.env()
		var order []string
		env.Ready = func(context.Context) error {
			order = append(order, fmt.Sprintf("ready after %d calls in %d sessions", len(f.calls), f.opened))
			return nil
		}
		u := loadUnit(300, wire.Load{Workers: 4, Level: 4, FirstWorker: 0, Warmup: 6})
		res := run(t, env, u)
		if diff := cmp.Diff([]string{"ready after 6 calls in 4 sessions"}, order); diff != "" {
			t.Error(diff)
		}
		seen := map[string]int{}
		for _, c := range f.calls {
			seen[fmt.Sprint(c.Label, c.Op)]++
		}
		for op := range 300 {
			if n := seen[fmt.Sprint("load", op)]; n != 1 {
				t.Errorf("operation %d made %d times", op, n)
			}
		}
		if res.Calls != 306 || res.Tally.Calls() != 300 || len(f.users) != 4 {
			t.Errorf("%d calls, %d measured, %d users; want 306, 300, 4", res.Calls, res.Tally.Calls(), len(f.users))
		}
		w := res.Tally.Window
		if w.Workers != 4 || w.Completed != 300 || w.Succeeded != 300 {
			t.Errorf("window %+v", w)
		}
		near(t, "busy time", w.BusyUS, time.Duration(res.Tally.Latency.Sum())*time.Microsecond, 0.001)
	})
}

// TestSteadyRate: a constant second of service at 16 callers is 16 a second,
// however few calls there are.
func TestSteadyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, time.Second) }}
		res := run(t, f.env(), loadUnit(20, wire.Load{Workers: 16, Level: 16}))
		w := res.Tally.Window
		if g := res.Generator; g.Lag.N() < 150 || g.Lag.Max() != 0 || g.Saturated {
			t.Errorf("2 s of ticks in a bubble without lag: %d, the latest by %d µs, saturated %v", g.Lag.N(), g.Lag.Max(), g.Saturated)
		}
		rate := float64(w.Completed) / float64(w.BusyUS) * 1e6 * float64(w.Workers)
		if math.Abs(rate-16) > 0.01 {
			t.Errorf("rate %.3f/s from %+v, want 16", rate, w)
		}
	})
}

// TestQuotaPauses: after a refusal that names 2 s all workers pause for 2 s.
func TestQuotaPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		f := &fake{}
		f.answer = func(ctx context.Context, c target.Call) metrics.Exchange {
			mu.Lock()
			sent = append(sent, time.Since(start))
			mu.Unlock()
			x := after(ctx, 10*time.Millisecond)
			if c.Op == 8 || c.Op == 9 {
				x.Outcome, x.Quota, x.RetryAfter = metrics.RateLimited, "http_status", 2*time.Second
			}
			return x
		}
		l := wire.Load{Workers: 2, Level: 2, BackoffMax: 5 * time.Second, BackoffBudget: 30 * time.Second}
		tally := run(t, f.env(), loadUnit(20, l)).Tally
		if q := tally.Quota; q.Waits != 1 || q.WaitedUS != 2_000_000 || q.Seen["http_status"] != 2 {
			t.Errorf("quota %+v, want one wait of 2 s", q)
		}
		for _, at := range sent {
			if at > 50*time.Millisecond && at < 2050*time.Millisecond {
				t.Errorf("a call was sent at %v, during the pause", at)
			}
		}
		if tally.Calls() != 20 {
			t.Errorf("%d calls, want 20: a refused one is not repeated", tally.Calls())
		}
	})
}

func TestQuotaBudget(t *testing.T) {
	rows := []struct {
		name         string
		max, budget  time.Duration
		hint         time.Duration
		waits        int64
		waited, took time.Duration
	}{
		{"Capped", time.Second, time.Minute, time.Hour, 10, 10 * time.Second, 10 * time.Second},
		{"WithoutHint", time.Second, time.Minute, 0, 10, 10 * time.Second, 10 * time.Second},
		{"BudgetSpent", 2 * time.Second, 5 * time.Second, time.Hour, 3, 5 * time.Second, 5 * time.Second},
		{"Off", 0, time.Minute, time.Hour, 0, 0, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				f := &fake{answer: func(context.Context, target.Call) metrics.Exchange {
					return metrics.Exchange{Outcome: metrics.RateLimited, Delivered: true, Quota: "http_status", RetryAfter: r.hint}
				}}
				tally := run(t, f.env(), loadUnit(11, wire.Load{Workers: 1, Level: 1, BackoffMax: r.max, BackoffBudget: r.budget})).Tally
				q := tally.Quota
				// The pause after the last call is booked, but nobody is left to wait.
				if r.name != "BudgetSpent" && r.name != "Off" {
					q.Waits--
					q.WaitedUS -= int64(time.Second / time.Microsecond)
				}
				if q.Waits != r.waits || q.WaitedUS != r.waited.Microseconds() || time.Since(start) != r.took {
					t.Errorf("%d waits, %d µs, took %v; want %d, %v, %v", q.Waits, q.WaitedUS, time.Since(start), r.waits, r.waited, r.took)
				}
			})
		})
	}
}

// TestQuotaOpenLoop: arrivals of the pause are dropped, not sent late.
func TestQuotaOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.answer = func(ctx context.Context, c target.Call) metrics.Exchange {
			if c.Op == 100 {
				return metrics.Exchange{Outcome: metrics.RateLimited, Delivered: true, Quota: "http_status", RetryAfter: time.Second}
			}
			return after(ctx, time.Millisecond)
		}
		l := wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, BackoffMax: 5 * time.Second, BackoffBudget: 5 * time.Second}
		tally := run(t, f.env(), loadUnit(500, l)).Tally
		if w := tally.Window; w.Scheduled != 500 || w.Dropped < 99 || w.Dropped > 100 || w.Sent+w.Dropped != 500 {
			t.Errorf("window %+v, want 500 scheduled and the 100 of one second dropped", w)
		}
		if tally.Late.Max() > 1000 {
			t.Errorf("an arrival was sent %d µs late", tally.Late.Max())
		}
	})
}

// TestNoQuota: refusals that are no quota do not slow the load down.
func TestNoQuota(t *testing.T) {
	rows := map[string]metrics.Exchange{
		"OkWithLimitHeaders":  {Delivered: true, Quota: "header", RetryAfter: time.Second},
		"FailureWithHeaders":  {Outcome: metrics.ServerError, Delivered: true, Quota: "header"},
		"RateLimitWithout":    {Outcome: metrics.RateLimited, Delivered: true, RetryAfter: time.Second},
		"InjectedServerError": {Outcome: metrics.ServerError, Fault: "server_error", Origin: metrics.FromInjector, Delivered: true},
	}
	for name, x := range rows {
		g, tally := newGate(&wire.Load{BackoffMax: time.Minute, BackoffBudget: time.Hour}, nil), metrics.NewTally()
		if g.see(&x, time.Second, &tally.Quota); g.closed(nil, time.Second, &tally.Quota) || tally.Quota.Waits != 0 {
			t.Errorf("%s: the load pauses", name)
		}
	}
	g, busy := newGate(&wire.Load{BackoffMax: time.Minute, BackoffBudget: time.Hour}, nil), metrics.Exchange{Outcome: metrics.ServerError, Quota: "http_status", RetryAfter: 2 * time.Second}
	seen := metrics.QuotaSeen{}
	if g.see(&busy, time.Second, &seen); !g.closed(nil, 2900*time.Millisecond, &seen) || g.closed(nil, 3*time.Second, &seen) {
		t.Error("a failure that names a wait of 2 s does not pause the load for 2 s")
	}
}

// TestHalt: a stopped run keeps what it has and charges nothing to the target.
func TestHalt(t *testing.T) {
	for name, rate := range map[string]int64{"Closed": 0, "Open": 100_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
				defer cancel()
				f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, 100*time.Millisecond) }}
				start := time.Now()
				res := Run(ctx, f.env(), loadUnit(1<<20, wire.Load{Workers: 4, Level: 4, MilliRate: rate}), nil)
				if took := time.Since(start); took > 1100*time.Millisecond {
					t.Errorf("stopped after %v", took)
				}
				tally := res.Tally
				if tally.Successes() < 40 || tally.Failures() != 0 || tally.Outcomes[metrics.Cancelled] == 0 {
					t.Errorf("outcomes %v, want 40 or more ok and the open ones cancelled", tally.Outcomes)
				}
			})
		})
	}
}

type closedDoor struct{}

func (closedDoor) Error() string { return "no entry" }
func (closedDoor) Failure() *wire.Failure {
	return &wire.Failure{Class: "unreachable", Message: "no entry", Remedy: "knock"}
}

func TestFailures(t *testing.T) {
	f := &fake{session: func(int) error { return fmt.Errorf("connect: %w", closedDoor{}) }}
	plain := &fake{session: func(int) error { return errors.New("out of memory") }}
	rows := []struct {
		name string
		env  Env
		unit *wire.Unit
		want wire.Failure
	}{
		{"Known", f.env(), loadUnit(1, wire.Load{Workers: 2}), wire.Failure{Class: "unreachable", Message: "no entry", Remedy: "knock"}},
		{"Unknown", plain.env(), loadUnit(1, wire.Load{}), wire.Failure{Class: "harness", Message: "out of memory"}},
		{"NoParameters", f.env(), &wire.Unit{ID: "u", Kind: wire.RecoveryUnit}, wire.Failure{Class: "harness", Message: "probe: unit u: kind recovery without its parameters"}},
		{"NewerKind", f.env(), &wire.Unit{ID: "u", Kind: "soak"}, wire.Failure{Class: "harness", Message: `probe: unit u: unknown kind "soak"; this agent is older than its controller`}},
		{"Backwards", f.env(), &wire.Unit{ID: "u", Kind: wire.SurveyUnit, Ops: wire.Range{From: 2, To: 1}}, wire.Failure{Class: "harness", Message: "probe: unit u: operations 2 to 1 run backwards"}},
		{"UnknownFault", f.env(), &wire.Unit{ID: "u", Kind: wire.LoadUnit, Load: &wire.Load{}, Faults: &wire.Faults{Rule: "r", Kinds: []string{"meteor"}, RatePPB: 1}},
			wire.Failure{Class: "harness", Message: `probe: unknown fault kind "meteor" (valid: timeout, rate_limit, server_error, malformed, connection_refused, response_lost)`}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			res := Run(t.Context(), r.env, r.unit, nil)
			if res.Failure == nil {
				t.Fatal("no failure")
			}
			if diff := cmp.Diff(r.want, *res.Failure); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSharesSumToStage: the shares of all agents of a level are the stage.
func TestSharesSumToStage(t *testing.T) {
	for _, whole := range []wire.Range{{From: 0, To: 100}, {From: 21, To: 23}, {From: 1 << 40, To: 1<<40 + 1001}} {
		for _, level := range []int{1, 3, 16, 64} {
			for _, k := range []int{1, 2, 3, 16} {
				if k > level {
					continue
				}
				seen := map[uint64]int{}
				for _, u := range loadUnits(whole, level, k, wire.Load{}, nil) {
					q := &queue{share: shareOf(&u)}
					last := uint64(0)
					for op, ok := q.take(); ok; op, ok = q.take() {
						if op < last {
							t.Fatalf("operation %d after %d", op, last)
						}
						seen[op], last = seen[op]+1, op
					}
				}
				for op := whole.From; op < whole.To; op++ {
					if seen[op] != 1 {
						t.Fatalf("%+v at level %d on %d agents: operation %d made %d times", whole, level, k, op, seen[op])
					}
				}
				if uint64(len(seen)) != whole.Len() {
					t.Fatalf("%+v at level %d on %d agents: %d operations", whole, level, k, len(seen))
				}
			}
		}
	}
}

// TestFaultedLoadOverlapsItsWaits: under faults on a real target the injected
// waits of a closed loop pass beside each other; its calls keep to the number
// of callers.
func TestFaultedLoadOverlapsItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := script(nil)
		_, most := alone(f)
		u := loadUnit(400, wire.Load{Workers: 1, Level: 1})
		u.Faults, u.Target.Timeout = mockFaults(300_000_000), 30*time.Second
		start := time.Now()
		tally := run(t, f.env(), u).Tally
		if tally.Calls() != 400 || most.Load() != 1 {
			t.Errorf("%d calls, %d at once; want 400 and 1", tally.Calls(), most.Load())
		}
		waits := time.Duration(tally.TimedOut.Sum()) * time.Microsecond
		if took := time.Since(start); waits < 5*time.Minute || took > waits/4 {
			t.Errorf("took %v for %v of injected waits: they did not overlap", took, waits)
		}
	})
}
