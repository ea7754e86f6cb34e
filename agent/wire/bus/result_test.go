package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/testdata/fleettest"
)

func TestResultsOfOneRunInOrderAndOnce(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	send := func(run, unit string, incarnation uint64, seq int) {
		t.Helper()
		r := result(run, "a1", unit)
		r.Incarnation, r.Seq = incarnation, seq
		must(t, agent.PublishResult(t.Context(), r))
	}
	send("r1", "before", 1, 0)
	last, err := controller.StoredResults(t.Context(), "r1", func(*wire.Result) {})
	must(t, err)
	all, later := make(chan string, 16), make(chan string, 16)
	text := func(to chan string) func(*wire.Result) {
		return func(r *wire.Result) { to <- fmt.Sprintf("%s/%d/%d", r.Unit, r.Incarnation, r.Seq) }
	}
	stop, err := controller.Results(t.Context(), "r1", 0, text(all))
	stopping(t, stop, err)
	stop, err = controller.Results(t.Context(), "r1", last, text(later))
	stopping(t, stop, err)
	for range 3 { // resends
		send("r1", "u1", 1, 0)
		send("r2", "u1", 1, 0)
		send("r1", "u1", 1, 1)
		send("r1", "u1", 2, 0) // worked again
	}
	send("r1", "end", 1, 0)
	want := []string{"before/1/0", "u1/1/0", "u1/1/1", "u1/2/0", "end/1/0"}
	for i, w := range want {
		if got := <-all; got != w {
			t.Errorf("result %s, want %s", got, w)
		}
		if i > 0 {
			if got := <-later; got != w {
				t.Errorf("behind the first: result %s, want %s", got, w)
			}
		}
	}
	if len(all)+len(later) != 0 {
		t.Error("more results than were sent")
	}
}

func TestUnknownVersionOfAResultIsPassedOver(t *testing.T) {
	_, b := setup(t)
	future := result("r1", "a1", "future")
	future.V = wire.Version + 1
	must(t, b.PublishResult(t.Context(), future))
	_, err := b.js.Publish(t.Context(), wire.ResultSubject("r1", "a1", "torn"), []byte("{"))
	must(t, err)
	must(t, b.PublishResult(t.Context(), result("r1", "a1", "known")))
	got := make(chan string, 3)
	stop, err := b.Results(t.Context(), "r1", 0, func(r *wire.Result) { got <- r.Unit })
	stopping(t, stop, err)
	if first := <-got; first != "known" {
		t.Errorf("result of %s, want known", first)
	}
}

// numbered collects results and says what is wrong with them.
type numbered struct {
	mu    sync.Mutex
	units []string
	grown chan struct{}
}

func newNumbered() *numbered { return &numbered{grown: make(chan struct{}, 1)} }

func (n *numbered) add(r *wire.Result) {
	n.mu.Lock()
	n.units = append(n.units, r.Unit)
	n.mu.Unlock()
	select {
	case n.grown <- struct{}{}:
	default:
	}
}

// wait until there are count of them, and check that they are 0, 1, 2 …: none
// lost, none twice, in order.
func (n *numbered) wait(t *testing.T, count int, limit time.Duration) {
	t.Helper()
	over := time.After(limit)
	for {
		n.mu.Lock()
		units := n.units
		n.mu.Unlock()
		for i, u := range units {
			if u != strconv.Itoa(i) {
				t.Fatalf("result %d is of unit %s: lost, doubled or out of order", i, u)
			}
		}
		if len(units) == count {
			return
		}
		select {
		case <-n.grown:
		case <-over:
			t.Fatalf("%d results within %v, want %d", len(units), limit, count)
		}
	}
}

// insist publishes a result until the server has it: a publisher's side of
// "at least once", whose resends the server drops.
func insist(t *testing.T, b *Bus, i int) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); ; {
		err := b.PublishResult(within(t, time.Second), result("r1", "a1", strconv.Itoa(i)))
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // between tries on a real clock: the server is another process
	}
}

// The server is killed and started again twice while results arrive.
func TestResultsSurviveServerRestarts(t *testing.T) {
	t.Parallel()
	n := fleettest.StartNATS(t, fleettest.NATSOptions{})
	reader, writer := dial(t, Link{URLs: n.URL()}), dial(t, Link{URLs: n.URL()})
	prepare(t, reader, Files, queue)
	got := newNumbered()
	stop, err := reader.Results(t.Context(), "r1", 0, got.add)
	stopping(t, stop, err)
	const count = 900
	for i := range count {
		switch i {
		case count / 3:
			got.wait(t, i, 20*time.Second)
			n.Kill()
			n.Restart(t)
		case 2 * count / 3:
			got.wait(t, i, 20*time.Second)
			n.Restart(t)
		}
		insist(t, writer, i)
	}
	got.wait(t, count, 20*time.Second)
	if reader.Reconnects() < 2 {
		t.Errorf("%d reconnects: the test did not restart the server under the reader", reader.Reconnects())
	}
}

// The reader's cable is cut for longer than it takes to notice, then its
// connections are reset, while results arrive.
func TestResultsSurviveACut(t *testing.T) {
	t.Parallel()
	n := fleettest.StartNATS(t, fleettest.NATSOptions{})
	cable := fleettest.NewCut(t, n.Addr())
	reader, writer := dial(t, Link{URLs: cable.URL()}), dial(t, Link{URLs: n.URL()})
	prepare(t, writer, Files, queue)
	got := newNumbered()
	stop, err := reader.Results(t.Context(), "r1", 0, got.add)
	stopping(t, stop, err)
	sent := 0
	send := func(n int) {
		for range n {
			insist(t, writer, sent)
			sent++
		}
	}
	send(300)
	got.wait(t, sent, 20*time.Second)
	cable.Cut()
	send(300)
	noticed := time.Now().Add(pingEvery*(pingsOut+1) + 2*time.Second)
	for reader.Connected() && time.Now().Before(noticed) {
		time.Sleep(50 * time.Millisecond) // a cut is noticed by the clock alone
	}
	if reader.Connected() {
		t.Errorf("the cut was not noticed within %v", pingEvery*(pingsOut+1))
	}
	cable.Heal()
	send(300)
	got.wait(t, sent, 20*time.Second)
	cable.Drop()
	send(300)
	cable.Heal()
	send(300)
	got.wait(t, sent, 20*time.Second)
}

func TestStoredResults(t *testing.T) {
	srv, b := setup(t)
	last, err := b.StoredResults(t.Context(), "r1", func(r *wire.Result) { t.Errorf("result %+v of a run without any", r) })
	if err != nil || last != 0 {
		t.Fatalf("StoredResults = %d, %v; want nothing", last, err)
	}
	const count = 3*readBatch + 17
	writer := connect(t, srv, "writer")
	for i := range count {
		insist(t, writer, i)
	}
	must(t, writer.PublishResult(t.Context(), result("r2", "a1", "other")))
	got := newNumbered()
	last, err = b.StoredResults(t.Context(), "r1", got.add)
	must(t, err)
	got.wait(t, count, 0)
	if last != count {
		t.Errorf("last sequence %d, want %d", last, count)
	}
	must(t, b.PurgeResults(t.Context(), "r1"))
	for run, want := range map[string]int{"r1": 0, "r2": 1} {
		n := 0
		if _, err := b.StoredResults(t.Context(), run, func(*wire.Result) { n++ }); err != nil || n != want {
			t.Errorf("%s after the purge: %d results, %v; want %d", run, n, err, want)
		}
	}
}

// Reading what is stored, and then going on behind it, while results arrive:
// each comes once.
func TestStoredThenLive(t *testing.T) {
	srv, b := setup(t)
	writer := connect(t, srv, "writer")
	const count = 4 * readBatch
	written := make(chan struct{})
	half := make(chan struct{})
	go func() {
		defer close(written)
		for i := range count {
			if err := writer.PublishResult(t.Context(), result("r1", "a1", strconv.Itoa(i))); err != nil {
				t.Error(err)
				return
			}
			if i == count/4 {
				close(half)
			}
		}
	}()
	<-half
	got := newNumbered()
	last, err := b.StoredResults(t.Context(), "r1", got.add)
	must(t, err)
	stop, err := b.Results(t.Context(), "r1", last, got.add)
	stopping(t, stop, err)
	<-written
	got.wait(t, count, 10*time.Second)
}

func TestResultTooLargeForTheServer(t *testing.T) {
	_, b := setup(t)
	r := result("r1", "a1", "u1")
	r.Survey = &wire.Survey{Instructions: strings.Repeat("x", wire.MaxPayload)}
	err := b.PublishResult(t.Context(), r)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "max_payload 8388608; raise it to 8MB") {
		t.Errorf("err %v, want %v with both sizes", err, ErrTooLarge)
	}
}
