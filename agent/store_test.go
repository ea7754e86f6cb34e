package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/llm/llmtest"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/metrics"
)

// limitResults sets how many bytes of results the server keeps; -1 = any number.
func (w *world) limitResults(bytes int64) {
	w.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(w.srv))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := js.Stream(w.t.Context(), wire.ResultStream)
	if err != nil {
		w.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.MaxBytes = bytes
	if _, err := js.UpdateStream(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
}

// A full store delays results, and the controller hears why; it loses none.
func TestFullStoreDelaysResults(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	w.limitResults(1)
	w.publish(mockUnit("u1", 40))
	if e := w.event(wire.Unstored); e.Unit != "u1" || !strings.Contains(e.Reason, "maximum bytes") {
		t.Errorf("event %+v, want the unit and the server's reason", e)
	}
	w.limitResults(-1)
	if r := w.result(); r.Incarnation != 1 || r.Calls != 40 || r.Partial {
		t.Errorf("result %+v, want the first one, whole", r)
	}
	for len(w.events) > 0 {
		if e := <-w.events; e.Kind != wire.Began {
			t.Errorf("%+v, want to hear of one failing unit once", e)
		}
	}
}

// Without a lease nobody waits for the result in this place: the unit is handed
// out again.
func TestUnstoredUnitGoesBackWithTheLease(t *testing.T) {
	w := newWorld(t)
	w.boss.change(func(b *boss) { b.grant.TTL = 500 * time.Millisecond })
	w.agent(Options{ID: "a1"})
	w.limitResults(1)
	w.publish(mockUnit("u1", 40))
	w.event(wire.Unstored)
	w.boss.change(func(b *boss) { b.mute = true })
	if e := w.event(wire.Returned); e.Unit != "u1" || !strings.Contains(e.Reason, "stored") {
		t.Errorf("event %+v, want the unit back for that reason", e)
	}
	w.limitResults(-1)
	w.boss.change(func(b *boss) { b.mute = false })
	if r := w.result(); r.Incarnation < 2 || r.Calls != 40 {
		t.Errorf("incarnation %d with %d calls, want the unit worked again", r.Incarnation, r.Calls)
	}
}

// A server that restarts while a unit is at work costs time, and no result.
func TestServerRestartLosesNoResult(t *testing.T) {
	dir := t.TempDir()
	opt := func() *server.Options {
		return &server.Options{Host: "127.0.0.1", Port: -1, MaxPayload: wire.MaxPayload, StoreDir: dir}
	}
	srv := startServer(t, opt())
	url, port := srv.ClientURL(), srv.Addr().String()
	link := func(name string) *bus.Bus {
		b, err := bus.Connect(t.Context(), bus.Link{URLs: url, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	w := &world{t: t, bus: link("controller"), results: make(chan *wire.Result, 10), events: make(chan wire.Event, 100)}
	if err := w.bus.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	w.until(w.bus.Results(t.Context(), "r1", 0, func(r *wire.Result) { w.results <- r }))
	w.until(w.bus.OnEvent("r1", func(e wire.Event) { w.events <- e }))
	w.boss = w.lead("r1", 1)
	hold := make(chan struct{})
	s := llmtest.New(t, func(llmtest.Request) llmtest.Answer { <-hold; return llmtest.Answer{} })
	w.agentOn(link("agent"), Options{ID: "a1"})
	w.publish(chatUnit("u1", s.URL, 1, 3))
	w.event(wire.Began)
	srv.Shutdown()
	srv.WaitForShutdown()
	close(hold) // the unit ends while nobody is there to take its result
	eventually(t, "the unit's calls", func() bool { _, n := lastCall(s); return n == 3 })
	again := opt()
	again.Port = portOf(t, port)
	startServer(t, again)
	if r := w.result(); r.Incarnation != 1 || r.Calls != 3 || r.Partial || r.Failure != nil {
		t.Errorf("result %+v, want the first one, whole", r)
	}
	if _, n := lastCall(s); n != 3 {
		t.Errorf("%d calls, want the unit worked once", n)
	}
}

func TestResultBeyondTheServersPayload(t *testing.T) {
	const limit = 4096
	unit := mockUnit("u1", 5000) // some 40 KB of latencies
	check := func(t *testing.T, r *wire.Result) {
		t.Helper()
		if r.Failure == nil || !strings.Contains(r.Failure.Message, "max_payload 4096") || r.Calls != 5000 || !r.Final {
			t.Errorf("failure %+v, %d calls; want a failure that names the limit", r.Failure, r.Calls)
		}
	}
	t.Run("Unit", func(t *testing.T) {
		w := newWorldOf(t, limit)
		w.agent(Options{ID: "a1"})
		w.publish(unit)
		check(t, w.result())
	})
	t.Run("Share", func(t *testing.T) {
		w := newWorldOf(t, limit)
		w.agent(Options{ID: "a1"})
		w.prepared("a1", unit)
		w.start("r1", "g1")
		check(t, w.result())
	})
}

// Periods of a load are made longer until they fit; their sums stay. Values are kept
// as they are up to 8,192 of them, so it takes some doubling.
func TestPeriodsThatDoNotFitAreMadeLonger(t *testing.T) {
	const limit = 16 << 10
	w := newWorldOf(t, limit)
	a := w.bare()
	r := &wire.Result{V: wire.Version, Run: "r1", Stage: "load", Unit: "u1", Agent: "a1", Incarnation: 1, Final: true, Period: time.Second}
	for i := range 301 { // 100 KB
		p := metrics.Period{Sent: 7, InFlight: int64(i), Callers: 2}
		for v := range int64(200) {
			p.Latency.Record(1000 + v*v)
		}
		r.Periods = append(r.Periods, p)
	}
	if err := a.publish(r); err != nil {
		t.Fatal(err)
	}
	got := w.result()
	var sent, latencies, inFlight int64
	for i := range got.Periods {
		p := &got.Periods[i]
		sent, latencies, inFlight = sent+p.Sent, latencies+p.Latency.N(), max(inFlight, p.InFlight)
		if p.Callers != 2 {
			t.Errorf("period %d has %d callers, want 2", i, p.Callers)
		}
	}
	if got.Failure != nil || sent != 301*7 || latencies != 301*200 || inFlight != 300 {
		t.Errorf("%d sent, %d latencies, %d in flight, failure %+v; want all of it", sent, latencies, inFlight, got.Failure)
	}
	if n := time.Duration(len(got.Periods)); n < 2 || got.Period < 2*time.Second || n*got.Period < 301*time.Second || (n-1)*got.Period >= 301*time.Second {
		t.Errorf("%d periods of %v, want fewer that are longer, of 301 s", n, got.Period)
	}
	if len(r.Periods) != 301 || r.Period != time.Second {
		t.Error("the result itself was changed")
	}
}

// A claim that was not renewed in time may be somebody else's; so may one that
// was made over a connection that has been lost since.
func TestSureClaims(t *testing.T) {
	w := newWorld(t)
	b := connect(t, w.srv)
	fresh := func() *claim { return &claim{bus: b, last: after(time.Now(), time.Minute)} }
	if !fresh().sure() {
		t.Error("a fresh claim is not sure")
	}
	for name, spoil := range map[string]func(*claim){
		"Old":         func(c *claim) { c.last = after(time.Now(), -time.Second) },
		"OnceLost":    func(c *claim) { c.lost = true },
		"Reconnected": func(c *claim) { c.reconnects = 7 },
		"Suspended":   func(c *claim) { c.last.wall = time.Now().Add(-time.Second).UnixNano() },
	} {
		c := fresh()
		if spoil(c); c.sure() {
			t.Errorf("%s: the claim is sure", name)
		}
	}
	c := fresh()
	if b.Close(); c.sure() {
		t.Error("without a connection the claim is sure")
	}
}

// The server confirms a claim, which keeps the unit from being handed out again.
func TestClaimIsConfirmed(t *testing.T) {
	w := newWorld(t)
	a := w.bare()
	w.publish(mockUnit("u1", 1))
	c := a.claim(w.next(time.Second))
	defer c.end()
	before := c.last.mono
	if err := c.renew(t.Context()); err != nil || !c.last.mono.After(before) || !c.sure() {
		t.Errorf("renew = %v, sure %v; want it renewed", err, c.sure())
	}
	c.last = after(time.Now(), -time.Second)
	if err := c.renew(t.Context()); err != nil || c.sure() {
		t.Errorf("renew = %v, sure %v; want doubt after a gap", err, c.sure())
	}
}
