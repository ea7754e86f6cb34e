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
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
	"ordeal/faultproxy/schedule"
)

// world is a real server, a dispatcher and hand-made agents on it, each with a
// connection of its own.
type world struct {
	t          *testing.T
	srv        *server.Server
	d          *Dispatcher
	controller *bus.Bus
	warned     chan string

	mu   sync.Mutex
	out  int // units in the agents' hands
	most int
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, srv: serve(t, &server.Options{DontListen: true}), warned: make(chan string, 100)}
	w.controller = w.connect()
	return w.lead(change...)
}

func serve(t *testing.T, opt *server.Options) *server.Server {
	t.Helper()
	opt.NoSigs, opt.NoLog, opt.JetStream, opt.StoreDir = true, true, true, t.TempDir()
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

// lead makes the dispatcher.
func (w *world) lead(change ...func(*Options)) *world {
	t := w.t
	t.Helper()
	if err := w.controller.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	r, err := roster.Open(t.Context(), w.controller)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	opt := Options{Bus: w.controller, Roster: r, Run: "r1", Pool: wire.DefaultPool, Generation: 1, LeaseTTL: 2 * time.Second,
		Sure: func() bool { return true }, Record: func(context.Context, wire.GangRecord) error { return nil },
		Sent: func(string) int64 { return 7 }, Warn: func(text string) { w.warned <- text }}
	for _, f := range change {
		f(&opt)
	}
	if w.d, err = New(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.d.hangUp)
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

// queue joins the pool's queue.
func (w *world) queue(b *bus.Bus) *bus.Queue {
	w.t.Helper()
	q, err := b.Queue(w.t.Context(), w.d.queue)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// serve works units on n goroutines with handle until the test ends.
func (w *world) serve(n int, handle func(*wire.Unit) *wire.Result) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	for range n {
		b := w.connect()
		queue := w.queue(b)
		wg.Go(func() {
			for ctx.Err() == nil {
				if d, err := queue.Next(ctx, time.Second); err == nil && d != nil {
					w.work(b, d, handle)
				}
			}
		})
	}
}

func (w *world) work(b *bus.Bus, d *bus.Delivery, handle func(*wire.Unit) *wire.Result) {
	w.hold(1)
	r := handle(&d.Unit)
	w.hold(-1)
	if r == nil {
		return
	}
	r.V, r.Run, r.Stage, r.Unit, r.Incarnation, r.Final, r.Agent = wire.Version, d.Unit.Run, d.Unit.Stage, d.Unit.ID, d.Incarnation, true, "a"
	if err := errors.Join(b.PublishResult(w.t.Context(), r), d.Done(w.t.Context())); err != nil && w.t.Context().Err() == nil {
		w.t.Error(err)
	}
}

func (w *world) hold(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out += n
	w.most = max(w.most, w.out)
}

// A unit whose result came and that nobody acknowledges is worked no second time once
// its stage is over; the next stage's are left alone.
func TestUnacknowledgedUnitIsTakenOffTheQueue(t *testing.T) {
	w := newWorld(t)
	b := w.connect()
	queue := w.queue(b)
	ended := make(chan error, 1)
	go func() { ended <- w.d.Stage(t.Context(), stage(1, 0), &took{}) }()
	d, err := queue.Next(t.Context(), 5*time.Second)
	if err != nil || d == nil {
		t.Fatalf("no unit: %v", err)
	}
	r := &wire.Result{V: wire.Version, Run: "r1", Stage: "latency", Unit: d.Unit.ID, Incarnation: 1, Final: true, Agent: "a"}
	if err := errors.Join(b.PublishResult(t.Context(), r), <-ended); err != nil {
		t.Fatal(err)
	}
	next := &wire.Unit{V: wire.Version, Run: "r1", ID: "next", Kind: wire.LoadUnit}
	if err := w.controller.PublishUnits(t.Context(), w.d.queue, []*wire.Unit{next}); err != nil {
		t.Fatal(err)
	}
	var queued map[string]bool
	for begun := time.Now(); time.Since(begun) < wire.AckWait/2; time.Sleep(20 * time.Millisecond) {
		if queued, err = w.controller.QueuedUnits(t.Context(), w.d.queue, "r1"); err != nil {
			t.Fatal(err)
		}
		if !queued[d.Unit.ID] {
			break
		}
	}
	if diff := cmp.Diff(map[string]bool{"next": true}, queued); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
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

// took is a sink that keeps everything.
type took struct {
	planned []wire.Unit
	results []*wire.Result
	gang    *merge.Gang
	lost    []string
}

func (s *took) Planned(units []wire.Unit) { s.planned = units }
func (s *took) Add(r *wire.Result)        { s.results = append(s.results, r) }
func (s *took) Gang(g merge.Gang)         { s.gang = &g }
func (s *took) Lost(agent string)         { s.lost = append(s.lost, agent) }

func (s *took) failed() []*wire.Result {
	return slices.DeleteFunc(slices.Clone(s.results), func(r *wire.Result) bool { return r.Failure == nil })
}

func TestParallelBoundsWhatIsOut(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			w := newWorld(t)
			w.serve(6, func(*wire.Unit) *wire.Result { time.Sleep(3 * time.Millisecond); return &wire.Result{} })
			var got took
			if err := w.d.Stage(t.Context(), stage(20, parallel), &got); err != nil || len(got.results) != 20 || len(got.planned) != 20 {
				t.Fatalf("%d results of %d, %v", len(got.results), len(got.planned), err)
			}
			if w.most > parallel {
				t.Errorf("%d units were out at once, want at most %d", w.most, parallel)
			}
		})
	}
}

func TestManyUnitsPassTheWindow(t *testing.T) {
	w := newWorld(t)
	w.serve(4, func(*wire.Unit) *wire.Result { return &wire.Result{} })
	var got took
	if err := w.d.Stage(t.Context(), stage(window+500, 0), &got); err != nil || len(got.results) != window+500 {
		t.Errorf("%d results, %v", len(got.results), err)
	}
}

func TestHaltCollectsWhatIsStillReported(t *testing.T) {
	w := newWorld(t)
	halted := make(chan uint64, 1)
	stop, err := w.connect().OnControl(func(_ string, c wire.Control) {
		if c.Kind == wire.Halt {
			halted <- c.Generation
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	started := make(chan struct{}, 10)
	w.serve(1, func(*wire.Unit) *wire.Result {
		started <- struct{}{}
		if g := <-halted; g != 1 {
			t.Errorf("halt of generation %d, want 1", g)
		}
		return &wire.Result{Partial: true}
	})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-started; cancel(cause) }()
	var got took
	begun := time.Now()
	err = w.d.Stage(ctx, stage(3, 1), &got)
	if !errors.Is(err, cause) || len(got.results) != 1 || !got.results[0].Partial {
		t.Errorf("results %v, err %v; want the one partial result and the cause", got.results, err)
	}
	if took := time.Since(begun); took > haltGrace/2 {
		t.Errorf("the halt took %v: the stage waited for units that nobody had begun", took)
	}
}

// A controller that was replaced sends nothing more.
func TestFencedLeavesTheAgentsAlone(t *testing.T) {
	w := newWorld(t)
	stop, err := w.connect().OnControl(func(_ string, c wire.Control) { t.Errorf("sent %s", c.Kind) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(bus.ErrFenced)
	if err := w.d.Stage(ctx, stage(1, 1), &took{}); !errors.Is(err, bus.ErrFenced) {
		t.Errorf("err %v", err)
	}
	w.d.Abandon()
}

func TestPoisonEndsAsAFailure(t *testing.T) {
	w := newWorld(t)
	b := w.connect()
	queue := w.queue(b)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if d, _ := queue.Next(ctx, 100*time.Millisecond); d != nil {
				_ = b.PublishEvent("r1", wire.Event{Kind: wire.Began, Agent: "a", Unit: d.Unit.ID, Incarnation: d.Incarnation, Ack: d.Ack()})
				_ = d.GiveBack(0) // without a word: it died
			}
		}
	})
	defer wg.Wait()
	defer cancel()
	var got took
	if err := w.d.Stage(t.Context(), stage(1, 1), &got); err != nil || len(got.failed()) != 1 || got.results[0].Stage != "latency" {
		t.Errorf("results %+v, err %v; want a failure of the stage that says how often the unit was begun", got.results, err)
	}
}

// An agent that gives its units back does not poison them.
func TestReturnedIsNoPoison(t *testing.T) {
	var h hands
	for i := range uint64(3 * wire.MaxBegun) {
		e := wire.Event{Agent: "a", Unit: "u", Incarnation: i + 1}
		if n := h.began(&e); n > 1 {
			t.Fatalf("begun %d times after %d returns", n, i)
		}
		h.returned(&e)
	}
}

// What was handed out and given back unbegun was not seen by the target.
func TestUnbegunDeliveriesDoNotCount(t *testing.T) {
	w := newWorld(t)
	refuse := 2
	b := w.connect()
	queue := w.queue(b)
	var worker sync.WaitGroup
	defer worker.Wait()
	worker.Go(func() {
		for range refuse {
			d, err := queue.Next(t.Context(), 5*time.Second)
			if err != nil || d == nil {
				t.Errorf("no unit: %v", err)
				return
			}
			_ = b.PublishEvent("r1", wire.Event{Kind: wire.Declined, Agent: "a", Unit: d.Unit.ID, Incarnation: d.Incarnation, Reason: "busy"})
			_ = d.GiveBack(0)
		}
		w.serve(1, func(*wire.Unit) *wire.Result { return &wire.Result{} })
	})
	var got took
	if err := w.d.Stage(t.Context(), stage(1, 1), &got); err != nil || len(got.results) != 1 || got.results[0].Incarnation != 1 {
		t.Errorf("results %+v, %v; want one of what counts as the first incarnation", got.results[0], err)
	}
}

// The unit of an agent whose process is gone goes to another at once.
func TestUnitOfADeadAgentIsHandedOn(t *testing.T) {
	w := newWorld(t)
	dead := w.connect()
	queue := w.queue(dead)
	var killed time.Time
	var handed time.Duration
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		d, err := queue.Next(t.Context(), 5*time.Second)
		if err != nil || d == nil {
			t.Errorf("no unit: %v", err)
			return
		}
		_ = dead.PublishEvent("r1", wire.Event{Kind: wire.Began, Agent: "dead", Unit: d.Unit.ID, Incarnation: d.Incarnation, Ack: d.Ack()})
		killed = time.Now()
		dead.Close()
		w.serve(1, func(*wire.Unit) *wire.Result { handed = time.Since(killed); return &wire.Result{} })
	})
	var got took
	if err := w.d.Stage(t.Context(), stage(1, 1), &got); err != nil || len(got.results) != 1 || got.results[0].Incarnation != 2 {
		t.Fatalf("results %+v, %v; want one of the second incarnation", got.results, err)
	}
	if !slices.Equal(got.lost, []string{"dead"}) {
		t.Errorf("lost %v, want the dead agent", got.lost)
	}
	if handed > 500*time.Millisecond {
		t.Errorf("handed on after %v, want 500ms at most", handed)
	}
}

// What an earlier controller has collected is not done again, and what comes
// before its stage is kept for it.
func TestResumeRepeatsNothing(t *testing.T) {
	stored := map[string]*wire.Result{"s00-00001": {V: wire.Version, Run: "r1", Stage: "latency", Unit: "s00-00001", Final: true}}
	w := newWorld(t, func(o *Options) { o.Stored = stored })
	var mu sync.Mutex
	worked := map[string]int{}
	w.serve(1, func(u *wire.Unit) *wire.Result {
		mu.Lock()
		defer mu.Unlock()
		worked[u.ID]++
		return &wire.Result{}
	})
	early := &wire.Result{V: wire.Version, Run: "r1", Stage: "next", Unit: "s01-00000", Agent: "a", Incarnation: 1, Final: true}
	if err := w.controller.PublishResult(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	var first, second took
	if err := w.d.Stage(t.Context(), stage(3, 1), &first); err != nil || len(first.results) != 3 {
		t.Fatalf("%d results, %v", len(first.results), err)
	}
	next := stage(2, 1)
	next.Name = "next"
	if err := w.d.Stage(t.Context(), next, &second); err != nil || len(second.results) != 2 {
		t.Fatalf("%d results, %v", len(second.results), err)
	}
	if diff := cmp.Diff(map[string]int{"s00-00000": 1, "s00-00002": 1, "s01-00001": 1}, worked); diff != "" {
		t.Errorf("worked (-want +got):\n%s", diff)
	}
}

func TestResultThatFindsNoRoomIsSaid(t *testing.T) {
	w := newWorld(t)
	if err := w.controller.PublishEvent("r1", wire.Event{Kind: wire.Unstored, Agent: "a1", Unit: "s00-00000", Reason: "maximum bytes exceeded"}); err != nil {
		t.Fatal(err)
	}
	if said := <-w.warned; !strings.Contains(said, "a1") || !strings.Contains(said, "maximum bytes") {
		t.Errorf("said %q", said)
	}
	w.d.mu.Lock()
	w.d.unstored["s00-00000 a1"] = time.Now().Add(-storeWait)
	w.d.mu.Unlock()
	w.d.unstorable(&wire.Event{Agent: "a1", Unit: "s00-00000", Reason: "maximum bytes exceeded"})
	if err := w.d.Stage(t.Context(), stage(1, 1), &took{}); err == nil || !strings.Contains(err.Error(), "runs resume r1") {
		t.Errorf("err %v, want one that says how to go on", err)
	}
}

func TestCloseTakesTheQueuedUnitsBack(t *testing.T) {
	w := newWorld(t)
	released := make(chan struct{})
	stop, err := w.connect().OnControl(func(run string, c wire.Control) {
		if run == "r1" && c.Kind == wire.Release {
			close(released)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	st := stage(3, 0)
	st.Number("r1", 0)
	units := []*wire.Unit{&st.Units[0], &st.Units[1], &st.Units[2]}
	for range 2 { // what is queued already stays as it is
		if err := w.controller.PublishUnits(t.Context(), w.d.queue, units); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.d.Close(); err != nil {
		t.Fatal(err)
	}
	<-released
	if d, err := w.queue(w.connect()).Next(t.Context(), 100*time.Millisecond); d != nil || err != nil {
		t.Errorf("Next = %+v, %v; want nothing of a run that is over", d, err)
	}
}

func TestCollectorDropsOtherRuns(t *testing.T) {
	w := newWorld(t)
	var got took
	c := newCollector(w.d, []wire.Unit{{ID: "s00-00000"}}, &got)
	c.take(&wire.Result{Run: "r2", Unit: "s00-00000", Final: true})
	if c.missing() != 1 || len(got.results) != 0 {
		t.Errorf("%d missing, %d results after one of another run", c.missing(), len(got.results))
	}
	c.take(&wire.Result{Run: "r1", Unit: "s00-00000", Final: true})
	if c.missing() != 0 || len(got.results) != 1 {
		t.Errorf("%d missing, %d results", c.missing(), len(got.results))
	}
}

func TestPoolNameIsChecked(t *testing.T) {
	if _, err := New(t.Context(), Options{Pool: "a.*"}); err == nil || !strings.Contains(err.Error(), "pool") {
		t.Errorf("err %v, want one about the pool's name", err)
	}
}
