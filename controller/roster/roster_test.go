package roster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/faultproxy/schedule"
)

// startFleet runs a real server inside the test, with the streams of a fleet.
func startFleet(t *testing.T) (*server.Server, *bus.Bus) {
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
	b := connect(t, srv, "controller")
	if err := b.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	return srv, b
}

func connect(t *testing.T, srv *server.Server, name string) *bus.Bus {
	t.Helper()
	b, err := bus.InProcess(name, srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func open(t *testing.T, b *bus.Bus) *Roster {
	t.Helper()
	r, err := Open(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func hello(id string, change func(*wire.Hello)) wire.Hello {
	h := wire.Hello{V: wire.Version, ID: id, Version: "x", Pools: []string{wire.DefaultPool}, Digest: schedule.Digest(), Labels: map[string]string{"zone": "eu"}}
	if change != nil {
		change(&h)
	}
	return h
}

func announce(t *testing.T, b *bus.Bus, hellos ...wire.Hello) {
	t.Helper()
	for _, h := range hellos {
		if err := b.Announce(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
}

// Of two agents of one name neither is given work: what is said to one is heard by
// both.
func TestTwinsAreRefused(t *testing.T) {
	_, b := startFleet(t)
	r := open(t, b)
	for i, instance := range []string{"one", "two", "one"} {
		announce(t, b, hello("a", func(h *wire.Hello) { h.Instance, h.Units = instance, int64(i+1) }))
		until(t, r, "the entry of "+instance, func() bool { all := r.All(); return len(all) == 1 && all[0].Units == int64(i+1) })
		if fit, _ := r.Members(wire.DefaultPool, Selector{}); i < 2 && len(fit) != 1 {
			t.Errorf("%d members after %s, want one: it follows the other", len(fit), instance)
		}
	}
	fit, refused := r.Members(wire.DefaultPool, Selector{})
	if want := []string{"a: incompatible: two agents of this name are at work: stop one, or give it a --name of its own"}; len(fit) != 0 || cmp.Diff(want, refused) != "" {
		t.Errorf("members %+v, refused %q; want %q", fit, refused, want)
	}
}

// until waits for a condition that changes of the registry bring about.
func until(t *testing.T, r *Roster, what string, holds func() bool) {
	t.Helper()
	limit := time.After(3*wire.Heartbeat + 5*time.Second)
	for {
		changed := r.fleet.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("not within the time: %s", what)
		}
	}
}

func TestMembersFitOrAreRefusedWithTheReason(t *testing.T) {
	_, b := startFleet(t)
	announce(t, b,
		hello("a", nil),
		hello("busy", func(h *wire.Hello) { h.Load = wire.Holding{Run: "r1", Unit: "u1"} }),
		hello("draining", func(h *wire.Hello) { h.Draining = true }),
		hello("old", func(h *wire.Hello) { h.V = wire.Version + 1 }),
		hello("other", func(h *wire.Hello) { h.Digest = "0123456789abcdef" }),
		hello("pool", func(h *wire.Hello) { h.Pools = []string{"gpu", "big"} }),
		hello("zone", func(h *wire.Hello) { h.Labels["zone"] = "us" }),
	)
	r := open(t, b)
	sel, err := ParseSelector([]string{"zone=eu"})
	if err != nil {
		t.Fatal(err)
	}
	fit, refused := r.Members(wire.DefaultPool, sel)
	var got []string
	for _, m := range fit {
		got = append(got, m.ID+" "+m.State)
	}
	if diff := cmp.Diff([]string{"a idle", "busy busy"}, got); diff != "" {
		t.Errorf("fit (-want +got):\n%s", diff)
	}
	own := schedule.Digest()[:8]
	want := []string{
		"draining: draining: it takes no new work",
		fmt.Sprintf("old: incompatible: speaks protocol %d, this build %d: run the same release on both sides", wire.Version+1, wire.Version),
		"other: incompatible: would draw other faults (schedule digest 01234567, this build's " + own + "): run the same release on both sides",
		"pool: serves pool gpu, big",
		"zone: zone=us, wanted zone=eu",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if all := r.All(); len(all) != 7 || all[3].State != Incompatible || all[3].Incompatible == "" {
		t.Errorf("All = %+v; want all seven, sorted, the incompatible with the reason", all)
	}
}

// An agent whose entry runs out is lost, one that takes its leave is not there
// any more, one that comes back is idle.
func TestLostLeftAndBack(t *testing.T) {
	_, b := startFleet(t)
	r := open(t, b)
	announce(t, b, hello("dies", nil), hello("leaves", nil))
	until(t, r, "both are there", func() bool { return len(r.All()) == 2 })
	if err := b.Leave(t.Context(), "leaves"); err != nil {
		t.Fatal(err)
	}
	until(t, r, "one is lost, the other forgotten", func() bool {
		all := r.All()
		return len(all) == 1 && all[0].ID == "dies" && all[0].State == Lost
	})
	if fit, refused := r.Members(wire.DefaultPool, Selector{}); len(fit) != 0 || len(refused) != 1 || !strings.HasPrefix(refused[0], "dies: lost") {
		t.Errorf("Members = %v, %v; want the lost one refused", fit, refused)
	}
	announce(t, b, hello("dies", nil))
	until(t, r, "it is back", func() bool { all := r.All(); return len(all) == 1 && all[0].State == Idle })
}

// answer lets an agent answer pings with the roster's own clock and an offset,
// after and before a delay of up to 2 ms that stands for the network.
func answer(t *testing.T, b *bus.Bus, r *Roster, id string, offset func() time.Duration) {
	t.Helper()
	delay := func() { time.Sleep(rand.N(2 * time.Millisecond)) }
	stop, err := b.OnRequest(id, func(wire.Request) wire.Ready {
		delay()
		clock := r.Now() + int64(offset())
		delay()
		return wire.Ready{V: wire.Version, Agent: id, Clock: clock}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// Clocks that are off by up to 300 ms: the true offset lies within the stated
// bound in every one of 200 tries.
func TestOffsetIsWithinTheBound(t *testing.T) {
	srv, b := startFleet(t)
	r := open(t, b)
	const agents, rounds = 20, 10
	var mu sync.Mutex
	truth := map[string]time.Duration{}
	var ids []string
	for i := range agents {
		id := fmt.Sprintf("a%d", i)
		ids = append(ids, id)
		announce(t, b, hello(id, nil))
		answer(t, connect(t, srv, id), r, id, func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return truth[id]
		})
	}
	until(t, r, "all are there", func() bool { return len(r.All()) == agents })
	for range rounds {
		mu.Lock()
		for _, id := range ids {
			// Far from where it was: a clock that moved by less than the bounds is one that
			// drifted, and the tighter of two readings that agree is kept.
			for before := truth[id]; (truth[id] - before).Abs() < 50*time.Millisecond; {
				truth[id] = rand.N(600*time.Millisecond) - 300*time.Millisecond
			}
		}
		mu.Unlock()
		for id, got := range r.Clock(t.Context(), ids) {
			if wrong := (got.Offset - truth[id]).Abs(); got.Err != nil || wrong > got.Bound || got.Bound > 20*time.Millisecond {
				t.Errorf("%s: offset %v ± %v, %v; truth %v", id, got.Offset, got.Bound, got.Err, truth[id])
			}
		}
		for _, m := range r.All() { // what members say holds as well, a little later
			if wrong := (m.Offset - truth[m.ID]).Abs(); !m.Clocked || wrong > m.Bound {
				t.Errorf("member %s: offset %v ± %v, clocked %v; truth %v", m.ID, m.Offset, m.Bound, m.Clocked, truth[m.ID])
			}
		}
	}
}

func TestRecentReadingsOfOneClockAreKept(t *testing.T) {
	t0 := time.Now()
	at := func(s, offset, bound int) Reading {
		return Reading{At: t0.Add(time.Duration(s) * time.Second), Offset: time.Duration(offset) * time.Microsecond, Bound: time.Duration(bound) * time.Microsecond}
	}
	tests := []struct {
		name   string
		before []Reading
		fresh  Reading
		want   Reading
	}{
		{"First", nil, at(0, 500, 100), at(0, 500, 100)},
		{"TighterWins", []Reading{at(0, 500, 100)}, at(10, 450, 90), at(10, 450, 90)},
		{"EarlierWinsAndWidens", []Reading{at(0, 500, 100)}, at(10, 500, 900), at(10, 500, 600)},                      // 10 s x 50 ppm = 500 us
		{"EarlierLosesByItsAge", []Reading{at(0, 500, 100)}, at(50, 500, 900), at(50, 500, 900)},                      // 100 + 2500 us
		{"TooOld", []Reading{at(0, 500, 1)}, at(61, 500, 9000), at(61, 500, 9000)},                                    // 1 + 3050 us
		{"OtherProcess", []Reading{at(0, -300_000, 1)}, at(1, 500, 9000), at(1, 500, 9000)},                           // contradicts
		{"BestOfThree", []Reading{at(0, 500, 100), at(8, 520, 150)}, at(10, 500, 900), at(10, 520, 250)},              // 600, 250, 900
		{"SecondBestWhenTheBestAged", []Reading{at(0, 500, 1), at(40, 520, 150)}, at(61, 0, 9000), at(61, 520, 1200)}, // 150 + 21 s x 50 ppm
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := &Roster{readings: map[string][]Reading{"a": tc.before}}
			if diff := cmp.Diff(tc.want, r.keep("a", tc.fresh)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One agent is gone, one hangs: the third is measured all the same, and the
// one that is gone is lost at once, although its entry still stands.
func TestClockErrorsPerAgent(t *testing.T) {
	srv, b := startFleet(t)
	r := open(t, b)
	announce(t, b, hello("fine", nil), hello("gone", nil), hello("hangs", nil))
	until(t, r, "all are there", func() bool { return len(r.All()) == 3 })
	answer(t, connect(t, srv, "fine"), r, "fine", func() time.Duration { return time.Hour })
	release := make(chan struct{})
	stop, err := connect(t, srv, "hangs").OnRequest("hangs", func(wire.Request) wire.Ready { <-release; return wire.Ready{} })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer close(release)
	got := r.Clock(t.Context(), []string{"fine", "gone", "hangs"})
	if got["fine"].Err != nil || (got["fine"].Offset-time.Hour).Abs() > got["fine"].Bound {
		t.Errorf("fine: %+v", got["fine"])
	}
	if !errors.Is(got["gone"].Err, bus.ErrGone) || !errors.Is(got["hangs"].Err, ErrNoAnswer) {
		t.Errorf("gone: %v, hangs: %v; want %v and %v", got["gone"].Err, got["hangs"].Err, bus.ErrGone, ErrNoAnswer)
	}
	states := map[string]string{}
	for _, m := range r.All() {
		states[m.ID] = m.State
	}
	if diff := cmp.Diff(map[string]string{"fine": Idle, "gone": Lost, "hangs": Idle}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	announce(t, b, hello("gone", nil))
	until(t, r, "its next heartbeat brings it back", func() bool { return r.All()[1].State == Idle })
}

func TestWait(t *testing.T) {
	_, b := startFleet(t)
	r := open(t, b)
	sel, err := ParseSelector([]string{"zone=eu|us"})
	if err != nil {
		t.Fatal(err)
	}
	announce(t, b, hello("a", nil), hello("d", func(h *wire.Hello) { h.Draining = true }))
	until(t, r, "both are there", func() bool { return len(r.All()) == 2 })
	_, err = r.Wait(t.Context(), "big", sel, 2, 0)
	var few *ErrTooFew
	if !errors.As(err, &few) || few.Have != 0 || few.Want != 2 {
		t.Fatalf("err %v, want %T of 0 and 2", err, few)
	}
	want := "0 of 2 agents wanted in pool big with zone=eu|us; refused a: serves pool default; d: draining: it takes no new work; " +
		"start agents with ordeal-agent --nats URL --pool big --label zone=eu, or ask for fewer"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err = r.Wait(t.Context(), wire.DefaultPool, sel, 2, 50*time.Millisecond); !errors.As(err, &few) || few.Have != 1 || !strings.Contains(err.Error(), "after 50ms") {
		t.Errorf("err %v, want 1 of 2 after 50ms", err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err = r.Wait(ctx, wire.DefaultPool, sel, 2, time.Minute); !errors.Is(err, cause) {
		t.Errorf("err %v, want %v", err, cause)
	}
	late := make(chan error, 1)
	go func() { late <- b.Announce(t.Context(), hello("late", nil)) }()
	fit, err := r.Wait(t.Context(), wire.DefaultPool, sel, 2, 10*time.Second)
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if err != nil || len(fit) != 2 || fit[1].ID != "late" {
		t.Errorf("Wait = %v, %v; want a and late", fit, err)
	}
}

func TestManyRefusedAreCounted(t *testing.T) {
	e := &ErrTooFew{Pool: wire.DefaultPool, Want: 1, Refused: []string{"a: x", "b: x", "c: x", "d: x", "e: x", "f: x", "g: x"}}
	want := "0 of 1 agents wanted in pool default; refused a: x; b: x; c: x; d: x; e: x and 2 more; start agents with ordeal-agent --nats URL, or ask for fewer"
	if diff := cmp.Diff(want, e.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
