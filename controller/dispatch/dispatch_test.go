package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/plan"
)

// world is a real server, a dispatcher and a hand-made agent on it.
type world struct {
	t     *testing.T
	srv   *server.Server
	d     *Dispatcher
	agent *bus.Bus

	mu   sync.Mutex
	out  int // units in the agent's hands
	most int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	w := &world{t: t, srv: srv}
	controller := w.connect()
	if err := controller.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	if w.d, err = New(t.Context(), controller, "r1", wire.DefaultPool); err != nil {
		t.Fatal(err)
	}
	w.agent = w.connect()
	return w
}

func (w *world) connect() *bus.Bus {
	w.t.Helper()
	b, err := bus.InProcess("test", w.srv)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return b
}

// serve works units on n goroutines with handle until the test ends.
func (w *world) serve(n int, handle func(*wire.Unit) *wire.Result) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	for range n {
		queue, err := w.agent.Queue(ctx, wire.DefaultPool)
		if err != nil {
			w.t.Fatal(err)
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				d, err := queue.Next(ctx, time.Second)
				if err != nil || d == nil {
					continue
				}
				w.enter(1)
				r := handle(&d.Unit)
				w.enter(-1)
				if r == nil {
					continue
				}
				r.V, r.Run, r.Stage, r.Unit, r.Incarnation, r.Final = wire.Version, "r1", d.Unit.Stage, d.Unit.ID, d.Incarnation, true
				if err := w.agent.PublishResult(ctx, r); err == nil {
					_ = d.Done(ctx) // the test is over when it fails
				}
			}
		})
	}
}

func (w *world) enter(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out += n
	w.most = max(w.most, w.out)
}

func stage(units, parallel int) *plan.Stage {
	st := &plan.Stage{Name: "latency", Probe: "latency", Parallel: parallel}
	for range units {
		st.Units = append(st.Units, wire.Unit{Kind: wire.LoadUnit, Ops: wire.Range{To: 1}, Load: &wire.Load{Workers: 1}})
	}
	return st
}

func TestParallelBoundsWhatIsOut(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			w := newWorld(t)
			w.serve(6, func(*wire.Unit) *wire.Result { time.Sleep(3 * time.Millisecond); return &wire.Result{} })
			results, err := w.d.Stage(t.Context(), stage(20, parallel))
			if err != nil || len(results) != 20 {
				t.Fatalf("%d results, %v", len(results), err)
			}
			if w.most > parallel {
				t.Errorf("%d units were out at once, want at most %d", w.most, parallel)
			}
		})
	}
}

func TestHaltCollectsWhatIsStillReported(t *testing.T) {
	w := newWorld(t)
	halted := make(chan struct{})
	stop, err := w.agent.OnControl(func(_ string, c wire.Control) {
		if c.Kind == wire.Halt {
			close(halted)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	started := make(chan struct{}, 10)
	w.serve(1, func(*wire.Unit) *wire.Result {
		started <- struct{}{}
		<-halted
		return &wire.Result{Partial: true}
	})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-started; cancel(cause) }()
	results, err := w.d.Stage(ctx, stage(3, 1))
	if !errors.Is(err, cause) || len(results) != 1 || !results[0].Partial {
		t.Errorf("results %v, err %v; want the one partial result and the cause", results, err)
	}
}

func TestPoisonEndsAsAFailure(t *testing.T) {
	w := newWorld(t)
	queue, err := w.agent.Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if d, _ := queue.Next(ctx, 100*time.Millisecond); d != nil {
				_ = d.GiveBack()
			}
		}
	})
	defer wg.Wait()
	defer cancel()
	results, err := w.d.Stage(t.Context(), stage(1, 1))
	if err != nil || len(results) != 1 || results[0].Failure == nil {
		t.Errorf("results %+v, err %v; want a failure that says how often the unit was handed out", results, err)
	}
}

func TestGangNeedsAgents(t *testing.T) {
	w := newWorld(t)
	st := stage(1, 0)
	st.Gang = true
	if _, err := w.d.Stage(t.Context(), st); !errors.Is(err, ErrNoAgents) {
		t.Errorf("err %v, want %v", err, ErrNoAgents)
	}
}

// A member that cannot take its share leaves a hole in the level, not a smaller
// level.
func TestGangShowsWhoIsMissing(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a1", "a2"} {
		if err := w.agent.Announce(t.Context(), wire.Hello{V: wire.Version, ID: id, Pools: []string{wire.DefaultPool}}); err != nil {
			t.Fatal(err)
		}
		stop, err := w.agent.OnPrepare(id, func(u wire.Unit) wire.Ready {
			ready := wire.Ready{V: wire.Version, Agent: id}
			if id == "a2" {
				ready.Failure = &wire.Failure{Class: "unreachable", Message: "no route"}
			} else if err := w.agent.PublishResult(t.Context(), &wire.Result{V: wire.Version, Run: "r1", Stage: u.Stage, Unit: u.ID, Incarnation: 1, Final: true}); err != nil {
				t.Error(err)
			}
			return ready
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	st := stage(1, 0)
	st.Gang, st.Units[0].Load.Workers, st.Units[0].Ops.To = true, 4, 100
	results, err := w.d.Stage(t.Context(), st)
	if err != nil || len(results) != 2 || len(st.Units) != 2 {
		t.Fatalf("%d results of %d shares, %v", len(results), len(st.Units), err)
	}
	failures := 0
	for _, r := range results {
		if r.Failure != nil {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d failed shares, want 1", failures)
	}
}
