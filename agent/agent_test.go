package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
)

func TestUnitIsWorkedOnce(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	w.publish(mockUnit("u1", 40))
	r := w.result()
	if !r.Final || r.Partial || r.Failure != nil || r.Agent != "a1" || r.Unit != "u1" || r.Incarnation != 1 || r.Released != "" {
		t.Errorf("result %+v", r)
	}
	if r.Tally.Calls() != 40 || r.Tally.Latency.N() != 40 {
		t.Errorf("%d calls, %d latencies, want 40", r.Tally.Calls(), r.Tally.Latency.N())
	}
	if e := w.event(wire.Began); e.Agent != "a1" || e.Unit != "u1" || e.Incarnation != 1 || !strings.HasPrefix(e.Ack, "$JS.ACK.") {
		t.Errorf("event %+v, want the agent, the unit and where it is acknowledged", e)
	}
	if d := w.next(100 * time.Millisecond); d != nil {
		t.Errorf("the unit came again: %+v", d)
	}
}

func TestHaltReturnsWhatWasMeasured(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	samples := make(chan wire.Progress, 1000)
	w.until(w.bus.OnProgress("r1", func(p wire.Progress) { samples <- p }))
	w.publish(mockUnit("u1", endless))
	receive(t, samples, "sample")
	begun := time.Now()
	w.control("r1", wire.Control{Kind: wire.Halt, Reason: "test"})
	r := w.result()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("halt took %v, want under 1 s", took)
	}
	if !r.Partial || r.Released != "" || r.Tally.Calls() == 0 {
		t.Errorf("partial %v, released by %q, %d calls; want a part of the work", r.Partial, r.Released, r.Tally.Calls())
	}
}

func TestUnworkableUnitIsData(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	u := mockUnit("u1", 1)
	u.Target.Kind = "carrier pigeon"
	w.publish(u)
	if r := w.result(); r.Failure == nil || !r.Final {
		t.Errorf("result %+v, want a failure that says why", r)
	}
	w.publish(mockUnit("u2", 1)) // and the agent goes on
	if r := w.result(); r.Failure != nil || r.Unit != "u2" {
		t.Errorf("result %+v, want u2 worked", r)
	}
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

// A share that is in hand keeps the agent from pulling, and a unit that comes
// all the same goes to somebody else at once.
func TestBusyAgentTakesNoUnit(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	share := mockUnit("share", 10)
	w.prepared("a1", share)
	w.publish(mockUnit("u1", 10))
	eventually(t, "the unit for somebody else", func() bool {
		d := w.next(100 * time.Millisecond)
		return d != nil && d.GiveBack(0) == nil
	})
	select {
	case r := <-w.results:
		t.Fatalf("%s worked beside the share", r.Unit)
	default:
	}
	w.start("r1", "g1")
	got := map[string]bool{w.result().Unit: true, w.result().Unit: true}
	if !got["share"] || !got["u1"] {
		t.Errorf("results of %v, want both", got)
	}
}

// A stopped context before the agent has joined is no error of its.
func TestStoppedBeforeJoining(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told := make(chan error, 1)
	if err := Run(ctx, connect(t, w.srv), Options{ID: "a1", Ready: func(err error) { told <- err }}); err != nil || <-told == nil {
		t.Errorf("err %v, want nil here and the reason for Ready", err)
	}
}
