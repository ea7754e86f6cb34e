package lead

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/agent/wire"
)

// An agent's leave ends with the lead it came from, whenever it asks.
func TestGrantEndsWithTheLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		shortest := time.Hour
		for range 200 {
			time.Sleep(171 * time.Millisecond)
			g, err := w.ask(wire.Ask{})
			if err != nil || g.Generation != 1 || g.Denied != "" || g.Metered {
				t.Fatalf("grant %+v, %v", g, err)
			}
			if left := c.left(); g.TTL > wire.LeaseTTL || g.TTL > left {
				t.Fatalf("granted %v of a lead that lasts %v", g.TTL, left)
			}
			shortest = min(shortest, g.TTL)
		}
		if shortest < 2*wire.LeaseTTL/3-lookEvery {
			t.Errorf("granted %v only, want two thirds of the TTL at least", shortest)
		}
	})
}

// spend asks as three agents do, until most calls are granted or none will be.
func (w *world) spend(most int64) (total int64, spent bool) {
	w.t.Helper()
	held := map[string]int64{}
	for i := 0; total < most; i++ {
		a := wire.Ask{Agent: fmt.Sprint("a", i%3), Calls: 40}
		if i%7 == 5 {
			a.Returned = min(3, held[a.Agent])
		}
		g, err := w.ask(a)
		if err != nil || !g.Metered || g.TTL <= 0 || g.Calls > a.Calls || (g.Calls == 0) != (g.Wait > 0 || g.Spent != "") {
			w.t.Fatalf("grant %+v, %v", g, err)
		}
		total += g.Calls - a.Returned
		held[a.Agent] += g.Calls - a.Returned
		if g.Spent != "" {
			return total, true
		}
		time.Sleep(g.Wait)
	}
	return total, false
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	for _, budget := range []int64{1, 2, 19, 1000} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.create(func(o *Options) { o.MaxCalls = budget })
				total, spent := w.spend(math.MaxInt64)
				if !spent || total != budget {
					t.Errorf("granted %d of %d calls", total, budget)
				}
				if g, err := w.ask(wire.Ask{Calls: 1}); err != nil || g.Calls != 0 || g.Spent != budgetSpent {
					t.Errorf("grant %+v, %v behind the budget", g, err)
				}
				if g, err := w.ask(wire.Ask{}); err != nil || g.Spent != "" || g.TTL <= 0 {
					t.Errorf("grant %+v, %v; whoever wants no calls keeps its lease", g, err)
				}
			})
		})
	}
}

// Whatever a dead controller has granted was written down before.
func TestBudgetSurvivesItsController(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const budget, lives = 1000, 6
		c := w.create(func(o *Options) { o.MaxCalls = budget })
		total := int64(0)
		for range lives - 1 {
			n, _ := w.spend(90)
			total += n
			c.kill()
			b, k := w.connect("heir")
			l, r, err := Take(t.Context(), "r1", Options{Bus: b, MaxCalls: budget})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			if r.Granted < total {
				t.Fatalf("the record says %d calls were granted, it were %d", r.Granted, total)
			}
			c = &controller{l, b, k}
		}
		n, spent := w.spend(math.MaxInt64)
		if total += n; !spent || total > budget || total < budget-(lives-1)*budget/blocks {
			t.Errorf("granted %d of %d calls over %d lives", total, budget, lives)
		}
	})
}

func TestNothingIsGrantedThatIsNotWrittenDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const budget = 1000
		w.create(func(o *Options) { o.MaxCalls = budget })
		w.dropRuns() // nothing can be written any more
		if n, _ := w.spend(budget / blocks); n != budget/blocks {
			t.Errorf("%d calls granted, %d were written down", n, budget/blocks)
		}
		if g, err := w.ask(wire.Ask{Calls: 10}); err != nil || g.Calls != 0 || g.Wait != reserveWait || g.Spent != "" {
			t.Errorf("grant %+v, %v; want a short wait", g, err)
		}
	})
}

func TestQuotaPausesTheFleetOncePerEpisode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(func(o *Options) { o.Rate = func() float64 { return 100 } })
		heard := w.controls()
		begun := time.Now()
		for i := range 4 { // four agents are refused by the same window
			g, err := w.ask(wire.Ask{Agent: fmt.Sprint("a", i), Calls: 5,
				Quota: &wire.QuotaSignal{RetryAfter: 2 * time.Second, Age: time.Duration(i) * 10 * time.Millisecond}})
			if err != nil || !g.Metered || g.Calls != 0 || g.Wait < 2*time.Second-time.Since(begun) {
				t.Fatalf("grant %+v, %v; want no calls during the pause", g, err)
			}
		}
		synctest.Wait()
		if c := <-heard; c.Kind != wire.Quota || c.Pause < 1900*time.Millisecond || c.Pause > 2*time.Second || c.Generation != 1 {
			t.Errorf("control %+v", c)
		}
		if len(heard) != 0 {
			t.Errorf("%d further messages, want none", len(heard))
		}
		time.Sleep(2 * time.Second)
		granted := int64(0)
		for range 100 { // 10 s of four agents that want more than there is
			for i := range 4 {
				g, err := w.ask(wire.Ask{Agent: fmt.Sprint("a", i), Calls: 50})
				if err != nil || !g.Metered {
					t.Fatalf("grant %+v, %v", g, err)
				}
				granted += g.Calls
			}
			time.Sleep(100 * time.Millisecond)
		}
		if granted < 400 || granted > 1000 {
			t.Errorf("%d calls granted in 10 s behind a refusal at 100/s", granted)
		}
	})
}

func TestLostAgentLeavesItsShare(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(func(o *Options) { o.MaxCalls = 1000 })
		for i := range 4 {
			if _, err := w.ask(wire.Ask{Agent: fmt.Sprint("a", i), Calls: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for i := 1; i < 4; i++ {
			c.AgentGone(fmt.Sprint("a", i))
		}
		if g, err := w.ask(wire.Ask{Agent: "a0", Calls: 1000}); err != nil || g.Calls != 46 {
			t.Errorf("granted %d, %v; want all that is reserved, as it is alone", g.Calls, err)
		}
	})
}
