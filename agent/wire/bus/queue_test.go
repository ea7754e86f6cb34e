package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
)

// queued is how many units the server holds, in hand or not.
func queued(t testing.TB, b *Bus) uint64 {
	t.Helper()
	stream, err := b.js.Stream(t.Context(), wire.UnitStream)
	must(t, err)
	return stream.CachedInfo().State.Msgs
}

func TestUnitGoesToOneAgentAndItsResultComesBackOnce(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	q, other := join(t, agent, queue), join(t, connect(t, srv, "other"), queue)
	results := make(chan *wire.Result, 10)
	stop, err := controller.Results(t.Context(), "r1", 0, func(r *wire.Result) { results <- r })
	stopping(t, stop, err)
	publish(t, controller, queue, unit("r1", "u1"))
	d := next(t, q)
	if diff := cmp.Diff(unit("r1", "u1"), &d.Unit); diff != "" || d.Incarnation != 1 {
		t.Errorf("incarnation %d, unit (-want +got):\n%s", d.Incarnation, diff)
	}
	none(t, other)
	for range 2 { // a resend is dropped
		must(t, agent.PublishResult(t.Context(), result("r1", "a1", "u1")))
	}
	must(t, d.Done(t.Context()))
	if got := <-results; got.Unit != "u1" {
		t.Errorf("result of %q, want u1", got.Unit)
	}
	none(t, q)
	select {
	case r := <-results:
		t.Errorf("a second result: %+v", r)
	default:
	}
}

// A unit stays in the stream until it is acknowledged; what is queued again
// meanwhile is no second unit and no error, by whichever controller.
func TestUnitStaysUntilItIsAcknowledged(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	again := func(when string) {
		t.Helper()
		for generation := range uint64(3) {
			u := unit("r1", "u1")
			u.Gen = generation // 1 and 2 have message ids that the server has not seen
			publish(t, controller, queue, u)
		}
		if n := queued(t, controller); n != 1 {
			t.Fatalf("%s: %d units, want 1", when, n)
		}
	}
	again("queued")
	d := next(t, q)
	again("in hand")
	none(t, q)
	if d.Unit.Gen != 0 {
		t.Errorf("generation %d, want the one that was queued first", d.Unit.Gen)
	}
	must(t, d.Done(t.Context()))
	if n := queued(t, controller); n != 0 {
		t.Errorf("%d units after the acknowledgement, want none", n)
	}
	publish(t, controller, queue, unit("r1", "u1")) // a late resend
	none(t, q)
	u := unit("r1", "u1")
	u.Gen = 3
	publish(t, controller, queue, u) // a controller that wants it worked again
	if d := next(t, q); d.Unit.Gen != 3 || d.Incarnation != 1 {
		t.Errorf("generation %d, incarnation %d; want 3 and 1", d.Unit.Gen, d.Incarnation)
	}
}

func TestReturnedUnitComesAgainWithTheNextIncarnation(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	publish(t, controller, queue, unit("r1", "u1"))
	for want := uint64(1); want <= 2*wire.MaxBegun; want++ { // the server sets no limit
		d := next(t, q)
		if d.Incarnation != want {
			t.Errorf("incarnation %d, want %d", d.Incarnation, want)
		}
		must(t, d.GiveBack(0))
	}
	d := next(t, q)
	begun := time.Now()
	must(t, d.GiveBack(300*time.Millisecond))
	next(t, q)
	if took := time.Since(begun); took < 300*time.Millisecond || took > 2*time.Second {
		t.Errorf("came again after %v, want 300ms", took)
	}
}

// The controller hands a unit on for an agent that died: it comes at once, not
// after AckWait, also to an agent that is waiting already.
func TestHandOnRedeliversAtOnce(t *testing.T) {
	srv, controller := setup(t)
	dead := connect(t, srv, "dead")
	publish(t, controller, queue, unit("r1", "u1"))
	ack := next(t, join(t, dead, queue)).Ack()
	dead.Close()
	type outcome struct {
		d   *Delivery
		err error
	}
	heir := join(t, connect(t, srv, "heir"), queue)
	came := make(chan outcome, 1)
	go func() {
		d, err := heir.Next(t.Context(), 5*time.Second)
		came <- outcome{d, err}
	}()
	begun := time.Now()
	must(t, controller.HandOn(ack))
	o := <-came
	if took := time.Since(begun); o.err != nil || o.d == nil || o.d.Incarnation != 2 || took > 300*time.Millisecond {
		t.Fatalf("%+v, %v after %v; want the second incarnation within 300ms", o.d, o.err, took)
	}
	must(t, controller.HandOn(ack)) // said twice, it takes the unit from the heir: the server does not fence it
	if d := next(t, heir); d.Incarnation != 3 {
		t.Errorf("incarnation %d, want 3", d.Incarnation)
	}
	must(t, o.d.Done(t.Context()))
	if n := queued(t, controller); n != 0 {
		t.Errorf("%d units, want none", n)
	}
	for _, no := range []string{"", "ordeal.v1.unit.x.r1.u1", wire.ControlSubject("r1")} {
		if err := controller.HandOn(no); err == nil {
			t.Errorf("HandOn(%q) published", no)
		}
	}
}

// A unit longer than the wait for an ack stays with its agent while that says
// so, and goes to another once it has been silent for that long.
func TestClaimLastsWhileItIsRenewed(t *testing.T) {
	srv, controller := setup(t)
	const wait = 600 * time.Millisecond // in place of wire.AckWait
	config := queueConfig(queue)
	config.AckWait = wait
	_, err := controller.js.UpdateConsumer(t.Context(), wire.UnitStream, config)
	must(t, err)
	q, other := join(t, connect(t, srv, "agent"), queue), join(t, connect(t, srv, "other"), queue)
	publish(t, controller, queue, unit("r1", "u1"))
	d := next(t, q)
	for i := range 9 {
		if i%2 == 0 {
			must(t, d.Confirm(within(t, 5*time.Second)))
		} else {
			must(t, d.Confirm(within(t, wait)))
		}
		if again, err := other.Next(t.Context(), wait/3); again != nil || err != nil {
			t.Fatalf("renewal %d: Next = %v, %v; want nothing", i, again, err)
		}
	}
	again := next(t, other)
	if again.Incarnation != 2 {
		t.Errorf("incarnation %d, want 2", again.Incarnation)
	}
	must(t, again.Done(t.Context()))
}

// Acknowledgements are not fenced: that of an agent which lost its claim counts.
// This is why a result is stored before, and never concluded from an ack.
func TestLateAcknowledgementCounts(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	publish(t, controller, queue, unit("r1", "u1"))
	first := next(t, q)
	must(t, controller.HandOn(first.Ack()))
	second := next(t, q)
	must(t, first.Done(t.Context()))
	if n := queued(t, controller); n != 0 {
		t.Errorf("%d units, want none", n)
	}
	must(t, second.Done(t.Context()))
}

func TestDroppedUnitIsGone(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	publish(t, controller, queue, unit("r1", "u1"))
	must(t, next(t, q).Drop("the run is over"))
	none(t, q)
	if n := queued(t, controller); n != 0 {
		t.Errorf("%d units, want none", n)
	}
}

func TestOtherVersionIsLeftToOthers(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	u := unit("r1", "future")
	u.V = wire.Version + 1
	publish(t, controller, queue, u)
	if d, err := q.Next(t.Context(), time.Second); !errors.Is(err, errVersion) || d != nil {
		t.Errorf("Next = %v, %v; want an error that names the version", d, err)
	}
	if n := queued(t, controller); n != 1 {
		t.Errorf("%d units, want it still there", n)
	}
}

func TestMalformedUnitIsRemoved(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	_, err := controller.js.Publish(t.Context(), wire.UnitSubject(queue, "r1", "u1"), []byte("{"))
	must(t, err)
	if d, err := q.Next(t.Context(), time.Second); err == nil || d != nil || !strings.Contains(err.Error(), wire.UnitSubject(queue, "r1", "u1")) {
		t.Errorf("Next = %v, %v; want an error that names the subject", d, err)
	}
	none(t, q)
	if n := queued(t, controller); n != 0 {
		t.Errorf("%d units, want none", n)
	}
}

func TestPurgeAndRemoveTakeBackWhatTheyName(t *testing.T) {
	srv, controller := setup(t)
	q := join(t, connect(t, srv, "agent"), queue)
	publish(t, controller, queue, unit("r1", "in-hand"))
	held := next(t, q)
	publish(t, controller, queue, unit("r1", "u1"), unit("r1", "u2"), unit("r2", "u1"), unit("r2", "kept"))
	must(t, controller.Purge(t.Context(), queue, "r1"))
	must(t, controller.Remove(t.Context(), queue, "r2", "u1"))
	must(t, controller.Remove(t.Context(), queue, "r2", "never-there"))
	if d := next(t, q); d.Unit.Run != "r2" || d.Unit.ID != "kept" {
		t.Errorf("unit %s of %s, want the one that nobody took back", d.Unit.ID, d.Unit.Run)
	}
	none(t, q)
	must(t, held.GiveBack(0)) // purged in hand: there is nothing to give back
	none(t, q)
}

func TestQueueThatNobodyOpened(t *testing.T) {
	srv := startServer(t)
	b := connect(t, srv, "agent")
	if _, err := b.Queue(t.Context(), queue); !errors.Is(err, ErrNoQueue) {
		t.Errorf("without streams: %v, want %v", err, ErrNoQueue)
	}
	must(t, b.Setup(t.Context(), Memory))
	if _, err := b.Queue(t.Context(), queue); !errors.Is(err, ErrNoQueue) {
		t.Errorf("without a consumer: %v, want %v", err, ErrNoQueue)
	}
	for range 2 { // it may be opened again
		must(t, b.OpenQueue(t.Context(), queue))
	}
	join(t, b, queue)
}

// Agents that would draw other faults have another queue.
func TestQueuesAreApart(t *testing.T) {
	srv, controller := setup(t)
	other := wire.QueueName(wire.DefaultPool, "fedcba9876543210")
	must(t, controller.OpenQueue(t.Context(), other))
	publish(t, controller, other, unit("r1", "u1"))
	agent := connect(t, srv, "agent")
	none(t, join(t, agent, queue))
	next(t, join(t, agent, other))
}

// A publisher keeps at most a window of units without an answer, and all of
// them arrive.
func TestPublishUnitsKeepsAWindow(t *testing.T) {
	_, controller := setup(t)
	const n = 4 * outstanding
	units := make([]*wire.Unit, n)
	for i := range units {
		units[i] = unit("r1", fmt.Sprintf("u%d", i))
	}
	done := make(chan error, 1)
	go func() { done <- controller.PublishUnits(t.Context(), queue, units) }()
	most := 0
	for {
		select {
		case err := <-done:
			must(t, err)
			if got := queued(t, controller); got != n {
				t.Errorf("%d units, want %d", got, n)
			}
			if most == 0 || most > outstanding {
				t.Errorf("up to %d were outstanding, want some and at most %d", most, outstanding)
			}
			return
		default:
			most = max(most, controller.js.PublishAsyncPending())
		}
	}
}

func TestPublishUnitsEndsWithItsContext(t *testing.T) {
	srv, controller := setup(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := controller.PublishUnits(ctx, queue, []*wire.Unit{unit("r1", "u1")}); err != nil && !errors.Is(err, enough) {
		t.Errorf("err %v, want %v or success", err, enough)
	}
	srv.Shutdown()
	if err := controller.PublishUnits(ctx, queue, []*wire.Unit{unit("r1", "u2")}); err == nil {
		t.Error("queued a unit without a server")
	}
}

// A unit whose controller died without taking it back does not wait for ever,
// and its agent is given the time it was promised.
func TestStreamsAreSetUpAsTheContractSays(t *testing.T) {
	srv := serve(t, func(o *server.Options) { o.DontListen = true })
	b := connect(t, srv, "controller")
	for range 2 { // set-up may be repeated
		prepare(t, b, Files, queue)
	}
	units, err := b.js.Stream(t.Context(), wire.UnitStream)
	must(t, err)
	results, err := b.js.Stream(t.Context(), wire.ResultStream)
	must(t, err)
	consumer, err := b.js.Consumer(t.Context(), wire.UnitStream, wire.ConsumerName(queue))
	must(t, err)
	got := []any{units.CachedInfo().Config.MaxAge, results.CachedInfo().Config.MaxAge, units.CachedInfo().Config.Duplicates, consumer.CachedInfo().Config.AckWait, consumer.CachedInfo().Config.MaxDeliver}
	want := []any{wire.UnitTTL, wire.ResultTTL, wire.DedupeWindow, wire.AckWait, -1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
