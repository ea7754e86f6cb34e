package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/probe"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

func TestGangWaitsForGo(t *testing.T) {
	w := newWorld(t)
	for i, id := range []string{"a1", "a2"} {
		w.agent(Options{ID: id})
		u := mockUnit(id, 10)
		u.Load.FirstWorker, u.Load.Level = i, 2
		w.prepared(id, u)
	}
	w.start("r1", "another")
	select {
	case r := <-w.results:
		t.Fatalf("%s worked before go", r.Agent)
	case <-time.After(50 * time.Millisecond):
	}
	due := time.Now().Add(100 * time.Millisecond).UnixNano()
	w.control("r1", wire.Control{Kind: wire.Go, Gang: "g1", At: due})
	w.control("r1", wire.Control{Kind: wire.Go, Gang: "g1", At: due + int64(time.Hour)}) // once is enough
	calls := map[string]int64{}
	for range 2 {
		r := w.result()
		calls[r.Agent] = r.Tally.Calls()
		if r.Start == nil || r.Start.Due != due || r.Start.At < due || r.Failure != nil || r.Incarnation != 1 {
			t.Errorf("%s: start %+v, failure %v; want it at %d", r.Agent, r.Start, r.Failure, due)
		}
	}
	if calls["a1"] == 0 || calls["a2"] == 0 {
		t.Errorf("calls by agent %v, want both to have worked", calls)
	}
}

// Clocks of a fleet differ; the offsets that its controller has measured make up
// for it. The figure is that of 32 agents in one process, which wake up on the
// same few cores at the same moment. How late this machine wakes up as many
// threads that do nothing else is not the agents' doing.
func TestGangStartsTogether(t *testing.T) {
	const agents, rounds, tries = 32, 10, 5
	w := newWorld(t)
	s := llmtest.New(t, slowly(0))
	skews := map[string]time.Duration{}
	offsets := map[string]int64{}
	for i := range agents {
		id := fmt.Sprintf("a%d", i)
		skews[id] = time.Duration(rand.Int64N(int64(600*time.Millisecond))) - 300*time.Millisecond
		offsets[id] = int64(skews[id])
		w.agent(Options{ID: id, Skew: skews[id]})
	}
	var p99, idle time.Duration
	for try := range tries {
		var late, bare []time.Duration
		for round := range rounds {
			late = append(late, w.gangStart(fmt.Sprintf("g%d-%d", try, round), s.URL, offsets)...)
			bare = append(bare, wakeUp(t, agents)...)
		}
		slices.Sort(late)
		slices.Sort(bare)
		p99, idle = late[len(late)*99/100], bare[len(bare)*99/100]
		t.Logf("%d starts: p50 %v, p99 %v after they were due; threads that do nothing: p50 %v, p99 %v",
			len(late), late[len(late)/2], p99, bare[len(bare)/2], idle)
		if late[0] < 0 {
			t.Fatalf("a start %v before it was due", -late[0])
		}
		if p99 < time.Millisecond || p99-idle < time.Millisecond {
			return
		}
	}
	t.Errorf("p99 %v in %d tries, where doing nothing takes %v; want at most 1 ms more", p99, tries, idle)
}

// wakeUp is how late n threads wake up that wait for one moment.
func wakeUp(t *testing.T, n int) []time.Duration {
	t.Helper()
	late := make([]time.Duration, n)
	due := time.Now().Add(wire.StartLead)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := probe.SleepUntil(t.Context(), due); err != nil {
				t.Error(err)
			}
			late[i] = time.Since(due)
		})
	}
	wg.Wait()
	return late
}

// gangStart starts a gang of all agents at a constant arrival rate, and returns
// how long after the due time, on the controller's clock, each of them began.
func (w *world) gangStart(gang, url string, offsets map[string]int64) (late []time.Duration) {
	w.t.Helper()
	var ready sync.WaitGroup
	part := 0
	for id := range offsets {
		u := chatUnit(gang+"-"+id, url, 1, uint64(len(offsets)))
		u.Gang, u.Load.MilliRate, u.Load.Part, u.Load.Parts = gang, 1_000_000, part, len(offsets)
		part++
		ready.Go(func() { w.prepared(id, u) })
	}
	ready.Wait()
	due := time.Now().Add(2 * wire.StartLead)
	w.control("r1", wire.Control{Kind: wire.Go, Gang: gang, At: due.UnixNano(), Offsets: offsets})
	for range offsets {
		r := w.result()
		if r.Start == nil {
			w.t.Fatalf("%s: no start: %+v", r.Agent, r.Failure)
		}
		late = append(late, time.Duration(r.Start.At-offsets[r.Agent]-due.UnixNano()))
	}
	return late
}

func TestPingReadsTheAgentsClock(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1", Skew: time.Hour})
	ready, err := w.bus.Ask(t.Context(), "a1", wire.Request{Kind: wire.Ping})
	if off := time.Duration(ready.Clock-time.Now().UnixNano()) - time.Hour; err != nil || off.Abs() > 100*time.Millisecond {
		t.Errorf("off by %v, %v", off, err)
	}
}

func TestLateGo(t *testing.T) {
	for _, r := range []struct {
		name    string
		late    time.Duration
		refused bool
	}{{"StartsAtOnce", 500 * time.Millisecond, false}, {"IsRefused", 1500 * time.Millisecond, true}} {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld(t)
			w.agent(Options{ID: "a1"})
			w.prepared("a1", mockUnit("u1", 10))
			due := time.Now().Add(-r.late).UnixNano()
			w.control("r1", wire.Control{Kind: wire.Go, Gang: "g1", At: due})
			res := w.result()
			refused := res.Failure != nil && strings.Contains(res.Failure.Message, "after the start")
			if refused != r.refused || !refused && time.Duration(res.Start.At-due) < r.late {
				t.Errorf("failure %+v, start %+v", res.Failure, res.Start)
			}
		})
	}
}

func TestBusyAgentSaysSoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.lead("r2", 1)
	w.agent(Options{ID: "a1"})
	mine, other := mockUnit("u1", 10), mockUnit("u1", 10)
	other.Run = "r2"
	w.prepared("a1", mine)
	begun := time.Now()
	if f := w.prepare("a1", other); f == nil || f.Class != wire.Busy || time.Since(begun) > time.Second {
		t.Fatalf("after %v: %+v; want busy at once", time.Since(begun), f)
	}
	w.abort("a1", mine)
	w.prepared("a1", other) // free again
	w.abort("a1", other)
	w.prepared("a1", mine)
	w.start("r1", "g1")
	if r := w.result(); r.Failure != nil || r.Partial || len(w.results) != 0 {
		t.Errorf("result %+v, want one of the share that was not taken back", r)
	}
}

// An attempt that has lost a member is given up by the others in the middle.
func TestAbortStopsTheLoad(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	s := llmtest.New(t, slowly(time.Millisecond))
	u := chatUnit("u1", s.URL, 4, endless)
	w.prepared("a1", u)
	w.start("r1", "g1")
	eventually(t, "calls", func() bool { _, n := lastCall(s); return n > 20 })
	w.abort("a1", u)
	_, before := settledCalls(s)
	w.prepared("a1", mockUnit("u2", 10)) // free at once
	w.start("r1", "g1")
	if r := w.result(); r.Unit != "u2" {
		t.Errorf("result of %s, want none of the aborted share", r.Unit)
	}
	if _, n := lastCall(s); n != before {
		t.Errorf("%d calls after the abort", n-before)
	}
}

// Whoever cannot hold the callers says so, instead of measuring itself.
func TestShareBeyondCapacity(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1", Capacity: 10})
	u := mockUnit("u1", 100)
	u.Load.Workers, u.Load.Level = 11, 11
	if f := w.prepare("a1", u); f == nil || f.Class != "capacity" || !strings.Contains(f.Message, "holds 10 callers, not 11") {
		t.Errorf("failure %+v, want the capacity", f)
	}
	u.Load.Workers = 10
	w.prepared("a1", u)
}

// A share whose lease runs out is published as what it is: nobody else has the
// other half of it.
func TestShareWithoutLeaseIsPartial(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.TTL = 500 * time.Millisecond })
	w.agent(Options{ID: "a1"})
	s := llmtest.New(t, slowly(time.Millisecond))
	w.prepared("a1", chatUnit("u1", s.URL, 2, endless))
	w.start("r1", "g1")
	eventually(t, "calls", func() bool { _, n := lastCall(s); return n > 20 })
	w.boss.change(func(b *boss) { b.mute = true })
	if r := w.result(); !r.Partial || r.Released != wire.ByLease || r.Tally.Outcomes[metrics.OK] == 0 {
		t.Errorf("partial %v, released by %q, %v; want what was measured until the lease ran out", r.Partial, r.Released, r.Tally.Outcomes)
	}
}

// Nothing of a run that nobody leads is prepared; whoever leads it and was away for
// a moment may ask again.
func TestShareWithoutController(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	u := mockUnit("u1", 10)
	u.Run = "orphan"
	if f := w.prepare("a1", u); f == nil || f.Class != wire.Busy || !strings.Contains(f.Message, "no controller") {
		t.Errorf("failure %+v, want that nobody leads the run", f)
	}
	w.prepared("a1", mockUnit("u2", 10)) // and it is free again
}

func TestOddRequests(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	for _, r := range []wire.Request{{Kind: wire.Prepare}, {Kind: "dance", Unit: mockUnit("u1", 1)}} {
		if ready, err := w.bus.Ask(t.Context(), "a1", r); err != nil || ready.Failure == nil {
			t.Errorf("%s: %+v, %v; want a failure", r.Kind, ready, err)
		}
	}
}
