package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

// Nobody listens: that is said at once. One that hangs is waited for.
func TestGoneIsSaidAtOnce(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	calls := map[string]func(context.Context) error{
		"Ask": func(ctx context.Context) error {
			_, err := controller.Ask(ctx, "a1", wire.Request{Kind: wire.Ping})
			return err
		},
		"AskLease": func(ctx context.Context) error {
			_, err := agent.AskLease(ctx, "r1", wire.Ask{Agent: "a1"})
			return err
		},
		"SendOrder": func(ctx context.Context) error {
			_, err := controller.SendOrder(ctx, "r1", wire.Order{Kind: wire.OrderWho})
			return err
		},
	}
	for name, call := range calls {
		begun := time.Now()
		err := call(t.Context())
		if took := time.Since(begun); !errors.Is(err, ErrGone) || took > 200*time.Millisecond {
			t.Errorf("%s: %v after %v; want %v at once", name, err, took, ErrGone)
		}
	}
	hang := make(chan struct{})
	stop, err := agent.OnRequest("a1", func(wire.Request) wire.Ready { <-hang; return wire.Ready{} })
	must(t, err)
	stopAsk, err := controller.OnAsk("r1", func(wire.Ask) (wire.Grant, bool) { return wire.Grant{}, false })
	must(t, err)
	stopOrder, err := controller.OnOrder("r1", func(wire.Order) (wire.Order, bool) { return wire.Order{}, false })
	must(t, err)
	for name, call := range calls {
		if err := call(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of one that hangs: %v, want %v", name, err, context.DeadlineExceeded)
		}
	}
	close(hang)
	stop()
	stopAsk()
	stopOrder()
	must(t, errors.Join(agent.nc.Flush(), controller.nc.Flush())) // until the server knows, a request gets no answer at all
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, ErrGone) {
			t.Errorf("%s after stop: %v, want %v", name, err, ErrGone)
		}
	}
}

func TestRequestsAreAnswered(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	stop, err := agent.OnRequest("a1", func(r wire.Request) wire.Ready {
		ready := wire.Ready{V: wire.Version, Agent: "a1", Clock: 7}
		if r.Unit != nil {
			ready.Failure = &wire.Failure{Class: wire.Busy, Message: r.Unit.ID}
		}
		return ready
	})
	stopping(t, stop, err)
	got, err := controller.Ask(t.Context(), "a1", wire.Request{Kind: wire.Prepare, Unit: unit("r1", "u7")})
	want := wire.Ready{V: wire.Version, Agent: "a1", Clock: 7, Failure: &wire.Failure{Class: wire.Busy, Message: "u7"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// An agent that gets ready can still be pinged, and stop waits for its answer.
func TestPingIsAnsweredWhilePreparing(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	preparing, prepared := make(chan struct{}), make(chan struct{})
	stop, err := agent.OnRequest("a1", func(r wire.Request) wire.Ready {
		if r.Kind == wire.Prepare {
			close(preparing)
			<-prepared
		}
		return wire.Ready{V: wire.Version, Agent: "a1"}
	})
	must(t, err)
	ready := make(chan error, 1)
	go func() {
		_, err := controller.Ask(t.Context(), "a1", wire.Request{Kind: wire.Prepare, Unit: unit("r1", "u1")})
		ready <- err
	}()
	<-preparing
	if _, err := controller.Ask(within(t, time.Second), "a1", wire.Request{Kind: wire.Ping}); err != nil {
		t.Errorf("ping: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { close(prepared) })
	stop()
	select {
	case <-prepared:
	default:
		t.Error("stop did not wait for the answer")
	}
	must(t, <-ready)
}

func TestOtherVersionsAreNotUnderstood(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	stop, err := agent.OnRequest("a1", func(wire.Request) wire.Ready {
		t.Error("a request of another version was handled")
		return wire.Ready{}
	})
	stopping(t, stop, err)
	answer, err := request[wire.Ready](t.Context(), controller, wire.AgentSubject("a1"), wire.Request{V: wire.Version + 1, Kind: wire.Ping})
	if err != nil || answer.Failure == nil {
		t.Errorf("%+v, %v; want a failure that says so", answer, err)
	}
	controls := make(chan wire.Control, 2)
	stop, err = agent.OnControl(func(_ string, c wire.Control) { controls <- c })
	stopping(t, stop, err)
	must(t, controller.publish(wire.ControlSubject("r1"), wire.Control{V: wire.Version + 1, Kind: wire.Halt}))
	must(t, controller.publish(wire.ControlSubject("r1"), "no control"))
	must(t, controller.Control("r1", wire.Control{Kind: wire.Release}))
	if c := <-controls; c.Kind != wire.Release {
		t.Errorf("control %+v, want the one of this version", c)
	}
	stop, err = controller.OnAsk("r1", func(wire.Ask) (wire.Grant, bool) { return wire.Grant{}, true })
	stopping(t, stop, err)
	if _, err := request[wire.Grant](within(t, 100*time.Millisecond), agent, wire.LeaseSubject("r1", "a1"), wire.Ask{V: wire.Version + 1}); err == nil {
		t.Error("a lease was granted to another version")
	}
}

// Control reaches every agent, with the run it is about.
func TestControlReachesAll(t *testing.T) {
	srv, controller := setup(t)
	type told struct {
		run string
		c   wire.Control
	}
	all := make(chan told, 4)
	for _, name := range []string{"a1", "a2"} {
		stop, err := connect(t, srv, name).OnControl(func(run string, c wire.Control) { all <- told{run, c} })
		stopping(t, stop, err)
	}
	want := wire.Control{Kind: wire.Go, Generation: 3, Gang: "g", At: 99, Offsets: map[string]int64{"a1": -5}}
	must(t, controller.Control("r1", want))
	want.V = wire.Version
	for range 2 {
		if diff := cmp.Diff(told{"r1", want}, <-all, cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Who speaks is taken from the subject, where the server lets an agent be
// itself only, and not from what the message says.
func TestSpeakerIsTheSubjects(t *testing.T) {
	_, b := setup(t)
	events, progress, asks := make(chan string, 1), make(chan string, 1), make(chan string, 1)
	stop, err := b.OnEvent("r1", func(e wire.Event) { events <- e.Agent })
	stopping(t, stop, err)
	stop, err = b.OnProgress("r1", func(p wire.Progress) { progress <- p.Agent })
	stopping(t, stop, err)
	stop, err = b.OnAsk("r1", func(a wire.Ask) (wire.Grant, bool) { asks <- a.Agent; return wire.Grant{Denied: "no"}, true })
	stopping(t, stop, err)
	must(t, b.publish(wire.EventSubject("r1", "liar"), wire.Event{V: wire.Version, Agent: "victim"}))
	must(t, b.publish(wire.ProgressSubject("r1", "liar"), wire.Progress{Agent: "victim"}))
	grant, err := request[wire.Grant](t.Context(), b, wire.LeaseSubject("r1", "liar"), wire.Ask{V: wire.Version, Agent: "victim"})
	if err != nil || grant.Denied != "no" || grant.V != wire.Version {
		t.Errorf("grant %+v, %v", grant, err)
	}
	for name, from := range map[string]chan string{"event": events, "progress": progress, "ask": asks} {
		if got := <-from; got != "liar" {
			t.Errorf("%s of %s, want liar", name, got)
		}
	}
}

func TestOrdersAreAnswered(t *testing.T) {
	srv, controller := setup(t)
	stop, err := controller.OnOrder("r1", func(o wire.Order) (wire.Order, bool) { o.Holder = "host/7"; return o, true })
	stopping(t, stop, err)
	got, err := connect(t, srv, "cli").SendOrder(t.Context(), "r1", wire.Order{Kind: wire.OrderHalt, Reason: "enough"})
	want := wire.Order{V: wire.Version, Kind: wire.OrderHalt, Reason: "enough", Holder: "host/7"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Once stop has returned, no handler runs.
func TestStopWaitsForTheHandler(t *testing.T) {
	srv, controller := setup(t)
	entered, leave, left := make(chan struct{}), make(chan struct{}), false
	stop, err := connect(t, srv, "agent").OnControl(func(string, wire.Control) {
		close(entered)
		<-leave
		left = true
	})
	must(t, err)
	must(t, controller.Control("r1", wire.Control{Kind: wire.Halt}))
	<-entered
	time.AfterFunc(20*time.Millisecond, func() { close(leave) })
	stop()
	if !left {
		t.Error("the handler still runs")
	}
}
