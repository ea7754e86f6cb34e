package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/plan"
	"ordeal/faultproxy/schedule"
)

// world is a real server, a dispatcher and a hand-made agent on it.
type world struct {
	t          *testing.T
	srv        *server.Server
	d          *Dispatcher
	agent      *bus.Bus
	controller *bus.Bus

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
	w.controller = controller
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

func hello(id string) wire.Hello {
	return wire.Hello{V: wire.Version, ID: id, Version: "test", Pools: []string{wire.DefaultPool}, Digest: schedule.Digest()}
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

// member announces a hand-made agent; one without take is gone before anybody
// asks it. take answers with the failure of a share.
func (w *world) member(id string, take func(wire.Prepare) *wire.Failure) {
	w.t.Helper()
	if err := w.agent.Announce(w.t.Context(), hello(id)); err != nil {
		w.t.Fatal(err)
	}
	if take == nil {
		return
	}
	stop, err := w.agent.OnPrepare(id, func(p wire.Prepare) wire.Ready {
		return wire.Ready{V: wire.Version, Agent: id, Failure: take(p)}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
}

// work publishes the result of a share at once.
func (w *world) work(p wire.Prepare) *wire.Failure {
	err := w.agent.PublishResult(w.t.Context(), &wire.Result{V: wire.Version, Run: p.Unit.Run, Stage: p.Unit.Stage, Unit: p.Unit.ID, Incarnation: 1, Final: true})
	if err != nil {
		w.t.Error(err)
	}
	return nil
}

func gang() *plan.Stage {
	st := stage(1, 0)
	st.Gang, st.Units[0].Load.Workers, st.Units[0].Ops.To = true, 4, 100
	return st
}

// A member that cannot take its share leaves a hole in the level, not a smaller
// level and not an end of the scan.
func TestGangShowsWhoIsMissing(t *testing.T) {
	tests := map[string]func(wire.Prepare) *wire.Failure{
		"Failed": func(wire.Prepare) *wire.Failure { return &wire.Failure{Class: "unreachable", Message: "no route"} },
		"Gone":   nil,
	}
	for name, take := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.member("a1", w.work)
			w.member("a2", take)
			st := gang()
			results, err := w.d.Stage(t.Context(), st)
			if err != nil || len(results) != 2 || len(st.Units) != 2 {
				t.Fatalf("%d results of %d shares, %v", len(results), len(st.Units), err)
			}
			failed := slices.DeleteFunc(results, func(r *wire.Result) bool { return r.Failure == nil })
			if len(failed) != 1 || failed[0].Agent != "a2" {
				t.Errorf("failed shares %+v, want that of a2", failed)
			}
		})
	}
}

// A run that meets a busy agent holds no other while it waits.
func TestGangLetsGoWhenOneIsBusy(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var log []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, what)
	}
	w.member("a1", func(p wire.Prepare) *wire.Failure {
		if p.Abort {
			note("a1 lets go")
			return nil
		}
		note("a1 ready")
		return nil
	})
	asked := 0
	w.member("a2", func(wire.Prepare) *wire.Failure {
		if asked++; asked < 3 {
			note("a2 busy")
			return &wire.Failure{Class: wire.Busy}
		}
		note("a2 ready")
		return nil
	})
	stop, err := w.agent.OnControl(func(run string, c wire.Control) {
		if c.Kind == wire.Go {
			for i := range 2 {
				w.work(wire.Prepare{Unit: wire.Unit{Run: run, Stage: c.Stage, ID: fmt.Sprintf("s00-00000.%d", i)}})
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	results, err := w.d.Stage(t.Context(), gang())
	if err != nil || len(results) != 2 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	want := []string{"a1 ready", "a2 busy", "a1 lets go", "a1 ready", "a2 busy", "a1 lets go", "a1 ready", "a2 ready"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without an end of its own the wait for a busy fleet becomes a hole in the level.
func TestGangGivesUpOnABusyFleet(t *testing.T) {
	w := newWorld(t)
	w.member("a1", func(p wire.Prepare) *wire.Failure { return nil })
	w.member("a2", func(wire.Prepare) *wire.Failure { return &wire.Failure{Class: wire.Busy} })
	st := gang()
	st.Number("r1", 0)
	shares := plan.Share(st.Units[0], 2)
	shares[0].ID, shares[1].ID = "u.0", "u.1"
	c := newCollector("r1", shares)
	fleet := []wire.Hello{hello("a1"), hello("a2")}
	if err := w.d.prepare(t.Context(), fleet, shares, c, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if c.missing() != 0 || len(c.results) != 2 || c.results[0].Failure == nil || c.results[1].Failure == nil {
		t.Errorf("%d shares open, results %+v; want both failed", c.missing(), c.results)
	}
}

func TestCloseTakesTheQueuedUnitsBack(t *testing.T) {
	w := newWorld(t)
	released := make(chan struct{})
	stop, err := w.agent.OnControl(func(run string, c wire.Control) {
		if run == "r1" && c.Kind == wire.Release {
			close(released)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	st := stage(3, 0)
	token := st.Number("r1", 0)
	for i := range st.Units {
		if err := w.controller.PublishUnit(t.Context(), wire.DefaultPool, token, &st.Units[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.d.Close(); err != nil {
		t.Fatal(err)
	}
	<-released
	queue, err := w.agent.Queue(t.Context(), wire.DefaultPool)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := queue.Next(t.Context(), 100*time.Millisecond); d != nil || err != nil {
		t.Errorf("Next = %+v, %v; want nothing of a run that is over", d, err)
	}
}

func TestCollectorDropsOtherRuns(t *testing.T) {
	c := newCollector("r1", []wire.Unit{{ID: "s00-00000"}})
	results := make(chan *wire.Result, 2)
	results <- &wire.Result{Run: "r2", Unit: "s00-00000", Final: true}
	results <- &wire.Result{Run: "r1", Unit: "s00-00000", Final: true}
	for want := 1; want >= 0; want-- {
		if err := c.one(t.Context(), results); err != nil || c.missing() != want || len(c.results) != 1-want {
			t.Errorf("%d missing, %d results, %v; want %d and %d", c.missing(), len(c.results), err, want, 1-want)
		}
	}
}

func TestAgentWithOtherFaultsIsRefused(t *testing.T) {
	w := newWorld(t)
	other := hello("a2")
	other.Digest = "beef"
	if err := w.agent.Announce(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.members(t.Context()); !errors.Is(err, ErrNoAgents) || !strings.Contains(err.Error(), "a2") {
		t.Errorf("err %v, want %v and who was refused", err, ErrNoAgents)
	}
	w.member("a1", nil)
	if fleet, err := w.d.members(t.Context()); err != nil || len(fleet) != 1 || fleet[0].ID != "a1" {
		t.Errorf("members %+v, %v; want a1 alone", fleet, err)
	}
}

func TestPoolNameIsChecked(t *testing.T) {
	w := newWorld(t)
	if _, err := New(t.Context(), w.controller, "r2", "a.*"); err == nil || !strings.Contains(err.Error(), "pool") {
		t.Errorf("err %v, want one about the pool's name", err)
	}
}
