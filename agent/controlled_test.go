package agent

import (
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
)

// slowly answers every chat after d.
func slowly(d time.Duration) llmtest.Plan {
	return func(llmtest.Request) llmtest.Answer {
		time.Sleep(d)
		return llmtest.Answer{}
	}
}

// lastCall is when the endpoint saw its last request.
func lastCall(s *llmtest.Server) (at time.Time, calls int) {
	journal := s.Journal()
	for _, e := range journal {
		if e.Received.After(at) {
			at = e.Received
		}
	}
	return at, len(journal)
}

// A controller that falls silent is obeyed for the rest of its lease, and not a
// call longer; the unit goes back, and is worked once there is leave again.
func TestSilentControllerStopsCalls(t *testing.T) {
	const ttl, travel = 700 * time.Millisecond, 50 * time.Millisecond // of the last call to its target, on a busy machine
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.TTL = ttl })
	s := llmtest.New(t, slowly(2*time.Millisecond))
	w.agent(Options{ID: "a1"})
	w.publish(chatUnit("u1", s.URL, 4, endless))
	for range 5 {
		receive(t, w.boss.heard, "renewal")
	}
	w.boss.change(func(b *boss) { b.mute = true })
	last := time.Now() // the last ask that was answered was sent before
	if e := w.event(wire.Returned); e.Unit != "u1" || !strings.Contains(e.Reason, "lease") {
		t.Errorf("event %+v, want the unit returned for the lease", e)
	}
	at, calls := lastCall(s)
	if over := at.Sub(last); over > ttl+travel || calls == 0 {
		t.Errorf("the last of %d calls came %v after the last grant, want at most %v", calls, over, ttl)
	}
	select {
	case r := <-w.results:
		t.Fatalf("a part was published: %+v", r)
	default:
	}
	w.boss.change(func(b *boss) { b.mute = false })
	if e := w.event(wire.Began); e.Incarnation < 2 {
		t.Errorf("event %+v, want the unit begun again", e)
	}
	eventually(t, "more calls", func() bool { _, n := lastCall(s); return n > calls+4 })
	w.control("r1", wire.Control{Kind: wire.Halt})
	if r := w.result(); r.Incarnation < 2 || r.Calls == 0 {
		t.Errorf("incarnation %d with %d calls, want the unit worked", r.Incarnation, r.Calls)
	}
}

// A unit whose run has no controller rests for a while and is not begun.
func TestUnitWithoutControllerGoesBack(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	u := mockUnit("u1", 10)
	u.Run = "orphan"
	events := make(chan wire.Event, 100)
	w.until(w.bus.OnEvent("orphan", func(e wire.Event) { events <- e }))
	begun := time.Now()
	w.publish(u)
	for n := range 2 {
		if e := receive(t, events, "event"); e.Kind != wire.Declined || e.Incarnation != uint64(n+1) {
			t.Errorf("event %+v, want delivery %d declined", e, n+1)
		}
	}
	if took := time.Since(begun); took < returnDelay {
		t.Errorf("handed out twice within %v, want %v in between", took, returnDelay)
	}
	boss := w.lead("orphan", 1)
	e := receive(t, events, "event")
	for e.Kind == wire.Declined { // said again to the controller, or once more before it answered
		e = receive(t, events, "event")
	}
	if e.Kind != wire.Began {
		t.Errorf("event %+v, want it begun under a controller", e)
	}
	receive(t, boss.heard, "ask")
}

// A run that its controller has closed is dropped: its unit is gone, and nothing
// of it stays open.
func TestDeniedUnitIsDropped(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.Denied = "the run was halted" })
	a := w.bare()
	w.publish(mockUnit("u1", 10))
	a.take()
	a.serve(w.next(time.Second))
	if len(a.runs.byID) != 0 || a.freed != nil {
		t.Errorf("%d runs open, busy %v; want none", len(a.runs.byID), a.freed != nil)
	}
	if d := w.next(200 * time.Millisecond); d != nil {
		t.Errorf("the unit came again: %+v", d)
	}
	if f := a.prepare(mockUnit("u2", 10)); f == nil || f.Class != "cancelled" || !strings.Contains(f.Message, "halted") {
		t.Errorf("a share of it: %+v, want it refused with the reason", f)
	}
}

// Whoever was replaced is not obeyed: neither its controls nor its units nor its
// grants, and its requests are refused.
func TestHigherGenerationFences(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant = wire.Grant{Generation: 2, TTL: 600 * time.Millisecond} })
	s := llmtest.New(t, slowly(2*time.Millisecond))
	w.agent(Options{ID: "a1"})
	u := chatUnit("u1", s.URL, 1, endless)
	u.Gen = 2
	w.publish(u)
	w.event(wire.Began)
	for _, kind := range []string{wire.Halt, wire.Release} {
		w.control("r1", wire.Control{Kind: kind, Generation: 1, Reason: "test"})
	}
	if f := w.prepare("a1", mockUnit("u2", 10)); f == nil || !strings.Contains(f.Message, "replaced") {
		t.Errorf("a share of generation 1: %+v, want it refused", f)
	}
	w.abort("a1", mockUnit("u1", 10))
	_, before := lastCall(s)
	eventually(t, "more calls", func() bool { _, n := lastCall(s); return n > before+20 })
	w.boss.change(func(b *boss) { b.grant.Generation = 1 }) // and now it answers, too
	if e := w.event(wire.Returned); e.Unit != "u1" || !strings.Contains(e.Reason, "lease") {
		t.Errorf("event %+v, want the lease to run out", e)
	}
	select {
	case r := <-w.results:
		t.Errorf("result %+v, want none", r)
	default:
	}
}

// What an earlier controller has queued its successor finds queued: it is worked
// under the successor's lease, and only under that.
func TestUnitOfAnEarlierControllerIsWorked(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.Generation = 2 })
	w.agent(Options{ID: "a1"})
	u := mockUnit("u1", 10)
	u.Gen = 2
	w.publish(u)
	w.result()
	w.publish(mockUnit("u2", 10)) // of generation 1
	if r := w.result(); r.Unit != "u2" || r.Calls != 10 {
		t.Errorf("result %+v, want the earlier controller's unit worked", r)
	}
}

// A halt ends with what was measured, though the denial of further leave that
// comes with it may be heard first.
func TestDenialBeforeHalt(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.TTL = 300 * time.Millisecond })
	w.agent(Options{ID: "a1"})
	s := llmtest.New(t, slowly(time.Millisecond))
	w.publish(chatUnit("u1", s.URL, 2, endless))
	eventually(t, "calls", func() bool { _, n := lastCall(s); return n > 10 })
	w.boss.change(func(b *boss) {
		b.plan = func(wire.Ask) wire.Grant {
			b.plan = nil
			time.AfterFunc(haltLag/10, func() { _ = w.bus.Control("r1", wire.Control{Kind: wire.Halt, Generation: 1}) })
			return wire.Grant{Generation: 1, TTL: time.Second, Denied: "halted"}
		}
	})
	if r := w.result(); !r.Partial || r.Calls == 0 {
		t.Errorf("result %+v, want what was measured", r)
	}
}

// Work that was on its way when its run ended is not done.
func TestReleasedRunIsNotWorked(t *testing.T) {
	w := newWorld(t)
	a := w.bare()
	a.control("r1", wire.Control{Kind: wire.Release, Generation: 1})
	w.publish(mockUnit("u1", 10))
	a.take()
	a.serve(w.next(time.Second))
	if d := w.next(100 * time.Millisecond); d != nil {
		t.Errorf("the unit came again: %+v", d)
	}
	if f := a.prepare(mockUnit("u2", 10)); f == nil || f.Class != "cancelled" {
		t.Errorf("a late prepare: %+v, want it refused", f)
	}
	a.control("r1", wire.Control{Kind: wire.Halt, Generation: 1})
	if len(a.runs.byID) != 0 || len(w.results) != 0 {
		t.Errorf("%d runs, %d results, want none", len(a.runs.byID), len(w.results))
	}
}
