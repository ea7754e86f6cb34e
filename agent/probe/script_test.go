package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// shop is a workload of a search, whose answer names what to buy, and a look
// around.
func shop(perCall bool) *wire.Workload {
	return &wire.Workload{Seed: "1", PerCall: perCall, Scenarios: []wire.Scenario{
		{Name: "buy", Weight: 3, Steps: []wire.Step{
			{Name: "find", Tool: "search", Args: json.RawMessage(`{"q":"n${op}"}`), Extract: map[string]string{"id": "/id"}, Think: 100 * time.Millisecond},
			{Name: "order", Tool: "order", Args: json.RawMessage(`{"id":"${id}","by":"${user}"}`)},
		}},
		{Name: "look", Weight: 1, Steps: []wire.Step{{Name: "list", Tool: "list"}}},
	}}
}

// shopkeeper answers in 10 ms; the search for every tenth finds nothing.
func shopkeeper() *fake {
	return &fake{answer: func(ctx context.Context, c target.Call) metrics.Exchange {
		x := after(ctx, 10*time.Millisecond)
		if c.Tool == "search" {
			x.Structured = json.RawMessage(`{"id":` + strings.TrimSuffix(strings.TrimPrefix(string(c.Args), `{"q":"n`), `"}`) + `}`)
			if c.Op%10 == 9 {
				x.Structured = json.RawMessage(`{}`)
			}
		}
		return x
	}}
}

func stepsOf(res *wire.Result) map[string]wire.StepTally {
	all := map[string]wire.StepTally{}
	for _, s := range res.Steps {
		all[s.Scenario+"/"+s.Step] = s
	}
	return all
}

// TestWorkload: steps run in order with what earlier ones extracted; one that fails
// ends its operation; every call counts in the tally, every operation in the window.
func TestWorkload(t *testing.T) {
	rows := map[string]wire.Load{
		"Closed": {Workers: 3, Level: 3},
		"Open":   {Workers: 3, Level: 3, MilliRate: 50_000},
	}
	for name, l := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := shopkeeper()
				l.Period = time.Second
				u := loadUnit(400, l)
				u.Workload = shop(false)
				res := run(t, f.env(), u)
				steps := stepsOf(res)
				buys, looks := steps["buy/"].Outcomes.Total(), steps["look/"].Outcomes.Total()
				if buys+looks != 400 || buys < 250 || buys > 350 {
					t.Errorf("%d bought and %d looked around of 400", buys, looks)
				}
				found, missed := steps["buy/find"].Outcomes[metrics.OK], steps["buy/find"].Outcomes[metrics.InvalidResponse]
				if found+missed != buys || missed == 0 || steps["buy/order"].Outcomes[metrics.OK] != found || steps["buy/"].Outcomes[metrics.OK] != found {
					t.Errorf("%d bought: %d found, %d missed, orders %v", buys, found, missed, steps["buy/order"].Outcomes)
				}
				whole := steps["buy/"].Latency
				near(t, "a purchase", whole.Quantile(500), 120*time.Millisecond, 0.01)
				if n := res.Tally.Calls(); n != buys+found+looks || n != res.Calls || n != int64(len(f.calls)) {
					t.Errorf("%d calls in the tally, %d made", n, len(f.calls))
				}
				if w := res.Tally.Window; w.Completed != 400 || w.Succeeded != 400-missed {
					t.Errorf("window %+v, want 400 operations and %d misses", w, missed)
				}
				ids := map[string]bool{}
				for _, c := range f.calls {
					if c.Tool == "order" {
						ids[string(c.Args)] = true
						if !strings.HasPrefix(string(c.Args), `{"id":`) || c.Attempt != 1 {
							t.Fatalf("ordered %s as step %d", c.Args, c.Attempt)
						}
					}
				}
				if int64(len(ids)) != found {
					t.Errorf("%d different orders of %d", len(ids), found)
				}
			})
		})
	}
}

// TestWorkloadMeasured: steps and operations outside the measured part are in the
// periods only.
func TestWorkloadMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := loadUnit(1<<40, wire.Load{Workers: 4, Level: 4, MilliRate: 20_000, Duration: 5 * time.Second, Period: time.Second, Measured: wire.Span{From: 2 * time.Second, To: 4 * time.Second}})
		u.Workload = shop(false)
		res := run(t, shopkeeper().env(), u)
		steps := stepsOf(res)
		if n := steps["buy/"].Outcomes.Total() + steps["look/"].Outcomes.Total(); n != 40 {
			t.Errorf("%d operations counted, want the 40 of two seconds", n)
		}
		calls := steps["buy/find"].Outcomes.Total() + steps["buy/order"].Outcomes.Total() + steps["look/list"].Outcomes.Total()
		in := res.Periods[2].Outcomes.Total() + res.Periods[3].Outcomes.Total()
		if calls != res.Tally.Calls() || calls != in || res.Calls <= calls {
			t.Errorf("%d calls of steps, %d in the tally, %d in the periods, %d made", calls, res.Tally.Calls(), in, res.Calls)
		}
	})
}

// TestWorkloadOnMock: a virtual target works a workload in its own time, and the
// agents of a level make, together, what one makes.
func TestWorkloadOnMock(t *testing.T) {
	w := &wire.Workload{Seed: "1", Scenarios: []wire.Scenario{{Name: "s", Weight: 1, Steps: []wire.Step{
		{Name: "a", Tool: "echo", Args: json.RawMessage(`{"query":"${op_id}"}`), Think: time.Second}, {Name: "b", Tool: "search", Args: json.RawMessage(`{}`)}}}}}
	units := func(k int) []wire.Unit {
		all := loadUnits(wire.Range{To: 400}, 4, k, wire.Load{}, nil)
		for i := range all {
			all[i].Workload = w
		}
		return all
	}
	want, _ := merged(t, "degraded", units(1))
	for _, k := range []int{2, 4} {
		if got, _ := merged(t, "degraded", units(k)); got != want {
			t.Errorf("%d agents differ from one:\n%s\n%s", k, got, want)
		}
	}
}

// oneOff is a target that opens a session for each operation.
type oneOff struct {
	*fake
	open, closed atomic.Int64
	mu           sync.Mutex
	seen         int
}

func (o *oneOff) OneSession(_ context.Context, user int) (target.Session, func(), error) {
	o.mu.Lock()
	o.seen++
	no := o.seen%10 == 0
	o.mu.Unlock()
	if no {
		return nil, nil, errors.New("come back later")
	}
	o.open.Add(1)
	return fakeSession{o.fake, user}, func() { o.closed.Add(1) }, nil
}

func (o *oneOff) Sessions() (opened, reopened int64) { return o.open.Load(), 7 }

// TestSessionPerCall: each operation opens a session of its own and closes it; one
// that gets none fails like a caller without a connection.
func TestSessionPerCall(t *testing.T) {
	for name, rate := range map[string]int64{"Closed": 0, "Open": 50_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &oneOff{fake: shopkeeper()}
				u := loadUnit(200, wire.Load{Workers: 3, Level: 3, MilliRate: rate})
				u.Workload = shop(true)
				res := run(t, Env{Target: o, timers: true}, u)
				if o.fake.opened != 0 || o.open.Load() != 180 || o.closed.Load() != 180 || res.Sessions != (wire.Sessions{Opened: 180}) {
					t.Errorf("%d opened, %d closed, %d kept, result %+v; want 180, 180, 0", o.open.Load(), o.closed.Load(), o.fake.opened, res.Sessions)
				}
				if n := res.Tally.Outcomes[metrics.Connection]; n != 20 {
					t.Errorf("%v, want 20 without a session", res.Tally.Outcomes)
				}
			})
		})
	}
	u := loadUnit(1, wire.Load{Workers: 1, Level: 1})
	u.Workload = shop(true)
	if res := Run(t.Context(), shopkeeper().env(), u, nil); res.Failure == nil || !strings.Contains(res.Failure.Message, "let each user keep its own") {
		t.Errorf("failure %+v, want one that says what to do", res.Failure)
	}
	u.Workload = &wire.Workload{}
	if res := Run(t.Context(), shopkeeper().env(), u, nil); res.Failure == nil || !strings.Contains(res.Failure.Message, "unit u") {
		t.Errorf("failure %+v, want one of the workload", res.Failure)
	}
}
