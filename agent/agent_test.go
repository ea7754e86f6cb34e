package agent

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// world is a real server with a controller's bus and agents on it.
type world struct {
	t       *testing.T
	srv     *server.Server
	bus     *bus.Bus
	results chan *wire.Result
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, wire.MaxPayload)
}

func newWorldOf(t *testing.T, maxPayload int32) *world {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: maxPayload})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	w := &world{t: t, srv: srv, bus: connect(t, srv), results: make(chan *wire.Result, 100)}
	if err := w.bus.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	stop, err := w.bus.Results(t.Context(), "r1", func(r *wire.Result) { w.results <- r })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return w
}

func connect(t *testing.T, srv *server.Server) *bus.Bus {
	t.Helper()
	b, err := bus.InProcess("test", srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// agent starts one and returns what stops it and waits for it.
func (w *world) agent(id string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- Run(ctx, connect(w.t, w.srv), Options{ID: id, Version: "test", Ready: func(err error) { ready <- err }})
	}()
	if err := <-ready; err != nil {
		w.t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) publish(u *wire.Unit) {
	w.t.Helper()
	if err := w.bus.PublishUnit(w.t.Context(), wire.DefaultPool, "s00", u); err != nil {
		w.t.Fatal(err)
	}
}

// prepare hands a share to an agent.
func (w *world) prepare(agent string, u *wire.Unit) {
	w.t.Helper()
	if ready, err := w.bus.Prepare(w.t.Context(), agent, *u); err != nil || ready.Failure != nil {
		w.t.Fatalf("%s: %+v, %v", agent, ready.Failure, err)
	}
}

func (w *world) control(run string, c wire.Control) {
	w.t.Helper()
	if err := w.bus.Control(run, c); err != nil {
		w.t.Fatal(err)
	}
}

// bare is an agent without loops: the test is its loop.
func (w *world) bare() (*Agent, *bus.Queue) {
	w.t.Helper()
	a := &Agent{bus: connect(w.t, w.srv), opt: Options{ID: "a1"}, runs: newRuns(), shares: map[string]*share{}}
	queue, err := a.bus.Queue(w.t.Context(), wire.DefaultPool)
	if err != nil {
		w.t.Fatal(err)
	}
	return a, queue
}

func (w *world) result() *wire.Result {
	w.t.Helper()
	select {
	case r := <-w.results:
		return r
	case <-time.After(20 * time.Second):
		w.t.Fatal("no result")
		return nil
	}
}

func mockUnit(id string, operations uint64) *wire.Unit {
	ops := wire.Range{To: operations}
	return &wire.Unit{V: wire.Version, Run: "r1", Stage: "latency", ID: id, Kind: wire.LoadUnit,
		Target: wire.Target{Kind: wire.Mock, Profile: "degraded", Seed: "1", Timeout: 30 * time.Second},
		Call:   wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: json.RawMessage(`{"query":"x"}`)}}},
		Ops:    ops, Load: &wire.Load{Workers: 1, Level: 1, Stage: ops}}
}

func TestUnitIsWorkedOnce(t *testing.T) {
	w := newWorld(t)
	w.agent("a1")
	w.publish(mockUnit("u1", 40))
	r := w.result()
	if !r.Final || r.Partial || r.Failure != nil || r.Agent != "a1" || r.Unit != "u1" || r.Incarnation != 1 {
		t.Errorf("result %+v", r)
	}
	if r.Tally.Calls() != 40 || r.Tally.Latency.N() != 40 {
		t.Errorf("%d calls, %d latencies, want 40", r.Tally.Calls(), r.Tally.Latency.N())
	}
}

func TestHaltReturnsWhatWasMeasured(t *testing.T) {
	w := newWorld(t)
	w.agent("a1")
	seen := make(chan struct{}, 1000)
	stop, err := w.bus.WatchProgress("r1", func(wire.Progress) { seen <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w.publish(mockUnit("u1", 1<<40)) // far more than anyone waits for
	<-seen
	begun := time.Now()
	if err := w.bus.Control("r1", wire.Control{Kind: wire.Halt, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	r := w.result()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("halt took %v, want under 1 s", took)
	}
	if !r.Partial || r.Tally.Calls() == 0 {
		t.Errorf("partial %v with %d calls, want a part of the work", r.Partial, r.Tally.Calls())
	}
}

func TestStoppedAgentGivesItsUnitBack(t *testing.T) {
	w := newWorld(t)
	stop := w.agent("a1")
	seen := make(chan struct{}, 1000)
	stopWatch, err := w.bus.WatchProgress("r1", func(wire.Progress) { seen <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer stopWatch()
	w.publish(mockUnit("u1", 1<<40))
	<-seen
	stop()
	if fleet, err := w.bus.Agents(t.Context()); err != nil || len(fleet) != 0 {
		t.Errorf("still registered: %v, %v", fleet, err)
	}
	select {
	case r := <-w.results:
		t.Fatalf("a result of a unit that another agent can work whole: %+v", r)
	default:
	}
	queue, err := w.bus.Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := queue.Next(t.Context(), time.Second); err != nil || d == nil || d.Incarnation != 2 {
		t.Errorf("Next = %+v, %v; want the unit again, at once", d, err)
	}
}

// Nobody else can work a share: what was measured of it is all there will be.
func TestStoppedAgentPublishesItsShare(t *testing.T) {
	w := newWorld(t)
	stop := w.agent("a1")
	w.prepare("a1", mockUnit("u1", 10))
	stop()
	if r := w.result(); !r.Partial || !r.Final || r.Unit != "u1" {
		t.Errorf("result %+v, want the part that was measured", r)
	}
}

func TestUnworkableUnitIsData(t *testing.T) {
	w := newWorld(t)
	w.agent("a1")
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

func TestGangWaitsForGo(t *testing.T) {
	w := newWorld(t)
	w.agent("a1")
	w.agent("a2")
	for i, id := range []string{"a1", "a2"} {
		u := mockUnit(id, 10)
		u.Load.FirstWorker, u.Load.Level = i, 2
		w.prepare(id, u)
	}
	select {
	case r := <-w.results:
		t.Fatalf("%s worked before go", r.Agent)
	case <-time.After(50 * time.Millisecond):
	}
	if err := w.bus.Control("r1", wire.Control{Kind: wire.Go, Stage: "latency"}); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for range 2 {
		r := w.result()
		got[r.Agent] = r.Tally.Calls()
	}
	if got["a1"] == 0 || got["a2"] == 0 {
		t.Errorf("calls by agent %v, want both to have worked", got)
	}
}
