package lead

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

func TestCreateStoresTheRecord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		want := record("r1")
		want.V, want.State, want.Generation, want.Holder, want.TTL = wire.Version, wire.Running, 1, "one pid 1", wire.LeaseTTL
		if diff := cmp.Diff(&want, w.run(), cmpopts.IgnoreFields(wire.Run{}, "Claim", "Started")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !c.Sure() || c.Generation() != 1 || !c.Inherited().IsZero() || c.Context().Err() != nil {
			t.Errorf("sure %v, generation %d, inherited %v, context %v", c.Sure(), c.Generation(), c.Inherited(), c.Context().Err())
		}
		_, err := Create(t.Context(), Options{Bus: w.bus, Record: record("r1")})
		if err == nil || !strings.Contains(err.Error(), "run r1 exists already") {
			t.Errorf("created twice: %v", err)
		}
	})
}

func TestRunWithAControllerIsNotTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		begun := time.Now()
		_, err := w.take(t.Context(), "two pid 2")
		var led *Led
		if !errors.As(err, &led) || err.Error() != "run r1 is led by one pid 1; halt it there or wait" {
			t.Errorf("err %v", err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v", took)
		}
		if !c.Sure() || w.run().Generation != 1 {
			t.Error("the attempt has cost the leader its lead")
		}
	})
}

func TestKilledControllerIsReplacedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.create(nil)
		time.Sleep(30 * time.Second)
		old.kill()
		begun := time.Now()
		c := w.mustTake("two pid 2")
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("taken after %v, want at once", took)
		}
		if old.Sure() || !c.Sure() || c.Generation() != 2 {
			t.Errorf("old sure %v, new sure %v, generation %d", old.Sure(), c.Sure(), c.Generation())
		}
		if left := time.Until(c.Inherited()); left <= 0 || left > wire.LeaseTTL {
			t.Errorf("leases of the old controller end in %v, want within the TTL", left)
		}
		r := w.run()
		if r.Holder != "two pid 2" || r.Generation != 2 || r.Active < 29*time.Second {
			t.Errorf("record %+v", r)
		}
		time.Sleep(10 * time.Second)
		if now := w.run(); now.Active < r.Active+6*time.Second || now.Renewals <= r.Renewals {
			t.Errorf("led for %v with %d renewals, before %v with %d", now.Active, now.Renewals, r.Active, r.Renewals)
		}
	})
}

// A cut or stopped controller is replaced after its lease, and when it comes
// back it is silent.
func TestSilentControllerIsReplacedAfterItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.create(nil)
		time.Sleep(5 * time.Second)
		old.link.freeze()
		begun := time.Now()
		c := w.mustTake("two pid 2")
		if took := time.Since(begun); took < wire.LeaseTTL || took > wire.LeaseTTL+3*time.Second {
			t.Errorf("taken after %v, want the TTL and a little", took)
		}
		if old.Sure() || !c.Inherited().IsZero() {
			t.Errorf("old sure %v, inherited %v; want no lease left", old.Sure(), c.Inherited())
		}
		old.link.thaw()
		for range 20 {
			if g, err := w.ask(wire.Ask{}); err != nil || g.Generation != 2 {
				t.Fatalf("grant %+v, %v; want one of generation 2", g, err)
			}
		}
		<-old.Lost()
		if cause := context.Cause(old.Context()); !errors.Is(cause, bus.ErrFenced) || !strings.Contains(cause.Error(), "two pid 2, generation 2") {
			t.Errorf("cause %v", cause)
		}
		if err := old.Update(t.Context(), func(r *wire.Run) { r.Stage = "mine" }); !errors.Is(err, bus.ErrFenced) {
			t.Errorf("the old one could write: %v", err)
		}
		if r := w.run(); r.Generation != 2 || r.Stage != "" {
			t.Errorf("record %+v", r)
		}
	})
}

func TestControllerThatComesBackInTimeKeepsTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.create(nil)
		old.link.freeze()
		time.AfterFunc(8*time.Second, old.link.thaw)
		_, err := w.take(t.Context(), "two pid 2")
		var led *Led
		if !errors.As(err, &led) {
			t.Errorf("err %v, want %T", err, led)
		}
		if !old.Sure() || old.Generation() != 1 || old.Err() != nil {
			t.Errorf("sure %v, generation %d, %v", old.Sure(), old.Generation(), old.Err())
		}
	})
}

// Whoever is left without an answer by a leader that lives is not to take its run.
func TestManySuccessorsMakeOneLeader(t *testing.T) {
	for name, vanish := range map[string]func(*controller){
		"Killed": (*controller).kill,
		"Silent": func(c *controller) { c.link.freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				vanish(w.create(nil))
				const many = 8
				var wg sync.WaitGroup
				errs := make([]error, many)
				leaders := make([]*controller, many)
				for i := range many {
					wg.Go(func() { leaders[i], errs[i] = w.take(t.Context(), "heir") })
				}
				wg.Wait()
				won := 0
				for i, err := range errs {
					var led *Led
					switch {
					case err == nil:
						won++
						if !leaders[i].Sure() {
							t.Error("the winner is not sure")
						}
					case !errors.As(err, &led):
						t.Errorf("err %v, want %T", err, led)
					}
				}
				if won != 1 || w.run().Generation != 2 {
					t.Errorf("%d leaders, generation %d; want one of generation 2", won, w.run().Generation)
				}
			})
		})
	}
}

func TestTakeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		state  wire.RunState
		doc    string
		id     string
		want   string
		target error
	}{
		"Finished": {state: wire.Finished, doc: "r1/1", want: "run r1 is finished: see ordeal runs report r1"},
		"Stopped":  {state: wire.Stopped, doc: "r1/1", want: "run r1 is stopped: see ordeal runs report r1"},
		"Failed":   {state: wire.Failed, want: "run r1 is failed: start it again, it has no document"},
		"Unknown":  {state: wire.Running, id: "r2", want: "run r2: no such run", target: bus.ErrNoRun},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r := record("r1")
				r.State, r.Document = c.state, c.doc
				if _, err := w.bus.CreateRun(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
				id := "r1"
				if c.id != "" {
					id = c.id
				}
				_, _, err := Take(t.Context(), id, Options{Bus: w.bus})
				if err == nil || err.Error() != c.want || c.target != nil && !errors.Is(err, c.target) {
					t.Errorf("err %v, want %s", err, c.want)
				}
				if w.run().Generation != 0 {
					t.Error("the record was changed")
				}
			})
		})
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(nil).link.freeze()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		if _, err := w.take(ctx, "two"); !errors.Is(err, cause) {
			t.Errorf("err %v, want %v", err, cause)
		}
	})
}

func TestShortLeaseIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := Create(t.Context(), Options{Bus: w.bus, Record: record("r1"), TTL: 900 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "at least 1s") {
			t.Errorf("err %v", err)
		}
	})
}

func TestLook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		check := func(want Sign, holder string) {
			t.Helper()
			if sign, who := Look(t.Context(), w.bus, "r1"); sign != want || who != holder {
				t.Errorf("%s %q, want %s %q", sign, who, want, holder)
			}
		}
		check(Gone, "")
		c := w.create(nil)
		check(Answers, "one pid 1")
		c.link.freeze()
		check(Silent, "")
		c.kill()
		synctest.Wait()
		check(Gone, "")
	})
}
