package bus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
)

// startServer runs a real server inside the test, without a port.
func startServer(t *testing.T) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: wire.MaxPayload})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	return srv
}

func connect(t *testing.T, srv *server.Server, name string) *Bus {
	t.Helper()
	b, err := InProcess(name, srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func setup(t *testing.T) (*server.Server, *Bus) {
	t.Helper()
	srv := startServer(t)
	b := connect(t, srv, "controller")
	if err := b.Setup(t.Context(), Memory); err != nil {
		t.Fatal(err)
	}
	return srv, b
}

func unit(id string) *wire.Unit {
	return &wire.Unit{V: wire.Version, Run: "r1", Stage: "latency", ID: id, Kind: wire.LoadUnit, Ops: wire.Range{From: 3, To: 9}}
}

func TestUnitGoesToOneAgentAndItsResultComesBackOnce(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	queue, err := agent.Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan *wire.Result, 10)
	stop, err := controller.Results(t.Context(), "r1", func(r *wire.Result) { results <- r })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for range 2 { // the second publish of the same unit is dropped
		if err := controller.PublishUnit(t.Context(), wire.DefaultPool, "s00", unit("u1")); err != nil {
			t.Fatal(err)
		}
	}
	d, err := queue.Next(t.Context(), time.Second)
	if err != nil || d == nil {
		t.Fatalf("Next: %v, %v", d, err)
	}
	if diff := cmp.Diff(unit("u1"), &d.Unit); diff != "" || d.Incarnation != 1 {
		t.Errorf("incarnation %d, unit (-want +got):\n%s", d.Incarnation, diff)
	}
	r := &wire.Result{V: wire.Version, Run: "r1", Unit: "u1", Incarnation: 1, Final: true}
	for range 2 { // a resend is dropped
		if err := agent.PublishResult(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-results; got.Unit != "u1" {
		t.Errorf("result of %q, want u1", got.Unit)
	}
	if again, err := queue.Next(t.Context(), 100*time.Millisecond); again != nil || err != nil {
		t.Errorf("the unit came again: %v, %v", again, err)
	}
	select {
	case r := <-results:
		t.Errorf("a second result: %+v", r)
	default:
	}
}

func TestReturnedUnitComesAgainWithTheNextIncarnation(t *testing.T) {
	srv, controller := setup(t)
	queue, err := connect(t, srv, "agent").Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	if err := controller.PublishUnit(t.Context(), wire.DefaultPool, "s00", unit("u1")); err != nil {
		t.Fatal(err)
	}
	for want := uint64(1); want <= 3; want++ {
		d, err := queue.Next(t.Context(), 2*time.Second)
		if err != nil || d == nil {
			t.Fatalf("Next: %v, %v", d, err)
		}
		if d.Incarnation != want {
			t.Errorf("incarnation %d, want %d", d.Incarnation, want)
		}
		if err := d.GiveBack(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoisonIsReportedAndRemoved(t *testing.T) {
	srv, controller := setup(t)
	queue, err := connect(t, srv, "agent").Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	poisoned := make(chan *wire.Unit, 1)
	stop, err := controller.Poisoned(t.Context(), wire.DefaultPool, "r1", func(u *wire.Unit) { poisoned <- u })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := controller.PublishUnit(t.Context(), wire.DefaultPool, "s00", unit("bad")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		select {
		case u := <-poisoned:
			if u.ID != "bad" {
				t.Errorf("poisoned %q, want bad", u.ID)
			}
			return
		case <-ctx.Done():
			t.Fatal("no word of the poisoned unit")
		default:
		}
		if d, _ := queue.Next(ctx, 50*time.Millisecond); d != nil {
			if d.Incarnation > wire.MaxDeliver {
				t.Fatalf("handed out %d times", d.Incarnation)
			}
			if err := d.GiveBack(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestOtherVersionIsNotWorked(t *testing.T) {
	srv, controller := setup(t)
	queue, err := connect(t, srv, "agent").Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	u := unit("future")
	u.V = wire.Version + 1
	if err := controller.PublishUnit(t.Context(), wire.DefaultPool, "s00", u); err != nil {
		t.Fatal(err)
	}
	if d, err := queue.Next(t.Context(), time.Second); err == nil || d != nil {
		t.Errorf("Next = %v, %v; want an error that names the version", d, err)
	}
}

func TestRegistry(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	want := wire.Hello{V: wire.Version, ID: "a1", Version: "x", Pools: []string{"default"}, Labels: map[string]string{"zone": "eu"}}
	if err := agent.Announce(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := controller.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]wire.Hello{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := agent.Leave(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if got, err := controller.Agents(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("after leaving: %v, %v", got, err)
	}
}

func TestPrepareAndControl(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	stop, err := agent.OnPrepare("a1", func(p wire.Prepare) wire.Ready {
		return wire.Ready{V: wire.Version, Agent: "a1", Failure: &wire.Failure{Class: "harness", Message: p.Unit.ID}}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ready, err := controller.Prepare(t.Context(), "a1", *unit("u7"))
	if err != nil || ready.Failure == nil || ready.Failure.Message != "u7" {
		t.Errorf("Prepare = %+v, %v", ready, err)
	}
	if _, err := controller.Prepare(t.Context(), "nobody", *unit("u7")); err == nil {
		t.Error("an agent that is not there got ready")
	}
	got := make(chan wire.Control, 1)
	stopControl, err := agent.OnControl(func(run string, c wire.Control) {
		if run == "r1" {
			got <- c
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopControl()
	if err := controller.Control("r1", wire.Control{Kind: wire.Halt, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	if c := <-got; c.Kind != wire.Halt || c.Reason != "enough" {
		t.Errorf("control %+v", c)
	}
}

func BenchmarkUnitRoundTrip(b *testing.B) {
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	srv.ReadyForConnections(10 * time.Second)
	bus, err := InProcess("bench", srv)
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Setup(b.Context(), Memory); err != nil {
		b.Fatal(err)
	}
	queue, err := bus.Queue(b.Context(), wire.DefaultPool)
	if err != nil {
		b.Fatal(err)
	}
	u := unit("u")
	for i := 0; b.Loop(); i++ {
		u.ID = time.Now().String()
		if err := bus.PublishUnit(b.Context(), wire.DefaultPool, "s00", u); err != nil {
			b.Fatal(err)
		}
		d, err := queue.Next(b.Context(), time.Second)
		if err != nil || d == nil {
			b.Fatal(d, err)
		}
		if err := d.Done(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPurgeTakesBackOneRun(t *testing.T) {
	srv, controller := setup(t)
	queue, err := connect(t, srv, "agent").Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	kept := unit("kept")
	kept.Run = "r2"
	for _, u := range []*wire.Unit{unit("u1"), unit("u2"), kept} {
		if err := controller.PublishUnit(t.Context(), wire.DefaultPool, "s00", u); err != nil {
			t.Fatal(err)
		}
	}
	if err := controller.Purge(t.Context(), wire.DefaultPool, "r1"); err != nil {
		t.Fatal(err)
	}
	if d, err := queue.Next(t.Context(), time.Second); err != nil || d == nil || d.Unit.ID != "kept" {
		t.Fatalf("Next = %+v, %v; want the unit of the other run", d, err)
	}
	if d, err := queue.Next(t.Context(), 100*time.Millisecond); err != nil || d != nil {
		t.Errorf("Next = %+v, %v; want nothing left", d, err)
	}
}

func TestUnitsDoNotWaitForEver(t *testing.T) {
	_, controller := setup(t)
	stream, err := controller.js.Stream(t.Context(), wire.UnitStream)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().Config.MaxAge; got != wire.UnitTTL {
		t.Errorf("units live for %v, want %v", got, wire.UnitTTL)
	}
}

// The advisory goes to everyone who watches the pool; only the owner may act.
func TestPoisonOfAnotherRunIsLeftToItsOwner(t *testing.T) {
	srv, owner := setup(t)
	queue, err := connect(t, srv, "agent").Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan *wire.Unit, 1)
	stop, err := connect(t, srv, "other").Poisoned(t.Context(), wire.DefaultPool, "r2", func(u *wire.Unit) { told <- u })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := owner.PublishUnit(t.Context(), wire.DefaultPool, "s00", unit("bad")); err != nil {
		t.Fatal(err)
	}
	for range wire.MaxDeliver {
		d, err := queue.Next(t.Context(), time.Second)
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		if err := d.GiveBack(); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := queue.Next(t.Context(), 100*time.Millisecond); d != nil || err != nil { // the server notices on a fetch
		t.Fatalf("Next = %+v, %v; want no unit", d, err)
	}
	select {
	case u := <-told:
		t.Errorf("r2 was told of %s of %s", u.ID, u.Run)
	case <-time.After(100 * time.Millisecond):
	}
	stream, err := owner.js.Stream(t.Context(), wire.UnitStream)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d units in the queue, want the one left for its owner", n)
	}
}

func TestResultTooLargeForTheServer(t *testing.T) {
	_, b := setup(t)
	r := &wire.Result{V: wire.Version, Run: "r1", Unit: "u1", Incarnation: 1, Final: true,
		Survey: &wire.Survey{Instructions: strings.Repeat("x", wire.MaxPayload)}}
	err := b.PublishResult(t.Context(), r)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "max_payload 8388608; raise it to 8MB") {
		t.Errorf("err %v, want %v with both sizes", err, ErrTooLarge)
	}
}

func TestConnectErrorsHideCredentials(t *testing.T) {
	for _, urls := range []string{
		"nats://user:s3cret@127.0.0.1:1", "nats://s3cret@127.0.0.1:1", "user:s3cret@127.0.0.1:1",
		"nats://127.0.0.1:1,nats://user:s3cret@127.0.0.1:2", "nats://user:s3cret/%zz@127.0.0.1:1", "nats://user:s3cret@more@127.0.0.1:x",
	} {
		_, err := Connect("test", urls)
		if err == nil {
			t.Fatalf("connected to %s", urls)
		}
		if strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: error %q, want the host without the secret", urls, err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := controller.Control("r1", wire.Control{Kind: wire.Halt}); err != nil {
		t.Fatal(err)
	}
	<-entered
	time.AfterFunc(20*time.Millisecond, func() { close(leave) })
	stop()
	if !left {
		t.Error("the handler still runs")
	}
}
