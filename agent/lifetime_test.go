package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/target"
	"ordeal/agent/wire"
)

// Work that was on its way when its run ended is not done.
func TestReleasedRunIsNotWorked(t *testing.T) {
	w := newWorld(t)
	a, queue := w.bare()
	a.control("r1", wire.Control{Kind: wire.Release})
	w.publish(mockUnit("u1", 10))
	d, err := queue.Next(t.Context(), time.Second)
	if err != nil || d == nil {
		t.Fatal(d, err)
	}
	a.serve(t.Context(), d)
	if again, err := queue.Next(t.Context(), 100*time.Millisecond); again != nil || err != nil {
		t.Errorf("the unit came again: %+v, %v", again, err)
	}
	if ready := a.prepare(wire.Prepare{Unit: *mockUnit("u2", 10)}); ready.Failure == nil || ready.Failure.Class != "cancelled" {
		t.Errorf("a late prepare: %+v, want it refused", ready.Failure)
	}
	a.control("r1", wire.Control{Kind: wire.Halt})
	if len(a.runs.byID) != 0 || len(w.results) != 0 {
		t.Errorf("%d runs, %d results, want none", len(a.runs.byID), len(w.results))
	}
}

func TestReleasedRunsAreForgottenInTheEnd(t *testing.T) {
	rs := newRuns()
	for i := range 3 * keptReleased {
		rs.of(fmt.Sprint(i))
		rs.release(fmt.Sprint(i))
	}
	if len(rs.released) != keptReleased || len(rs.byID) != 0 {
		t.Errorf("remembers %d released and %d open runs, want %d and 0", len(rs.released), len(rs.byID), keptReleased)
	}
	if _, ok := rs.of(fmt.Sprint(3*keptReleased - 1)); ok {
		t.Error("the last released run is open again")
	}
}

// Shares that arrive while the agent stops are refused or waited for.
func TestPrepareWhileStopping(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		a, _ := w.bare()
		var callers sync.WaitGroup
		for j := range 4 {
			callers.Go(func() {
				u := mockUnit(fmt.Sprintf("u%d-%d", i, j), 10)
				a.prepare(wire.Prepare{Unit: *u})
			})
		}
		a.stop()
		a.tasks.Wait()
		callers.Wait()
		if len(a.shares) != 0 {
			t.Errorf("%d shares left", len(a.shares))
		}
		if ready := a.prepare(wire.Prepare{Unit: *mockUnit("late", 10)}); ready.Failure == nil || ready.Failure.Message != ErrStopped.Error() {
			t.Errorf("a share after stop: %+v, want it refused", ready.Failure)
		}
		if !a.busy.TryLock() {
			t.Error("a refused share keeps the agent busy")
		}
	}
}

func TestBusyAgentSaysSoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.agent("a1")
	mine, other := mockUnit("u1", 10), mockUnit("u1", 10)
	other.Run = "r2"
	w.prepare("a1", mine)
	begun := time.Now()
	ready, err := w.bus.Prepare(t.Context(), "a1", *other)
	if err != nil || ready.Failure == nil || ready.Failure.Class != wire.Busy || time.Since(begun) > time.Second {
		t.Fatalf("after %v: %+v, %v; want busy at once", time.Since(begun), ready.Failure, err)
	}
	if err := w.bus.Abort(t.Context(), "a1", *mine); err != nil {
		t.Fatal(err)
	}
	w.prepare("a1", other) // free again
	if err := w.bus.Abort(t.Context(), "a1", *other); err != nil {
		t.Fatal(err)
	}
	w.prepare("a1", mine)
	w.control("r1", wire.Control{Kind: wire.Go, Stage: "latency"})
	if r := w.result(); r.Failure != nil || r.Partial || len(w.results) != 0 {
		t.Errorf("result %+v, want one of the share that was not taken back", r)
	}
}

func TestResultBeyondTheServersPayload(t *testing.T) {
	const limit = 4096
	unit := mockUnit("u1", 5000) // some 40 KB of latencies
	check := func(t *testing.T, r *wire.Result) {
		t.Helper()
		if r.Failure == nil || !strings.Contains(r.Failure.Message, "max_payload 4096") || r.Calls != 5000 || !r.Final {
			t.Errorf("failure %+v, %d calls; want a failure that names the limit", r.Failure, r.Calls)
		}
	}
	t.Run("Unit", func(t *testing.T) {
		w := newWorldOf(t, limit)
		w.agent("a1")
		w.publish(unit)
		check(t, w.result())
	})
	t.Run("Share", func(t *testing.T) {
		w := newWorldOf(t, limit)
		w.agent("a1")
		w.prepare("a1", unit)
		w.control("r1", wire.Control{Kind: wire.Go, Stage: "latency"})
		check(t, w.result())
	})
}

func TestBadNamesAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, opt := range []Options{{ID: "a1", Pools: []string{"a b"}}, {ID: "host.example"}, {ID: ""}} {
		told := make(chan error, 1)
		opt.Ready = func(err error) { told <- err }
		err := Run(t.Context(), connect(t, w.srv), opt)
		if err == nil || <-told == nil || !strings.Contains(err.Error(), "letters") {
			t.Errorf("%+v: err %v, want one that says what is allowed", opt.Pools, err)
		}
	}
}

// An agent that cannot join its queue is no agent.
func TestAgentWithoutQueueEnds(t *testing.T) {
	w := newWorld(t)
	b := connect(t, w.srv)
	told := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	b.Close()
	if err := Run(ctx, b, Options{ID: "a1", Ready: func(err error) { told <- err }}); err == nil || <-told == nil {
		t.Errorf("err %v, want the reason in both places", err)
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
	a, _ := w.bare()
	s := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
	slow, _ := a.runs.of("slow")
	o := slow.slot("t")
	o.once.Do(func() { o.target, o.err = s, nil })
	stop, err := a.bus.OnControl(a.control)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	other, _ := a.runs.of("r1")
	w.control("slow", wire.Control{Kind: wire.Release})
	<-s.entered
	w.control("r1", wire.Control{Kind: wire.Halt, Reason: "test"})
	select {
	case <-other.ctx.Done():
	case <-time.After(5 * time.Second):
		t.Error("the halt waits for the other run's target")
	}
	close(s.leave)
	a.tasks.Wait() // and the agent waits for the close
}

// A server that takes long to start holds nothing but its own unit.
func TestOpeningDoesNotHoldTheRun(t *testing.T) {
	w := newWorld(t)
	a, _ := w.bare()
	r, _ := a.runs.of("r1")
	u := mockUnit("u1", 1)
	u.Target = wire.Target{Kind: wire.MCP, Transport: wire.Stdio, Command: []string{"sleep", "60"}, StartTimeout: time.Minute, StopGrace: 100 * time.Millisecond}
	opened := make(chan error, 1)
	go func() {
		_, _, err := r.target(r.ctx, u.Target)
		opened <- err
	}()
	for known := 0; known == 0; {
		r.mu.Lock()
		known = len(r.targets)
		r.mu.Unlock()
	}
	done := make(chan struct{})
	go func() {
		a.control("r1", wire.Control{Kind: wire.Go, Stage: "latency"})
		a.control("r1", wire.Control{Kind: wire.Release})
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
	a.tasks.Wait()
	if _, _, err := r.target(context.Background(), wire.Target{Kind: wire.Mock}); err == nil {
		t.Error("a closed run opened a target, which nobody would close")
	}
}
