package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/testdata/fleettest"
)

// member is a hand-made agent of a gang.
type member struct {
	w        *world
	id       string
	capacity int
	bus      *bus.Bus
	skew     time.Duration
	ready    func(wire.Request) *wire.Failure // nil = always ready
	onGo     func(m *member, c wire.Control)  // nil = works its share
	mu       sync.Mutex
	shares   map[string]wire.Unit // gang → share
}

// join announces a member and lets it answer.
func (w *world) join(m *member) *member {
	w.t.Helper()
	m.w, m.bus, m.shares = w, w.connect(), map[string]wire.Unit{}
	stopRequests, err := m.bus.OnRequest(m.id, m.answer)
	if err != nil {
		w.t.Fatal(err)
	}
	stopControl, err := m.bus.OnControl(func(_ string, c wire.Control) { m.control(c) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { stopControl(); stopRequests() })
	h := hello(m.id)
	h.Capacity = m.capacity
	w.announce(m.bus, h)
	return m
}

// announce returns once the controller knows the agent.
func (w *world) announce(b *bus.Bus, h wire.Hello) {
	w.t.Helper()
	if err := b.Announce(w.t.Context(), h); err != nil {
		w.t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(time.Millisecond) {
		for _, m := range w.d.opt.Roster.All() {
			if m.ID == h.ID {
				return
			}
		}
	}
	w.t.Fatalf("agent %s never showed up", h.ID)
}

func (m *member) answer(r wire.Request) wire.Ready {
	ready := wire.Ready{V: wire.Version, Agent: m.id, Clock: time.Now().Add(m.skew).UnixNano()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Kind != wire.Ping && m.ready != nil {
		ready.Failure = m.ready(r)
	}
	switch {
	case r.Kind == wire.Prepare && ready.Failure == nil:
		m.shares[r.Unit.Gang] = *r.Unit
	case r.Kind == wire.Abort:
		ready.Calls = 5
		delete(m.shares, r.Unit.Gang)
	}
	return ready
}

func (m *member) control(c wire.Control) {
	if c.Kind != wire.Go {
		return
	}
	if m.onGo != nil {
		m.onGo(m, c)
		return
	}
	m.work(c)
}

// work publishes the result of a share at once.
func (m *member) work(c wire.Control) {
	m.mu.Lock()
	u, ok := m.shares[c.Gang]
	m.mu.Unlock()
	if !ok {
		return
	}
	due := c.At + c.Offsets[m.id]
	err := m.bus.PublishResult(context.WithoutCancel(m.w.t.Context()), &wire.Result{V: wire.Version, Run: u.Run, Stage: u.Stage, Unit: u.ID, Agent: m.id,
		Incarnation: 1, Final: true, Start: &wire.Start{Due: due, At: due}})
	if err != nil {
		m.w.t.Error(err)
	}
}

func gang(workers int) *plan.Stage {
	st := stage(1, 0)
	st.Gang, st.Units[0].Load.Workers, st.Units[0].Ops.To = true, workers, 100
	return st
}

func TestGangNeedsAgents(t *testing.T) {
	w := newWorld(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, enough)
	defer cancel()
	if err := w.d.Stage(ctx, gang(1), &took{}); !errors.Is(err, enough) {
		t.Errorf("err %v, want a wait for agents that ends with the run", err)
	}
	w.join(&member{id: "a1"})
	if err := w.d.Stage(t.Context(), gang(1), &took{}); err != nil {
		t.Error(err)
	}
}

// A run whose agents are all gone says so, and ends where it can be resumed.
func TestDesertedRunEnds(t *testing.T) {
	w := newWorld(t)
	w.d.here.close()
	w.d.here.alone = time.Now().Add(-desertWait / 2)
	w.d.here.anybody()
	if said := <-w.warned; !strings.Contains(said, "no agent") {
		t.Errorf("said %q", said)
	}
	w.d.here.alone = time.Now().Add(-2 * desertWait)
	w.d.here.anybody()
	var deserted *Suspended
	if err := w.d.Stage(t.Context(), gang(1), &took{}); !errors.As(err, &deserted) || !strings.Contains(err.Error(), "runs resume r1") {
		t.Errorf("err %v, want one that says how to go on", err)
	}
}

// Clocks that are 600 ms apart start together, and the report says how exactly.
func TestGangStartsTogether(t *testing.T) {
	w := newWorld(t)
	w.join(&member{id: "a1", skew: 300 * time.Millisecond})
	w.join(&member{id: "a2", skew: -300 * time.Millisecond})
	var got took
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || len(got.results) != 2 || got.gang == nil {
		t.Fatalf("%d results, %v", len(got.results), err)
	}
	g := got.gang
	if g.Planned != 4 || g.Achieved != 4 || g.Attempts != 1 || g.Degraded || len(g.Agents) != 2 {
		t.Errorf("gang %+v", g)
	}
	bound := g.Agents[0].Bound + g.Agents[1].Bound
	if s, _, ok := g.Skew(); !ok || s > bound+time.Microsecond {
		t.Errorf("skew %v, %v; both started when due, so it is the error of the clocks: %v at most", s, ok, bound)
	}
	if apart := (g.Agents[0].Offset - g.Agents[1].Offset - 600*time.Millisecond).Abs(); apart > bound+time.Millisecond {
		t.Errorf("offsets %v and %v", g.Agents[0].Offset, g.Agents[1].Offset)
	}
}

// cannot is a member that cannot take any share.
func cannot(id string) *member {
	return &member{id: id, ready: func(wire.Request) *wire.Failure { return &wire.Failure{Class: "unreachable", Message: "no route"} }}
}

// A level begins without a member that cannot take its share, at its full size,
// and says so.
func TestGangBeginsWithoutWhoFailed(t *testing.T) {
	w := newWorld(t)
	w.join(&member{id: "a1"})
	w.join(cannot("a2"))
	var got took
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil {
		t.Fatal(err)
	}
	if g := got.gang; len(got.failed()) != 0 || g.Planned != 4 || g.Achieved != 4 || g.Attempts != 1 || g.Degraded || len(g.Agents) != 1 {
		t.Errorf("failed shares %+v of gang %+v, want all four callers at a1", got.failed(), g)
	}
	if text := <-w.warned; !strings.Contains(text, "begins without a2 (no route)") {
		t.Errorf("warning %q, want who does not take part, and why", text)
	}
}

// Where the others have no room for it, the hole in the level is shown: it is not
// that level.
func TestGangShowsWhoFailed(t *testing.T) {
	w := newWorld(t)
	w.join(&member{id: "a1", capacity: 2})
	w.join(cannot("a2"))
	var got took
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || len(got.results) != 2 || len(got.planned) != 2 {
		t.Fatalf("%d results of %d shares, %v", len(got.results), len(got.planned), err)
	}
	if failed := got.failed(); len(failed) != 1 || failed[0].Agent != "a2" || got.gang.Achieved != 2 || !got.gang.Degraded || !slices.Equal(got.gang.Lost, []string{"a2"}) {
		t.Errorf("failed shares %+v of gang %+v, want that of a2, and the level degraded", failed, got.gang)
	}
}

// Nobody is ready: that is no smaller level but none.
func TestGangOfNobody(t *testing.T) {
	w := newWorld(t)
	w.join(cannot("a1"))
	w.join(cannot("a2"))
	var got took
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || len(got.failed()) != 2 || got.gang.Achieved != 0 || got.gang.Degraded {
		t.Errorf("%v, failed shares %+v of gang %+v; want both", err, got.failed(), got.gang)
	}
}

// An attempt that loses a member counts for nothing: the level is repeated with
// those that are left, at its full size.
func TestLostMemberRepeatsTheLevel(t *testing.T) {
	for name, lose := range map[string]func(m *member, c wire.Control){
		"Killed":   func(m *member, _ wire.Control) { go m.bus.Close() },
		"Finished": func(m *member, c wire.Control) { m.work(c); go m.bus.Close() }, // its result is in: nothing is lost
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.join(&member{id: "a1", onGo: func(m *member, c wire.Control) {
				if strings.HasSuffix(c.Gang, "-a1") && name == "Killed" {
					return // it would work on for ever
				}
				m.work(c)
			}})
			w.join(&member{id: "a2", onGo: lose})
			var got took
			if err := w.d.Stage(t.Context(), gang(4), &got); err != nil {
				t.Fatal(err)
			}
			g := got.gang
			if name == "Finished" {
				if g.Attempts != 1 || g.Achieved != 4 || len(g.Lost) != 0 {
					t.Errorf("gang %+v, want one whole attempt", g)
				}
				return
			}
			want := merge.Gang{Name: "s00-a2", Attempts: 2, Planned: 4, Achieved: 4, Lost: []string{"a2"}, Repeated: 12} // 5 the survivor says, 7 are known of the lost one
			plain := *g
			plain.Agents = nil
			if diff := cmp.Diff(want, plain); diff != "" {
				t.Errorf("gang (-want +got):\n%s", diff)
			}
			if len(g.Agents) != 1 || g.Agents[0].Workers != 4 {
				t.Errorf("agents %+v, want a1 with all four callers", g.Agents)
			}
		})
	}
}

// When the repetition loses a member too, what the others did is reported, as
// what it is.
func TestSecondLossDegradesTheLevel(t *testing.T) {
	w := newWorld(t)
	w.join(&member{id: "a1", onGo: func(m *member, c wire.Control) {
		if !strings.HasSuffix(c.Gang, "-a1") {
			m.work(c)
		}
	}})
	w.join(&member{id: "a2", onGo: func(m *member, c wire.Control) { go m.bus.Close() }})
	w.join(&member{id: "a3", onGo: func(m *member, c wire.Control) {
		if !strings.HasSuffix(c.Gang, "-a1") {
			go m.bus.Close()
		}
	}})
	var got took
	if err := w.d.Stage(t.Context(), gang(6), &got); err != nil {
		t.Fatal(err)
	}
	g := got.gang
	if !g.Degraded || g.Attempts != 2 || g.Planned != 6 || g.Achieved != 3 || len(g.Lost) != 2 {
		t.Errorf("gang %+v; want it degraded with half of its callers", g)
	}
	if failed := got.failed(); len(failed) != 1 || failed[0].Failure.Class != lostClass || failed[0].Agent != "a3" {
		t.Errorf("failed %+v, want the share of a3", failed)
	}
}

// A member that hangs is lost once its lease must be over.
func TestSilentMemberIsLost(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.LeaseTTL = time.Second })
	hang := make(chan struct{})
	silent := &member{id: "a2"}
	silent.onGo = func(m *member, _ wire.Control) { // answers nothing any more
		m.mu.Lock()
		go func() { <-hang; m.mu.Unlock() }()
	}
	w.join(&member{id: "a1", onGo: func(m *member, c wire.Control) {
		if !strings.HasSuffix(c.Gang, "-a1") {
			m.work(c)
		}
	}})
	w.join(silent)
	t.Cleanup(func() { close(hang) })
	var got took
	if err := w.d.Stage(t.Context(), gang(2), &got); err != nil || got.gang.Attempts != 2 || got.gang.Achieved != 2 {
		t.Errorf("gang %+v, %v", got.gang, err)
	}
}

// While the controller is not sure to lead its own connection may be the one that is
// lost: what it did not hear meanwhile is no silence of a member.
func TestMemberIsNotLostBehindACut(t *testing.T) {
	var unsure atomic.Bool
	w := newWorld(t, func(o *Options) { o.LeaseTTL, o.Sure = time.Second, func() bool { return !unsure.Load() } })
	released := make(chan struct{})
	w.join(&member{id: "a1", onGo: func(m *member, c wire.Control) {
		m.mu.Lock() // answers nothing
		unsure.Store(true)
		go func() {
			defer close(released)
			time.Sleep(2500 * time.Millisecond)
			unsure.Store(false)
			time.Sleep(1200 * time.Millisecond) // longer than one ping, shorter than the lease and a third of it
			m.mu.Unlock()
			m.work(c)
		}()
	}})
	var got took
	err := w.d.Stage(t.Context(), gang(2), &got)
	<-released
	if g := got.gang; err != nil || g.Attempts != 1 || len(g.Lost) != 0 || g.Achieved != 2 {
		t.Errorf("gang %+v, %v; want one attempt and nobody lost", g, err)
	}
}

// A run that meets a busy agent holds no other while it waits.
func TestGangLetsGoWhenOneIsBusy(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var log []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, what)
	}
	w.join(&member{id: "a1", ready: func(r wire.Request) *wire.Failure {
		note("a1 " + r.Kind)
		return nil
	}})
	asked := 0
	w.join(&member{id: "a2", ready: func(r wire.Request) *wire.Failure {
		if asked++; asked < 3 {
			note("a2 busy")
			return &wire.Failure{Class: wire.Busy}
		}
		note("a2 " + r.Kind)
		return nil
	}})
	var got took
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || len(got.results) != 2 {
		t.Fatalf("%d results, %v", len(got.results), err)
	}
	want := []string{"a1 prepare", "a2 busy", "a1 abort", "a1 prepare", "a2 busy", "a1 abort", "a1 prepare", "a2 prepare"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An answer that is lost with the controller's connection costs time: the share is
// taken back, and offered again.
func TestGangOffersAgainWhatWasNotHeard(t *testing.T) {
	srv := serve(t, &server.Options{Host: "127.0.0.1", Port: -1})
	cable := fleettest.NewCut(t, srv.Addr().String())
	w := &world{t: t, srv: srv, warned: make(chan string, 100)}
	var err error
	if w.controller, err = bus.Connect(t.Context(), bus.Link{URLs: cable.URL(), Name: "controller"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.controller.Close)
	w.lead()
	var heard []string
	m := w.join(&member{id: "a1"})
	m.ready = func(r wire.Request) *wire.Failure {
		if heard = append(heard, r.Kind); len(heard) == 1 {
			cable.Drop()
			time.AfterFunc(300*time.Millisecond, cable.Heal)
		}
		return nil
	}
	var got took
	begun := time.Now()
	if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || got.gang.Achieved != 4 || len(got.failed()) != 0 {
		t.Errorf("gang %+v, failed shares %+v, %v; want it complete", got.gang, got.failed(), err)
	}
	if took := time.Since(begun); took > wire.PrepareWait/2 {
		t.Errorf("took %v: the answer was waited for, which could not come", took)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if diff := cmp.Diff([]string{wire.Prepare, wire.Abort, wire.Prepare}, slices.Compact(heard)); diff != "" {
		t.Errorf("a1 was asked (-want +got):\n%s", diff)
	}
}

// Without an end of its own the wait for a busy fleet becomes a hole in the level.
func TestGangGivesUpOnABusyFleet(t *testing.T) {
	w := newWorld(t)
	w.join(&member{id: "a1"})
	w.join(&member{id: "a2", ready: func(wire.Request) *wire.Failure { return &wire.Failure{Class: wire.Busy} }})
	st := gang(4)
	token := st.Number("r1", 0)
	a, err := w.d.newAttempt(st, &st.Units[0], token, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.prepare(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(a.open) != 0 || len(a.results) != 2 {
		t.Errorf("%d shares open, results %+v; want both failed", len(a.open), a.results)
	}
}

func TestAgentWithOtherFaultsIsRefused(t *testing.T) {
	w := newWorld(t)
	other := hello("a2")
	other.Digest = "beef"
	w.announce(w.controller, other)
	if _, err := w.d.members(nil); !errors.Is(err, ErrNoAgents) || !strings.Contains(err.Error(), "a2") {
		t.Errorf("err %v, want %v and who was refused", err, ErrNoAgents)
	}
	w.join(&member{id: "a1"})
	if fleet, err := w.d.members(nil); err != nil || len(fleet) != 1 || fleet[0].ID != "a1" {
		t.Errorf("members %+v, %v; want a1 alone", fleet, err)
	}
}

// A second controller takes the attempt that was over, and ends the one that was
// not before it begins its own.
func TestResumedGang(t *testing.T) {
	record := wire.GangRecord{Stage: "latency", Gang: "s00-a1", Attempt: 1, Units: []string{"s00-a1-0", "s00-a1-1"}, Agents: []string{"a1", "a2"},
		Workers: []int{2, 2}, Offsets: []int64{5, -5}, Bounds: []int64{1, 1}}
	result := func(i int) *wire.Result {
		return &wire.Result{V: wire.Version, Run: "r1", Stage: "latency", Unit: fmt.Sprintf("s00-a1-%d", i), Final: true, Start: &wire.Start{At: 100}}
	}
	t.Run("Over", func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			o.Gangs, o.Stored = []wire.GangRecord{record}, map[string]*wire.Result{"s00-a1-0": result(0), "s00-a1-1": result(1)}
		})
		var got took
		if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || len(got.results) != 2 || got.gang.Achieved != 4 || len(got.planned) != 2 {
			t.Errorf("gang %+v, %d results, %v", got.gang, len(got.results), err)
		}
		if s, _, ok := got.gang.Skew(); !ok || s != 10 {
			t.Errorf("skew %v, %v; want that of the recorded clocks", s, ok)
		}
	})
	t.Run("Begun", func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			o.Gangs, o.Stored = []wire.GangRecord{record}, map[string]*wire.Result{"s00-a1-0": result(0)}
		})
		aborted := make(chan string, 4)
		note := func(r wire.Request) *wire.Failure {
			if r.Kind == wire.Abort {
				aborted <- r.Unit.ID
			}
			return nil
		}
		w.join(&member{id: "a1", ready: note})
		w.join(&member{id: "a2", ready: note})
		var got took
		if err := w.d.Stage(t.Context(), gang(4), &got); err != nil || got.planned[0].ID != "s00-a2-0" || got.gang.Achieved != 4 {
			t.Errorf("planned %+v, gang %+v, %v; want a second attempt", got.planned, got.gang, err)
		}
		if len(aborted) != 2 {
			t.Errorf("%d shares of the first attempt were taken back, want 2", len(aborted))
		}
	})
}
