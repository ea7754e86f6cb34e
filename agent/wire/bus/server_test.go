package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
)

// startServer runs a real server inside the test, without a port.
func startServer(t testing.TB) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: wire.MaxPayload})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, srv)
}

// serve runs a server on a port of its own.
func serve(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	opt := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: wire.MaxPayload}
	if change != nil {
		change(opt)
	}
	srv, err := server.NewServer(opt)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, srv)
}

func run(t testing.TB, srv *server.Server) *server.Server {
	t.Helper()
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	return srv
}

func connect(t testing.TB, srv *server.Server, name string) *Bus {
	t.Helper()
	b, err := InProcess(name, srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// dial connects over a socket.
func dial(t testing.TB, l Link) *Bus {
	t.Helper()
	b, err := Connect(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

const digest = "0123456789abcdef" // of a fault schedule, in these tests

// queue of the default pool.
var queue = wire.QueueName(wire.DefaultPool, digest)

// setup is a fleet without agents: streams, and the default pool's queue.
func setup(t testing.TB) (*server.Server, *Bus) {
	t.Helper()
	srv := startServer(t)
	b := connect(t, srv, "controller")
	prepare(t, b, Memory, queue)
	return srv, b
}

func prepare(t testing.TB, b *Bus, storage Storage, queues ...string) {
	t.Helper()
	if err := b.Setup(t.Context(), storage); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if err := b.OpenQueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func unit(run, id string) *wire.Unit {
	return &wire.Unit{V: wire.Version, Run: run, Stage: "latency", ID: id, Kind: wire.LoadUnit, Ops: wire.Range{From: 3, To: 9}}
}

func result(run, agent, unit string) *wire.Result {
	return &wire.Result{V: wire.Version, Run: run, Unit: unit, Agent: agent, Incarnation: 1, Final: true}
}

func publish(t testing.TB, b *Bus, queue string, units ...*wire.Unit) {
	t.Helper()
	if err := b.PublishUnits(t.Context(), queue, units); err != nil {
		t.Fatal(err)
	}
}

func join(t testing.TB, b *Bus, queue string) *Queue {
	t.Helper()
	q, err := b.Queue(within(t, 5*time.Second), queue)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// next is a unit that must come.
func next(t testing.TB, q *Queue) *Delivery {
	t.Helper()
	d, err := q.Next(t.Context(), 5*time.Second)
	if err != nil || d == nil {
		t.Fatalf("Next = %v, %v; want a unit", d, err)
	}
	return d
}

// none fails when a unit comes.
func none(t testing.TB, q *Queue) {
	t.Helper()
	if d, err := q.Next(t.Context(), 100*time.Millisecond); d != nil || err != nil {
		t.Fatalf("Next = %v, %v; want no unit", d, err)
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// must fails on an error of a step that is not what the test is about.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stopping is must for subscriptions, which end with the test.
func stopping(t testing.TB, stop func(), err error) {
	t.Helper()
	must(t, err)
	t.Cleanup(stop)
}
