package lead

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// world is a real server without a port.
type world struct {
	t   *testing.T
	dir string
	mu  sync.Mutex
	srv *server.Server
	bus *bus.Bus // of nobody in particular
}

// TestMain lets this binary be a controller of its own. It keeps the clock of the server's stores out of all bubbles: the first
// store starts it for the whole process, and a goroutine of a bubble that waits
// on it would hold up the bubble's time.
func TestMain(m *testing.M) {
	if url := os.Getenv(asController); url != "" {
		os.Exit(controllerMain(url))
	}
	ats.Register()
	os.Exit(m.Run())
}

// inWorld runs a test in a bubble, whose time goes by in no time. The bubble
// begins in the present, since the stores tell the age of messages by the clock
// outside.
func inWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	forgetTimers()
	now := time.Now().Round(0)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		test(t, newWorld(t))
	})
}

// realWorld is for tests that store a document: nats.go v1.55.0 leaves a
// goroutine behind when the answers come fast (resetPendingAcksOnReconnect reads
// a channel that cleanupReplySub has made nil by then), and a bubble bears none.
func realWorld(t *testing.T) *world {
	t.Helper()
	forgetTimers()
	return newWorld(t)
}

// forgetTimers: nats.go keeps used timers in a pool, and one that was made in
// another bubble must not be used. Collecting garbage twice empties every
// sync.Pool.
func forgetTimers() {
	runtime.GC()
	runtime.GC()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.start()
	t.Cleanup(w.stop)
	w.bus, _ = w.connect("test")
	if err := w.bus.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start() {
	w.t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		w.t.Fatal("server not ready")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.srv = srv
}

func (w *world) stop() {
	w.mu.Lock()
	srv := w.srv
	w.mu.Unlock()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// connect makes a connection that can be frozen.
func (w *world) connect(name string) (*bus.Bus, *link) {
	w.t.Helper()
	k := &link{world: w}
	b, err := bus.InProcess(name, k)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { k.thaw(); b.Close(); k.pumps.Wait() })
	return b, k
}

// link is a wire between a client and the server. A frozen direction delivers
// nothing and loses nothing, as the kernel does for a stopped process.
type link struct {
	world    *world
	up, down gate
	pumps    sync.WaitGroup

	mu   sync.Mutex
	look func([]byte)
	to   *server.Server // of the last connection
}

// whole reports whether the server has the connection too: one that was stopped
// behind a frozen link has not, and what the client says reaches nobody.
func (k *link) whole() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.world.mu.Lock()
	defer k.world.mu.Unlock()
	return k.to == k.world.srv
}

// sent lets look see every piece that goes to the server, before it does.
func (k *link) sent(look func([]byte)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look = look
}

func (k *link) show(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.look != nil {
		k.look(p)
	}
}

// InProcessConn is what nats.go dials.
func (k *link) InProcessConn() (net.Conn, error) {
	k.world.mu.Lock()
	srv := k.world.srv
	k.world.mu.Unlock()
	if k.up.isShut() || k.down.isShut() {
		return nil, errors.New("cut") // nats.go holds a lock while it waits for an answer
	}
	far, err := srv.InProcessConn()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.to = srv
	k.mu.Unlock()
	near, client := net.Pipe()
	k.pump(near, far, &k.up, k.show)
	k.pump(far, near, &k.down, func([]byte) {})
	return client, nil
}

func (k *link) pump(src, dst net.Conn, g *gate, show func([]byte)) {
	pieces := make(chan []byte, 1<<14)
	k.pumps.Go(func() {
		defer close(pieces)
		for {
			p := make([]byte, 4096)
			n, err := src.Read(p)
			if err != nil {
				return
			}
			pieces <- p[:n]
		}
	})
	k.pumps.Go(func() {
		defer dst.Close()
		for p := range pieces {
			g.pass()
			show(p)
			_, _ = dst.Write(p) // closed: what is left goes nowhere
		}
	})
}

func (k *link) freeze() { k.up.shut(); k.down.shut() }
func (k *link) thaw()   { k.up.open(); k.down.open() }

// gate is open at first.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil = open
}

func (g *gate) pass() {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed != nil
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// controller is a leader with a connection of its own.
type controller struct {
	*Leader
	bus  *bus.Bus
	link *link
}

// kill ends the connection as the end of the process does: nothing is said.
func (c *controller) kill() { c.link.thaw(); c.bus.Close() }

func record(id string) wire.Run {
	return wire.Run{ID: id, Command: "scan", Target: "mock:healthy", Words: []string{"scan", "mock"}, Version: "1", Order: []byte(`{"a":1}`)}
}

// create leads run r1; change adapts the options.
func (w *world) create(change func(*Options)) *controller {
	w.t.Helper()
	b, k := w.connect("controller")
	opt := Options{Bus: b, Record: record("r1"), Holder: "one pid 1"}
	if change != nil {
		change(&opt)
	}
	l, err := Create(w.t.Context(), opt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { k.thaw(); l.Close() })
	return &controller{l, b, k}
}

// take tries to lead run r1.
func (w *world) take(ctx context.Context, holder string) (*controller, error) {
	w.t.Helper()
	b, k := w.connect(holder)
	l, _, err := Take(ctx, "r1", Options{Bus: b, Holder: holder})
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { k.thaw(); l.Close() })
	return &controller{l, b, k}, nil
}

func (w *world) mustTake(holder string) *controller {
	w.t.Helper()
	c, err := w.take(w.t.Context(), holder)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run reads the record of r1.
func (w *world) run() *wire.Run {
	w.t.Helper()
	r, _, err := w.bus.Run(w.t.Context(), "r1")
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// dropRuns removes the store of runs.
func (w *world) dropRuns() {
	w.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(w.srv))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = js.DeleteKeyValue(w.t.Context(), wire.RunBucket)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// ask asks for a lease as agent a1 does.
func (w *world) ask(a wire.Ask) (wire.Grant, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), wire.AskWait)
	defer cancel()
	if a.Agent == "" {
		a.Agent = "a1"
	}
	return w.bus.AskLease(ctx, "r1", a)
}

// controls collects the control messages of r1.
func (w *world) controls() <-chan wire.Control {
	w.t.Helper()
	b, _ := w.connect("agent")
	heard := make(chan wire.Control, 100)
	stop, err := b.OnControl(func(run string, c wire.Control) {
		if run == "r1" {
			heard <- c
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	return heard
}
