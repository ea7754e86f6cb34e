package agent

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// lines collects what an agent logs.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// running is an agent that may not have joined yet.
func running(t *testing.T, b *bus.Bus, opt Options) (ready <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	told, done := make(chan error, 1), make(chan error, 1)
	opt.Ready = func(err error) { told <- err }
	go func() { done <- Run(ctx, b, opt) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return told
}

// An agent that comes before its controller waits for it, says so once, and can
// be seen as soon as there is a registry.
func TestAgentBeforeItsController(t *testing.T) {
	srv := startServer(t, &server.Options{DontListen: true})
	log := &lines{}
	ready := running(t, connect(t, srv), Options{ID: "a1", Log: log.add})
	eventually(t, "it to say that it waits", func() bool { return log.text() != "" })
	select {
	case err := <-ready:
		t.Fatalf("ready without a queue: %v", err)
	case <-time.After(2 * joinAgain):
	}
	w := onServer(t, srv)
	if err := receive(t, ready, "word that it is ready"); err != nil {
		t.Error(err)
	}
	fleet := w.fleet()
	eventually(t, "the agent in the registry", func() bool { _, ok := seen(fleet, "a1"); return ok })
	w.publish(mockUnit("u1", 10))
	w.result()
	if text := log.text(); strings.Count(text, "\n") > 0 || !strings.Contains(text, "waiting for a controller") {
		t.Errorf("log %q, want one line", text)
	}
}

// Agents with the rights of an agent cannot open a queue. They wait for it, and
// are seen meanwhile.
func TestAgentThatMayOnlyWork(t *testing.T) {
	queue := wire.QueueName("own", "d1")
	publish, subscribe := wire.Permissions("a1", []string{queue})
	opt := &server.Options{Host: "127.0.0.1", Port: -1, MaxPayload: wire.MaxPayload, Users: []*server.User{
		{Username: "boss", Password: "b"},
		{Username: "agent", Password: "a", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
			Response: &server.ResponsePermission{MaxMsgs: 1, Expires: 2 * time.Minute}}},
	}}
	srv := startServer(t, opt)
	link := func(l bus.Link) *bus.Bus {
		l.URLs = srv.ClientURL()
		b, err := bus.Connect(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	w := &world{t: t, bus: link(bus.Link{Name: "boss", User: "boss:b"}), results: make(chan *wire.Result, 10)}
	if err := w.bus.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	w.lead("r1", 1)
	w.until(w.bus.Results(t.Context(), "r1", 0, func(r *wire.Result) { w.results <- r }))
	fleet := w.fleet()
	ready := running(t, link(bus.Link{Name: "agent", User: "agent:a", Agent: "a1"}), Options{ID: "a1", Pools: []string{"own"}, Digest: "d1"})
	eventually(t, "the agent in the registry", func() bool { _, ok := seen(fleet, "a1"); return ok })
	if len(ready) > 0 {
		t.Fatal("ready without a queue")
	}
	if err := w.bus.OpenQueue(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ready, "word that it is ready"); err != nil {
		t.Error(err)
	}
	if err := w.bus.PublishUnits(t.Context(), queue, []*wire.Unit{mockUnit("u1", 10)}); err != nil {
		t.Fatal(err)
	}
	if r := w.result(); r.Calls != 10 || r.Failure != nil {
		t.Errorf("result %+v, want the unit worked with the rights of an agent", r)
	}
}

// An agent whose connection is given up is no agent.
func TestAgentOnClosedConnectionEnds(t *testing.T) {
	w := newWorld(t)
	b := connect(t, w.srv)
	b.Close()
	told := make(chan error, 1)
	if err := Run(t.Context(), b, Options{ID: "a1", Ready: func(err error) { told <- err }}); err == nil || <-told == nil {
		t.Errorf("err %v, want the reason in both places", err)
	}
}

func TestHello(t *testing.T) {
	w := newWorld(t)
	fleet := w.fleet()
	w.agent(Options{ID: "a1", Capacity: 123, Labels: map[string]string{"zone": "eu"}, Pools: []string{wire.DefaultPool}})
	w.publish(mockUnit("u1", 10))
	w.result()
	w.publish(mockUnit("u2", endless))
	eventually(t, "what it has in hand", func() bool {
		h, ok := seen(fleet, "a1")
		return ok && h.Load.Unit == "u2" && h.Load.Run == "r1" && h.Units == 1 && h.Load.CPUMilli > 0
	})
	h, _ := seen(fleet, "a1")
	if h.V != wire.Version || h.Capacity != 123 || h.Version != "test" || h.Labels["zone"] != "eu" || h.Draining || h.Load.Cores != runtime.GOMAXPROCS(0) {
		t.Errorf("entry %+v", h)
	}
}

// An agent whose process has all the work it can do is still there for others:
// callers without a pause on one core must not push it out of the registry.
func TestHeartbeatsUnderFullLoad(t *testing.T) {
	const watched = 10 * time.Second
	w := newWorld(t)
	fleet := w.fleet()
	w.agent(Options{ID: "a1"})
	eventually(t, "the agent in the registry", func() bool { _, ok := seen(fleet, "a1"); return ok })
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	quit := make(chan struct{})
	var burning sync.WaitGroup
	for range 16 {
		burning.Go(func() {
			for n := 0; ; n++ {
				if n%1_000_000 == 0 {
					select {
					case <-quit:
						return
					default:
					}
				}
			}
		})
	}
	defer burning.Wait()
	defer close(quit)
	first, _ := seen(fleet, "a1")
	looks, missed, beats, last := 0, 0, 0, first.At
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		looks++
		s, ok := seen(fleet, "a1")
		if !ok {
			missed++
		}
		if ok && s.At.After(last) {
			beats, last = beats+1, s.At
		}
	}
	t.Logf("%d looks, %d without the agent, %d beats", looks, missed, beats)
	if missed > 0 || beats < 3 {
		t.Errorf("missing in %d of %d looks, %d beats in %v; want it there all the time", missed, looks, beats, watched)
	}
}
