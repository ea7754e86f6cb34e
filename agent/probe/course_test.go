package probe

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// served is a target that takes d for each call.
func served(d time.Duration) *fake {
	return &fake{answer: func(ctx context.Context, _ target.Call) metrics.Exchange { return after(ctx, d) }}
}

// sums of a column of periods.
func sum(all []metrics.Period, of func(*metrics.Period) int64) (n int64) {
	for i := range all {
		n += of(&all[i])
	}
	return n
}

func column(all []metrics.Period, of func(*metrics.Period) int64) []int64 {
	out := make([]int64, len(all))
	for i := range all {
		out[i] = of(&all[i])
	}
	return out
}

// TestOpenProfile: up to 100/s in 2 s, a second there, down in 2 s: each period has
// the arrivals of its stretch, and the calls that end after the last arrival have
// periods, too.
func TestOpenProfile(t *testing.T) {
	ramps := []wire.Ramp{{For: 2 * time.Second, To: 100_000}, {For: time.Second, From: 100_000, To: 100_000}, {For: 2 * time.Second, From: 100_000}}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		u := loadUnit(1<<20, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, Profile: ramps, Period: time.Second})
		u.Target.Timeout = 2 * time.Second
		res := run(t, served(1500*time.Millisecond).env(), u)
		if took := time.Since(start); took > 6500*time.Millisecond {
			t.Errorf("took %v, want at most the profile and the last call", took)
		}
		w := res.Tally.Window
		if w.Scheduled != 300 || w.Sent != 300 || w.Completed != 300 || w.SpanUS != 5_000_000 {
			t.Errorf("window %+v, want 300 arrivals in 5 s", w)
		}
		rows := map[string][2][]int64{
			"scheduled": {column(res.Periods, func(p *metrics.Period) int64 { return p.Scheduled }), {25, 75, 100, 75, 25, 0, 0}},
			"calls":     {column(res.Periods, func(p *metrics.Period) int64 { return p.Outcomes[metrics.OK] }), {25, 75, 100, 75, 25, 0, 0}},
			"completed": {column(res.Periods, func(p *metrics.Period) int64 { return p.Succeeded }), {0, 7, 50, 94, 94, 50, 6}},
			"late":      {column(res.Periods, func(p *metrics.Period) int64 { return p.Late.N() }), {25, 75, 100, 75, 25, 0, 0}},
			"in flight": {column(res.Periods, func(p *metrics.Period) int64 { return p.InFlight }), {25, 94, 144, 147, 125, 0, 0}},
		}
		for name, row := range rows {
			if len(row[0]) != len(row[1]) {
				t.Errorf("%s in %d periods, want %d: %v", name, len(row[0]), len(row[1]), row[0])
				continue
			}
			for i := range row[0] {
				if d := row[0][i] - row[1][i]; d < -2 || d > 2 {
					t.Errorf("%s %v, want about %v", name, row[0], row[1])
					break
				}
			}
		}
	})
}

// TestClosedProfile: callers come and go, each finishes its call, and between two
// calls it thinks.
func TestClosedProfile(t *testing.T) {
	ramps := []wire.Ramp{{For: 4 * time.Second, To: 4}, {For: time.Second, From: 4, To: 4}, {For: time.Second, From: 1, To: 1}, {For: 2 * time.Second}}
	for _, think := range []time.Duration{0, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			u := loadUnit(1<<40, wire.Load{Workers: 4, Level: 4, Profile: ramps, Period: time.Second, Think: think})
			u.Target.Timeout = time.Second
			f := served(50 * time.Millisecond)
			res := run(t, f.env(), u)
			if took := time.Since(start); took > 6100*time.Millisecond {
				t.Errorf("took %v, want the profile without its idle end", took)
			}
			callers := column(res.Periods, func(p *metrics.Period) int64 { return p.Callers })
			if diff := cmp.Diff([]int64{1, 2, 3, 4, 4, 4, 1, 0}, callers); diff != "" { // in period 5 the last calls of period 4 end
				t.Errorf("callers %v: %s", callers, diff)
			}
			perSecond := 20.0 / (1 + float64(think)/float64(50*time.Millisecond))
			for i, want := range []float64{1, 2, 3, 4, 4, 1, 0, 0} {
				if got := float64(res.Periods[i].Outcomes.Total()); math.Abs(got-want*perSecond) > want+1 {
					t.Errorf("think %v: %.0f calls in period %d, want about %.0f", think, got, i, want*perSecond)
				}
			}
			inFlight := column(res.Periods, func(p *metrics.Period) int64 { return p.InFlight })
			if think == 0 && !slices.Equal(inFlight, callers) {
				t.Errorf("in flight %v, want the callers %v", inFlight, callers)
			}
			if n := sum(res.Periods, func(p *metrics.Period) int64 { return p.Sent }); n != res.Tally.Calls() || n != res.Calls {
				t.Errorf("%d sent in periods, %d in the tally, %d in all", n, res.Tally.Calls(), res.Calls)
			}
		})
	}
}

// TestMeasured: the tally is about what was due, or begun, in the measured part,
// the periods about everything.
func TestMeasured(t *testing.T) {
	rows := map[string]wire.Load{
		"Open":   {Workers: 4, Level: 4, MilliRate: 100_000},
		"Closed": {Workers: 4, Level: 4},
	}
	for name, l := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l.Duration, l.Measured, l.Period = 5*time.Second, wire.Span{From: time.Second, To: 4 * time.Second}, 500*time.Millisecond
				u := loadUnit(1<<40, l)
				u.Target.Timeout = time.Second
				var told int64
				res := Run(t.Context(), served(40*time.Millisecond).env(), u, func(done, _ int64, seen *metrics.Tally) {
					told += seen.Calls()
					if told != done {
						t.Errorf("progress of %d calls, told of %d", done, told)
					}
				})
				all := sum(res.Periods, func(p *metrics.Period) int64 { return p.Outcomes.Total() })
				in := sum(res.Periods[2:8], func(p *metrics.Period) int64 { return p.Outcomes.Total() })
				if all != res.Calls || all != told || in != res.Tally.Calls() || in < all*55/100 || in > all*65/100 {
					t.Errorf("%d calls, %d told of, %d in periods, %d in those measured, tally %d", res.Calls, told, all, in, res.Tally.Calls())
				}
				w := res.Tally.Window
				if w.Completed != in {
					t.Errorf("window %+v, want %d completed", w, in)
				}
				if name == "Open" && (w.Scheduled != 300 || w.SpanUS != 3_000_000) {
					t.Errorf("window %+v, want 300 arrivals in the 3 measured seconds", w)
				}
				if rate := float64(w.Completed) / float64(w.BusyUS) * 1e6 * float64(w.Workers); name == "Closed" && math.Abs(rate-100) > 1 {
					t.Errorf("rate %.2f/s from %+v, want 100", rate, w)
				}
			})
		})
	}
}

// TestPeriodsAreTheTally: whatever a load meets, its periods add up to its tally.
func TestPeriodsAreTheTally(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(ctx context.Context, c target.Call) metrics.Exchange {
				x := after(ctx, time.Duration(c.Op*7919%400)*time.Millisecond)
				x.TTFT = time.Millisecond
				if c.Op%5 == 0 {
					x.Outcome = metrics.ServerError
				}
				return x
			}}
			l := wire.Load{Workers: 1 + rng.IntN(5), Duration: time.Duration(1+rng.IntN(4)) * time.Second, Period: time.Duration(1+rng.IntN(900)) * time.Millisecond}
			l.Level = l.Workers
			if rng.IntN(2) == 0 {
				l.MilliRate, l.Poisson, l.Seed, l.MaxInFlight = 1+rng.Int64N(200_000), rng.IntN(2) == 0, fmt.Sprint(rng.Int()), 1+rng.IntN(30)
			}
			u := loadUnit(1<<40, l)
			u.Target.Timeout = time.Second
			res := run(t, f.env(), u)
			var whole metrics.Period
			for i := range res.Periods {
				whole.Merge(&res.Periods[i])
			}
			tally := res.Tally
			if diff := cmp.Diff(tally.Outcomes, whole.Outcomes); diff != "" && tally.Calls() > 0 {
				t.Errorf("%+v: %s", l, diff)
			}
			if a, b := mustBinary(t, &tally.Latency), mustBinary(t, &whole.Latency); a != b {
				t.Errorf("%+v: latencies of the periods are not those of the tally", l)
			}
			w := tally.Window
			if whole.Completed != tally.Measured() || whole.Succeeded != tally.Successes() || whole.TTFT.N() != tally.Successes() ||
				l.MilliRate > 0 && (whole.Scheduled != w.Scheduled || whole.Sent != w.Sent || whole.Dropped != w.Dropped || whole.Late.N() != w.Scheduled) {
				t.Errorf("%+v: periods %+v, window %+v, %d calls", l, whole, w, tally.Calls())
			}
			if most := int64(l.MaxInFlight); l.MilliRate > 0 && slices.Max(column(res.Periods, func(p *metrics.Period) int64 { return p.InFlight })) > most {
				t.Errorf("%+v: more in flight than %d", l, most)
			}
		})
	}
}

func mustBinary(t *testing.T, d *metrics.Dist) string {
	t.Helper()
	raw, err := d.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPartsOfACourse: the agents that share a profile make, together, the arrivals
// and callers of one agent, at the same times.
func TestPartsOfACourse(t *testing.T) {
	ramps := []wire.Ramp{{For: time.Second, From: 20_000, To: 90_000}, {For: time.Second}, {For: time.Second, From: 50_000, To: 0}}
	made := func(t *testing.T, l wire.Load) map[uint64]time.Duration {
		at := map[uint64]time.Duration{}
		synctest.Test(t, func(t *testing.T) {
			start, mu := time.Now(), sync.Mutex{}
			f := &fake{answer: func(ctx context.Context, c target.Call) metrics.Exchange {
				mu.Lock()
				at[c.Op] = time.Since(start)
				mu.Unlock()
				return after(ctx, time.Millisecond)
			}}
			run(t, f.env(), loadUnit(1<<40, l))
		})
		return at
	}
	for _, poisson := range []bool{false, true} {
		whole := wire.Load{Workers: 1, Level: 1, MilliRate: 90_000, Profile: ramps, Poisson: poisson, Seed: "s"}
		want := made(t, whole)
		if len(want) < 50 {
			t.Fatalf("only %d arrivals", len(want))
		}
		for _, parts := range []int{2, 3, 7} {
			got := map[uint64]time.Duration{}
			for part := range parts {
				l := whole
				l.Part, l.Parts = part, parts
				for op, at := range made(t, l) {
					got[op] = at
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("poisson %v in %d parts: %s", poisson, parts, diff)
			}
		}
	}
}

// TestPartsOfClosedProfile: on a virtual target the merged result of the agents that
// share the callers of a profile is that of one, byte for byte.
func TestPartsOfClosedProfile(t *testing.T) {
	ramps := []wire.Ramp{{For: 20 * time.Second, To: 7}, {For: 10 * time.Second, From: 7, To: 2}}
	units := func(parts int) (all []wire.Unit) {
		for part := range parts {
			l := wire.Load{Workers: (7 - part + parts - 1) / parts, Level: 7, Profile: ramps, Period: time.Second, Measured: wire.Span{From: 5 * time.Second}}
			if parts > 1 {
				l.Part, l.Parts = part, parts
			}
			u := loadUnit(1<<40, l)
			u.Call = mockCall()
			all = append(all, *u)
		}
		return all
	}
	want, _ := merged(t, "degraded", units(1))
	for _, parts := range []int{2, 3, 7} {
		if got, _ := merged(t, "degraded", units(parts)); got != want {
			t.Errorf("%d agents differ from one:\n%s\n%s", parts, got, want)
		}
	}
}

func TestCourseProblems(t *testing.T) {
	rows := map[string]wire.Load{
		"its profile has no length":                  {Profile: []wire.Ramp{{From: 1, To: 1}}},
		"want levels from 0 to":                      {Profile: []wire.Ramp{{For: time.Second, From: -1}}},
		"lasts 1s, but its duration is 2s":           {Profile: []wire.Ramp{{For: time.Second, From: 1, To: 1}}, Duration: 2 * time.Second},
		"the measured part from 2s to 1s is empty":   {Duration: time.Second, Measured: wire.Span{From: 2 * time.Second, To: time.Second}},
		"it lasts 2400h0m0s: want a whole number of": {Duration: 2400 * time.Hour, MilliRate: 1, Poisson: true},
	}
	for want, l := range rows {
		l.Workers, l.Level = 1, 1
		res := Run(t.Context(), served(0).env(), loadUnit(10, l), nil)
		if f := res.Failure; f == nil || f.Class != "harness" || !strings.Contains(f.Message, want) || !strings.Contains(f.Message, "unit u") {
			t.Errorf("%+v: failure %+v, want one that says %q", l, f, want)
		}
	}
}

// TestPeriodsDouble: more than a result holds become fewer and longer ones, and
// nothing in them is lost.
func TestPeriodsDouble(t *testing.T) {
	for _, n := range []int{1, wire.MaxPeriods, wire.MaxPeriods + 1, 5 * wire.MaxPeriods} {
		p := newPeriods(loadUnit(10, wire.Load{Workers: 1, Level: 1, Period: time.Second}))
		for i := range n {
			one := metrics.Period{Outcomes: metrics.Counts{metrics.OK: 1}, Sent: int64(i), Callers: int64(i % 7)}
			one.Latency.Record(int64(i))
			p.merge(p.index(time.Duration(i)*time.Second), &one)
		}
		all, length := p.seal(time.Duration(n) * time.Second)
		if len(all) > wire.MaxPeriods || time.Duration(len(all))*length < time.Duration(n)*time.Second || time.Duration(len(all)-1)*length >= time.Duration(n)*time.Second {
			t.Errorf("%d s in %d periods of %v", n, len(all), length)
		}
		var whole metrics.Period
		for i := range all {
			add(&whole, &all[i])
		}
		if whole.Outcomes[metrics.OK] != int64(n) || whole.Sent != int64(n*(n-1)/2) || whole.Latency.N() != int64(n) || whole.Callers != int64(min(n-1, 6)) {
			t.Errorf("of %d calls: %+v", n, whole)
		}
	}
}

// TestSlotsLeave: a burst of slots is gone when it is over, and its sessions are
// used again.
func TestSlotsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := stalling(time.Now())
		u := loadUnit(1<<20, wire.Load{Workers: 1, Level: 1, MilliRate: 200_000, Duration: 10 * time.Second, MaxInFlight: 300})
		l, err := newLoad(&Env{Target: f, timers: true, plain: f, crash: &crash{stop: func(error) {}}}, u, func(int64, int64, *metrics.Tally) {})
		if err != nil {
			t.Fatal(err)
		}
		var res wire.Result
		if err := l.open(t.Context(), &res); err != nil {
			t.Fatal(err)
		}
		if w := l.tally.Window; w.Scheduled != 2000 || w.Dropped < 90 || w.Dropped > 110 || w.Sent != w.Completed {
			t.Errorf("window %+v, want 400 arrivals in the stall and about 100 of them dropped", w)
		}
		if n := len(l.crew.idle); n > 1+spareSlots || l.crew.started > 300 || len(l.crew.free) < 200 {
			t.Errorf("%d slots idle and %d gone of %d, want at most %d to stay", n, len(l.crew.free), l.crew.started, 1+spareSlots)
		}
		if f.opened > 300 {
			t.Errorf("%d sessions for at most 300 calls at once", f.opened)
		}
	})
}

// TestPacerBehind: a pacer that does not keep up drops what nobody would wait for
// any more, and the load ends in time.
func TestPacerBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := served(time.Millisecond)
		u := loadUnit(1<<30, wire.Load{Workers: 1, Level: 1, MilliRate: 100_000, Duration: 4 * time.Second, Period: time.Second})
		u.Target.Timeout = time.Second
		env := f.env()
		var once sync.Once
		env.Quota = slowQuota{func() { once.Do(func() { time.Sleep(3 * time.Second) }) }}
		res := run(t, env, u)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v, want at most the duration and the timeout", took)
		}
		if w := res.Tally.Window; w.Scheduled != 400 || w.Dropped < 195 || w.Dropped > 205 || w.Sent != w.Completed {
			t.Errorf("window %+v, want the arrivals of two of the three seconds at a stand dropped", w)
		}
		if !res.Generator.Saturated {
			t.Error("not marked")
		}
	})
}

// slowQuota holds the pacer up when it is asked.
type slowQuota struct{ hold func() }

func (q slowQuota) Dry() bool                             { q.hold(); return false }
func (q slowQuota) Seen(wire.QuotaSignal)                 {}
func (q slowQuota) Pause() (number uint64, end time.Time) { return 0, time.Time{} }
