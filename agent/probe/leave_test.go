package probe

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy"
	"ordeal/metrics"
)

var errSpent = errors.New("the budget is spent")

// purse is leave for a number of calls, and the limits of a fleet.
type purse struct {
	left   atomic.Int64
	closed atomic.Bool   // Check fails
	slow   time.Duration // each call waits for its turn
	dry    atomic.Bool

	mu     sync.Mutex
	seen   []wire.QuotaSignal
	number uint64
	end    time.Time
}

func (p *purse) Take(ctx context.Context) (time.Duration, error) {
	if p.left.Add(-1) < 0 {
		return 0, errSpent
	}
	if p.slow > 0 {
		time.Sleep(p.slow)
	}
	return p.slow, nil
}

func (p *purse) Check() error {
	if p.closed.Load() {
		return errSpent
	}
	return nil
}

func (p *purse) Dry() bool { return p.dry.Load() }

func (p *purse) Seen(s wire.QuotaSignal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, s)
}

func (p *purse) Pause() (uint64, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number, p.end
}

// pause is the fleet's decision.
func (p *purse) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number, p.end = p.number+1, time.Now().Add(d)
}

func purseOf(calls int64) *purse {
	p := &purse{}
	p.left.Store(calls)
	return p
}

func (p *purse) bind(env Env) Env {
	env.Leave, env.Quota = p, p
	return env
}

// count is how many calls a fake has met.
func (f *fake) count() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.calls))
}

// Every kind of unit makes the calls it has leave for and not one more, and says
// how many went out.
func TestLeaveIsExact(t *testing.T) {
	const leave = 7
	load := func(l wire.Load) *wire.Unit { return loadUnit(1000, l) }
	for name, u := range map[string]*wire.Unit{
		"Closed":    load(wire.Load{Workers: 4, Level: 4}),
		"WarmUp":    load(wire.Load{Workers: 4, Level: 4, Warmup: 100}),
		"Open":      load(wire.Load{Workers: 2, Level: 2, MilliRate: 1_000_000}),
		"Recovery":  {ID: "u", Kind: wire.RecoveryUnit, Ops: wire.Range{To: 1000}, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t"}}}, Recovery: &wire.Recovery{MaxRetries: 2}},
		"Contract":  contractUnit(querySchema),
		"Preflight": {ID: "u", Kind: wire.PreflightUnit},
		"Oracle":    {ID: "u", Kind: wire.OracleUnit, Oracle: &wire.Oracle{Tool: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, time.Millisecond) }}
				p := purseOf(leave)
				want := int64(leave)
				if u.Kind == wire.PreflightUnit || u.Kind == wire.OracleUnit {
					want = 0
					p = purseOf(0)
				}
				go func() { // the calls are spent: the fleet knows it a moment later
					for p.left.Load() > 0 {
						time.Sleep(time.Millisecond)
					}
					p.closed.Store(true)
					p.dry.Store(true)
				}()
				res := Run(t.Context(), p.bind(f.env()), u, nil)
				if f.count() != want || res.Calls != want {
					t.Errorf("%d calls met the target, %d are reported; want %d", f.count(), res.Calls, want)
				}
				if res.Tally != nil && res.Tally.Outcomes[metrics.Cancelled] > 0 {
					t.Errorf("%d calls that never went out are counted", res.Tally.Outcomes[metrics.Cancelled])
				}
			})
		})
	}
}

// A budget binds the mock as well, with the same result for its calls.
func TestLeaveBindsVirtualTargets(t *testing.T) {
	for name, l := range map[string]wire.Load{"Closed": {Workers: 1, Level: 1}, "Open": {Workers: 1, Level: 1, MilliRate: 100_000}} {
		t.Run(name, func(t *testing.T) {
			whole := mockEnv(t, "degraded")
			u := loadUnit(500, l)
			u.Call = mockCall()
			want := run(t, whole, u).Tally
			u = loadUnit(1000, l)
			u.Call = mockCall()
			res := run(t, purseOf(500).bind(whole), u)
			if res.Calls != 500 || res.Tally.Latency.Sum() != want.Latency.Sum() || res.Tally.Calls() != want.Calls() {
				t.Errorf("%d calls with %d µs, want those of 500 operations: %d µs", res.Calls, res.Tally.Latency.Sum(), want.Latency.Sum())
			}
			if w := res.Tally.Window; name == "Open" && (w.Scheduled != 500 || w.Sent != 500) {
				t.Errorf("window %+v, want 500 arrivals", w)
			}
		})
	}
}

// Without leave nothing at all is said to a target: no session, no question.
func TestNothingIsSaidWithoutLeave(t *testing.T) {
	f := &fake{alive: func() (bool, bool, string) { t.Error("asked whether it lives"); return true, false, "" }}
	p := purseOf(0)
	p.closed.Store(true)
	env := p.bind(f.env())
	for _, u := range []*wire.Unit{loadUnit(10, wire.Load{Workers: 2, Level: 2}), {ID: "u", Kind: wire.SurveyUnit}, contractUnit(querySchema)} {
		if res := Run(t.Context(), env, u, nil); res.Failure == nil || f.opened > 0 {
			t.Errorf("%s: failure %v, %d sessions; want none", u.Kind, res.Failure, f.opened)
		}
	}
	o := (&occupancy{}).observe(f, p)
	if alive, restarted, _ := o.Alive(t.Context()); !alive || restarted {
		t.Error("a target that may not be asked is called dead")
	}
}

// The wait for leave is no latency of the target, and no idle time either.
func TestWaitForLeaveIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, 10*time.Millisecond) }}
		p := purseOf(1 << 30)
		p.slow = 90 * time.Millisecond
		p.dry.Store(true)
		res := run(t, p.bind(f.env()), loadUnit(10, wire.Load{Workers: 1, Level: 1}))
		near(t, "latency", res.Tally.Latency.Max(), 10*time.Millisecond, 0.01)
		near(t, "busy", res.Busy.Microseconds(), time.Second, 0.01)
		near(t, "window", res.Tally.Window.BusyUS, time.Second, 0.01) // the level's rate is what it could make
	})
}

// Arrivals for which there is no leave are dropped, not sent late; once there
// will be none any more the unit ends.
func TestDryOpenLoopDropsArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, time.Millisecond) }}
		p := purseOf(1 << 30)
		go func() {
			time.Sleep(995 * time.Millisecond)
			p.dry.Store(true)
			time.Sleep(time.Second)
			p.dry.Store(false)
			time.Sleep(time.Second)
			p.closed.Store(true)
			p.dry.Store(true)
		}()
		start := time.Now()
		res := run(t, p.bind(f.env()), loadUnit(1000, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000}))
		if w := res.Tally.Window; w.Sent != 200 || w.Dropped != 100 || time.Since(start) != 3*time.Second {
			t.Errorf("window %+v after %v, want 200 sent, 100 dropped, and the end after 3s", w, time.Since(start))
		}
		if late := res.Tally.Late.Max(); late > 1000 {
			t.Errorf("an arrival was sent %d µs late", late)
		}
	})
}

// Evidence of a quota is told to the fleet by whatever unit meets it; what is
// none is not.
func TestQuotaIsToldToTheFleet(t *testing.T) {
	refused := metrics.Exchange{Outcome: metrics.RateLimited, Delivered: true, Quota: "http_status", RetryAfter: 3 * time.Second, QuotaLimit: 60, QuotaWindow: time.Minute}
	want := wire.QuotaSignal{RetryAfter: 3 * time.Second, Limit: 60, Window: time.Minute}
	for name, u := range map[string]*wire.Unit{
		"Load":      loadUnit(1, wire.Load{Workers: 1, Level: 1}),
		"Recovery":  {ID: "u", Kind: wire.RecoveryUnit, Ops: wire.Range{To: 1}, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t"}}}, Recovery: &wire.Recovery{}},
		"Contract":  contractUnit(querySchema),
		"Preflight": {ID: "u", Kind: wire.PreflightUnit},
	} {
		p := purseOf(1 << 30)
		f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return refused }}
		Run(t.Context(), p.bind(f.env()), u, nil)
		for i := range p.seen {
			if p.seen[i].Age <= 0 || p.seen[i].Age > time.Second {
				t.Errorf("%s: a call of %v ago, want its latency", name, p.seen[i].Age)
			}
			p.seen[i].Age = 0
		}
		if int64(len(p.seen)) != f.count() || len(p.seen) == 0 || p.seen[0] != want {
			t.Errorf("%s: told %v of %d refusals, want %v each", name, p.seen, f.count(), want)
		}
	}
	p := purseOf(1 << 30)
	injected := metrics.Exchange{Outcome: metrics.RateLimited, Delivered: true, RetryAfter: time.Second}
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return injected }}
	if Run(t.Context(), p.bind(f.env()), loadUnit(5, wire.Load{Workers: 1, Level: 1}), nil); len(p.seen) > 0 {
		t.Errorf("told of refusals that are no quota: %v", p.seen)
	}
}

// A pause of the fleet holds a load as one of its own does: for as long as its
// own limits allow, and counted once.
func TestFleetPauseHoldsTheLoad(t *testing.T) {
	for _, r := range []struct {
		name        string
		pauses      []time.Duration // one each second from the first on
		max, budget time.Duration
		waits       int64
		waited      time.Duration
	}{
		{"OK", []time.Duration{500 * time.Millisecond}, time.Minute, time.Minute, 1, 500 * time.Millisecond},
		{"Capped", []time.Duration{time.Hour}, 300 * time.Millisecond, time.Minute, 1, 300 * time.Millisecond},
		{"Budget", []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}, time.Minute, 700 * time.Millisecond, 2, 700 * time.Millisecond},
		{"Off", []time.Duration{time.Hour}, 0, time.Minute, 0, 0},
	} {
		for _, rate := range []int64{0, 100_000} {
			t.Run(r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					var mu sync.Mutex
					var gap, last time.Duration // the longest time without a call
					f := &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange {
						mu.Lock()
						gap, last = max(gap, time.Since(start)-last), time.Since(start)
						mu.Unlock()
						return after(ctx, 10*time.Millisecond)
					}}
					p := purseOf(1 << 30)
					go func() {
						for _, d := range r.pauses {
							time.Sleep(time.Second)
							p.pause(d)
						}
					}()
					l := wire.Load{Workers: 1, Level: 1, MilliRate: rate, BackoffMax: r.max, BackoffBudget: r.budget, Duration: 4 * time.Second}
					q := run(t, p.bind(f.env()), loadUnit(1<<20, l)).Tally.Quota
					near := func(d time.Duration) bool { return (d - r.waited).Abs() <= 20*time.Millisecond }
					if q.Waits != r.waits || !near(time.Duration(q.WaitedUS)*time.Microsecond) {
						t.Errorf("rate %d: %d waits of %d µs, want %d of %v", rate, q.Waits, q.WaitedUS, r.waits, r.waited)
					}
					if r.waits == 1 && (gap-r.waited < 0 || gap-r.waited > 30*time.Millisecond) {
						t.Errorf("rate %d: no call for %v, want %v", rate, gap, r.waited)
					}
				})
			})
		}
	}
}

// A pause that is prolonged stays one, and costs what it is longer by.
func TestFleetPauseIsProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, seen := purseOf(0), metrics.QuotaSeen{}
		g, clock := newGate(&wire.Load{BackoffMax: time.Minute, BackoffBudget: time.Minute}, p), faultproxy.NewRealClock()
		p.pause(1500 * time.Millisecond)
		g.obey(clock, &seen)
		time.Sleep(time.Second)
		p.pause(time.Second)
		for range 3 { // a pause is taken in once
			g.obey(clock, &seen)
		}
		refused := metrics.Exchange{Outcome: metrics.RateLimited, Quota: "http_status", RetryAfter: time.Hour}
		g.see(&refused, clock.Now(), &seen) // an answer to a call sent before
		if !g.closed(clock, 1999*time.Millisecond, &seen) || g.closed(clock, 2*time.Second, &seen) || seen.Waits != 1 || seen.WaitedUS != 2_000_000 {
			t.Errorf("closed until %v, %+v; want one wait of 2s", time.Duration(g.until.Load()), seen)
		}
	})
}

// A panic of any goroutine of a unit fails that unit, with the place, and ends
// its other goroutines.
func TestPanicFailsTheUnit(t *testing.T) {
	explode := func(n int64, f *fake) func(context.Context, target.Call) metrics.Exchange {
		return func(ctx context.Context, _ target.Call) metrics.Exchange {
			if f.count() >= n {
				panic("a bug in the client")
			}
			return after(ctx, time.Millisecond)
		}
	}
	recovery := &wire.Unit{ID: "u", Kind: wire.RecoveryUnit, Ops: wire.Range{To: 1 << 40}, Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "t"}}}, Recovery: &wire.Recovery{MaxRetries: 2}}
	for name, u := range map[string]*wire.Unit{
		"Closed":   loadUnit(1<<40, wire.Load{Workers: 4, Level: 4}),
		"Open":     loadUnit(1<<40, wire.Load{Workers: 4, Level: 4, MilliRate: 1_000_000}),
		"WarmUp":   loadUnit(1<<40, wire.Load{Workers: 4, Level: 4, Warmup: 1000}),
		"Recovery": recovery,
		"Contract": contractUnit(querySchema),
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.answer = explode(20, f)
			if u.Kind == wire.ContractUnit {
				f.answer = explode(3, f)
			}
			res := Run(t.Context(), f.env(), u, nil)
			if res.Failure == nil || res.Failure.Class != "harness" || !strings.Contains(res.Failure.Message, "a bug in the client") || !strings.Contains(res.Failure.Stderr, "leave_test.go") {
				t.Errorf("failure %+v, want the panic with its stack", res.Failure)
			}
			if !res.Final || res.Unit != u.ID || res.Calls == 0 {
				t.Errorf("result %+v", res)
			}
		})
	}
	t.Run("Session", func(t *testing.T) {
		f := &fake{session: func(int) error { panic("a bug in the handshake") }}
		if res := Run(t.Context(), f.env(), loadUnit(100, wire.Load{Workers: 50, Level: 50}), nil); res.Failure == nil || !strings.Contains(res.Failure.Message, "handshake") {
			t.Errorf("failure %+v, want the panic", res.Failure)
		}
	})
}

// The wait for a start is never short, and ends with its context.
func TestSleepUntil(t *testing.T) {
	late := time.Duration(0)
	for range 10 {
		moment := time.Now().Add(3 * time.Millisecond)
		if _, err := SleepUntil(t.Context(), moment); err != nil || time.Now().Before(moment) {
			t.Fatalf("%v, %v before the moment", err, time.Until(moment))
		}
		late = max(late, time.Since(moment))
	}
	t.Logf("at most %v late", late)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if _, err := SleepUntil(ctx, time.Now().Add(time.Hour)); !errors.Is(err, stop) {
		t.Errorf("err %v, want %v", err, stop)
	}
	if _, err := SleepUntil(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Errorf("a moment that has passed: %v", err)
	}
}
