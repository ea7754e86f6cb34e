package agent

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) fleet() *bus.Fleet {
	w.t.Helper()
	f, err := w.bus.Fleet(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(f.Close)
	return f
}

// seen is an agent's entry in the registry.
func seen(f *bus.Fleet, id string) (bus.Seen, bool) {
	for _, s := range f.Agents() {
		if s.ID == id {
			return s, true
		}
	}
	return bus.Seen{}, false
}

func TestDrainedAgentFinishesItsUnit(t *testing.T) {
	w := newWorld(t)
	fleet := w.fleet()
	hold := make(chan struct{})
	s := llmtest.New(t, func(llmtest.Request) llmtest.Answer { <-hold; return llmtest.Answer{} })
	stop := w.agent(Options{ID: "a1", Drain: patience})
	w.publish(chatUnit("u1", s.URL, 2, 10), chatUnit("u2", s.URL, 2, 10))
	began := w.event(wire.Began)
	eventually(t, "a call", func() bool { _, n := lastCall(s); return n > 0 })
	var stopping sync.WaitGroup
	stopping.Go(stop)
	eventually(t, "the registry to say that it drains", func() bool {
		h, ok := seen(fleet, "a1")
		return ok && h.Draining && h.Load.Unit == began.Unit && h.Load.Run == "r1"
	})
	if f := w.prepare("a1", mockUnit("share", 10)); f == nil || f.Class == "harness" {
		t.Errorf("a share while draining: %+v, want it refused", f)
	}
	close(hold)
	if r := w.result(); r.Unit != began.Unit || r.Partial || r.Calls != 10 {
		t.Errorf("result %+v, want %s whole", r, began.Unit)
	}
	stopping.Wait()
	if _, there := seen(fleet, "a1"); there {
		eventually(t, "it to leave the registry", func() bool { _, there := seen(fleet, "a1"); return !there })
	}
	if d := w.next(5 * time.Second); d == nil || d.Unit.ID == began.Unit || d.Incarnation != 1 {
		t.Errorf("next %+v, want the other unit, untouched", d)
	}
}

func TestDrainedAgentFinishesItsShare(t *testing.T) {
	w := newWorld(t)
	stop := w.agent(Options{ID: "a1", Drain: patience})
	w.prepared("a1", mockUnit("u1", 10))
	var stopping sync.WaitGroup
	stopping.Go(stop)
	w.start("r1", "g1")
	if r := w.result(); r.Unit != "u1" || r.Partial || r.Failure != nil {
		t.Errorf("result %+v, want the share whole", r)
	}
	stopping.Wait()
}

// What is not finished in time goes back, as it does at once without a time.
func TestStoppedAgentGivesItsUnitBack(t *testing.T) {
	for _, drain := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(drain.String(), func(t *testing.T) {
			w := newWorld(t)
			fleet := w.fleet()
			stop := w.agent(Options{ID: "a1", Drain: drain})
			s := llmtest.New(t, slowly(time.Millisecond))
			w.publish(chatUnit("u1", s.URL, 2, endless))
			eventually(t, "calls", func() bool { _, n := lastCall(s); return n > 10 })
			begun := time.Now()
			stop()
			if took := time.Since(begun); took < drain || took > drain+2*time.Second {
				t.Errorf("stopped after %v, want %v and a moment", took, drain)
			}
			if e := w.event(wire.Returned); e.Unit != "u1" {
				t.Errorf("event %+v, want u1 returned", e)
			}
			eventually(t, "it to leave the registry", func() bool { return len(fleet.Agents()) == 0 })
			select {
			case r := <-w.results:
				t.Fatalf("a result of a unit that another agent can work whole: %+v", r)
			default:
			}
			if d := w.next(time.Second); d == nil || d.Incarnation != 2 {
				t.Errorf("Next = %+v; want the unit again, at once", d)
			}
		})
	}
}

// A gang that loses a member in mid-air begins again without it: half a share
// would only be taken for a whole one.
func TestStoppedAgentSaysNothingOfItsShare(t *testing.T) {
	w := newWorld(t)
	stop := w.agent(Options{ID: "a1"})
	w.prepared("a1", mockUnit("u1", endless))
	samples := make(chan wire.Progress, 1000)
	w.until(w.bus.OnProgress("r1", func(p wire.Progress) { samples <- p }))
	w.start("r1", "g1")
	receive(t, samples, "sample")
	stop()
	if _, err := w.bus.Ask(t.Context(), "a1", wire.Request{Kind: wire.Ping}); err == nil {
		t.Error("the agent still answers")
	}
	select {
	case r := <-w.results:
		t.Errorf("result %+v, want none", r)
	case <-time.After(100 * time.Millisecond):
	}
}

// Shares that arrive while the agent stops are refused or waited for.
func TestPrepareWhileStopping(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		a := w.bare()
		var callers, loops sync.WaitGroup
		for j := range 4 {
			callers.Go(func() { a.prepare(mockUnit(fmt.Sprintf("u%d-%d", i, j), 10)) })
		}
		a.drain(&loops)
		callers.Wait()
		if len(a.shares) != 0 || a.freed != nil {
			t.Errorf("%d shares left, busy %v", len(a.shares), a.freed != nil)
		}
		if f := a.prepare(mockUnit("late", 10)); f == nil || f.Message != ErrStopped.Error() {
			t.Errorf("a share after stop: %+v, want it refused", f)
		}
	}
}

// stuck is a target that does not close until it is let go.
type stuck struct {
	target.Target
	entered, leave chan struct{}
}

func (s *stuck) Close(context.Context) error {
	close(s.entered)
	<-s.leave
	return nil
}

func TestReleaseOfOneRunDoesNotDelayAnother(t *testing.T) {
	w := newWorld(t)
	a := w.bare()
	s := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
	slow, err := a.runs.enter("slow", 1)
	if err != nil {
		t.Fatal(err)
	}
	o := slow.slot("t")
	o.once.Do(func() { o.target, o.err = s, nil })
	w.until(a.bus.OnControl(a.control))
	other, err := a.runs.enter("r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	work, err := other.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer work.end()
	w.control("slow", wire.Control{Kind: wire.Release})
	<-s.entered
	w.control("r1", wire.Control{Kind: wire.Halt, Reason: "test"})
	select {
	case <-work.ctx.Done():
	case <-time.After(5 * time.Second):
		t.Error("the halt waits for the other run's target")
	}
	close(s.leave)
	a.closing.Wait() // and the agent waits for the close
}

// A server that takes long to start holds nothing but its own unit.
func TestOpeningDoesNotHoldTheRun(t *testing.T) {
	w := newWorld(t)
	a := w.bare()
	r, err := a.runs.enter("r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	work, err := r.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer work.end()
	slow := wire.Target{Kind: wire.MCP, Transport: wire.Stdio, Command: []string{"sleep", "60"}, StartTimeout: time.Minute, StopGrace: 100 * time.Millisecond}
	opened := make(chan error, 1)
	go func() {
		_, _, err := r.target(work.ctx, slow)
		opened <- err
	}()
	eventually(t, "the target to be opened", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.targets) > 0
	})
	done := make(chan struct{})
	go func() {
		a.control("r1", wire.Control{Kind: wire.Go, Gang: "g1", Generation: 1})
		a.control("r1", wire.Control{Kind: wire.Release, Generation: 1})
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("control waits for the server to start")
	}
	if err := <-opened; err == nil {
		t.Error("opened a server that says nothing")
	}
	a.closing.Wait()
	if _, _, err := r.target(context.Background(), wire.Target{Kind: wire.Mock}); err == nil {
		t.Error("a closed run opened a target, which nobody would close")
	}
}
