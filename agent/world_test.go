package agent

import (
	"context"
	"encoding/json"
	"sync"
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
	boss    *boss // leads run r1
	results chan *wire.Result
	events  chan wire.Event
}

// queueName is that of agents whose schedule has no digest.
var queueName = wire.QueueName(wire.DefaultPool, "")

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, wire.MaxPayload)
}

func newWorldOf(t *testing.T, maxPayload int32) *world {
	t.Helper()
	return onServer(t, startServer(t, &server.Options{DontListen: true, MaxPayload: maxPayload}))
}

func startServer(t *testing.T, opt *server.Options) *server.Server {
	t.Helper()
	opt.NoSigs, opt.NoLog, opt.JetStream = true, true, true
	if opt.StoreDir == "" {
		opt.StoreDir = t.TempDir()
	}
	srv, err := server.NewServer(opt)
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

// onServer sets the fleet up and leads run r1 with generation 1.
func onServer(t *testing.T, srv *server.Server) *world {
	t.Helper()
	w := &world{t: t, srv: srv, bus: connect(t, srv), results: make(chan *wire.Result, 1000), events: make(chan wire.Event, 1000)}
	if err := w.bus.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	if err := w.bus.OpenQueue(t.Context(), queueName); err != nil {
		t.Fatal(err)
	}
	w.until(w.bus.Results(t.Context(), "r1", 0, func(r *wire.Result) { w.results <- r }))
	w.until(w.bus.OnEvent("r1", func(e wire.Event) { w.events <- e }))
	w.boss = w.lead("r1", 1)
	return w
}

// until ends a subscription with the test.
func (w *world) until(stop func(), err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
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

// boss answers for a run as its controller would.
type boss struct {
	mu    sync.Mutex
	grant wire.Grant
	mute  bool
	plan  func(wire.Ask) wire.Grant // in place of grant
	asks  []wire.Ask
	heard chan wire.Ask
}

// lead answers for a run until the test ends.
func (w *world) lead(run string, generation uint64) *boss {
	w.t.Helper()
	b := &boss{grant: wire.Grant{Generation: generation, TTL: wire.LeaseTTL}, heard: make(chan wire.Ask, 10_000)}
	w.until(w.bus.OnAsk(run, b.answer))
	return b
}

func (b *boss) answer(a wire.Ask) (wire.Grant, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks = append(b.asks, a)
	select {
	case b.heard <- a:
	default: // nobody follows
	}
	if b.plan != nil {
		return b.plan(a), !b.mute
	}
	return b.grant, !b.mute
}

// change makes it answer otherwise.
func (b *boss) change(f func(b *boss)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

// agent starts one and returns what stops it and waits for it.
func (w *world) agent(opt Options) (stop func()) {
	w.t.Helper()
	return w.agentOn(connect(w.t, w.srv), opt)
}

func (w *world) agentOn(b *bus.Bus, opt Options) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan error, 1), make(chan error, 1)
	opt.Version, opt.Ready = "test", func(err error) { ready <- err }
	go func() { done <- Run(ctx, b, opt) }()
	if err := <-ready; err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) publish(units ...*wire.Unit) {
	w.t.Helper()
	if err := w.bus.PublishUnits(w.t.Context(), queueName, units); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) queue() *bus.Queue {
	w.t.Helper()
	q, err := w.bus.Queue(w.t.Context(), queueName)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// next is the next unit of the queue; nil when none comes within wait.
func (w *world) next(wait time.Duration) *bus.Delivery {
	w.t.Helper()
	q := w.queue()
	defer q.Close()
	d, err := q.Next(w.t.Context(), wait)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) prepare(agent string, u *wire.Unit) *wire.Failure {
	w.t.Helper()
	ready, err := w.bus.Ask(w.t.Context(), agent, wire.Request{Kind: wire.Prepare, Unit: u})
	if err != nil {
		w.t.Fatal(err)
	}
	return ready.Failure
}

// prepared hands a share to an agent that takes it.
func (w *world) prepared(agent string, u *wire.Unit) {
	w.t.Helper()
	if f := w.prepare(agent, u); f != nil {
		w.t.Fatalf("%s: %s: %s", agent, f.Class, f.Message)
	}
}

func (w *world) abort(agent string, u *wire.Unit) {
	w.t.Helper()
	if _, err := w.bus.Ask(w.t.Context(), agent, wire.Request{Kind: wire.Abort, Unit: u}); err != nil {
		w.t.Fatal(err)
	}
}

// control speaks as the controller of generation 1, unless c says another.
func (w *world) control(run string, c wire.Control) {
	w.t.Helper()
	if c.Generation == 0 {
		c.Generation = 1
	}
	if err := w.bus.Control(run, c); err != nil {
		w.t.Fatal(err)
	}
}

// start lets a gang begin at once.
func (w *world) start(run, gang string) {
	w.t.Helper()
	w.control(run, wire.Control{Kind: wire.Go, Gang: gang, At: time.Now().UnixNano()})
}

// bare is an agent without loops: the test is its loop.
func (w *world) bare() *Agent {
	w.t.Helper()
	a := newAgent(connect(w.t, w.srv), Options{ID: "a1", Capacity: DefaultCapacity})
	w.t.Cleanup(func() { a.closing.Wait(); a.runs.close() })
	return a
}

const patience = 20 * time.Second

func (w *world) result() *wire.Result {
	w.t.Helper()
	return receive(w.t, w.results, "result")
}

func (w *world) event(kind string) wire.Event {
	w.t.Helper()
	for {
		if e := receive(w.t, w.events, kind+" event"); e.Kind == kind {
			return e
		}
	}
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// eventually waits until a state that somebody else makes is there.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// mockUnit works in virtual time: as fast as the machine can.
func mockUnit(id string, operations uint64) *wire.Unit {
	ops := wire.Range{To: operations}
	return &wire.Unit{V: wire.Version, Run: "r1", Stage: "latency", ID: id, Gang: "g1", Gen: 1, Kind: wire.LoadUnit,
		Target: wire.Target{Kind: wire.Mock, Profile: "degraded", Seed: "1", Timeout: 30 * time.Second},
		Call:   wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: json.RawMessage(`{"query":"x"}`)}}},
		Ops:    ops, Load: &wire.Load{Workers: 1, Level: 1, Stage: ops}}
}

// endless is more than anyone waits for.
const endless = 1 << 40

// chatUnit calls a model endpoint: in real time.
func chatUnit(id, url string, workers int, operations uint64) *wire.Unit {
	u := mockUnit(id, operations)
	u.Target = wire.Target{Kind: wire.OpenAI, Endpoint: url + "/v1", APIKey: "k", Timeout: 30 * time.Second}
	u.Call = wire.CallSpec{}
	u.Load.Workers, u.Load.Level = workers, workers
	return u
}
