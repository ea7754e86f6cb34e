package lead

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// queued puts a unit of r1 into a queue.
func (w *world) queued() {
	w.t.Helper()
	u := &wire.Unit{V: wire.Version, Run: "r1", ID: "s00-00000", Gen: 1}
	if err := w.bus.PublishUnits(w.t.Context(), "default_0123", []*wire.Unit{u}); err != nil {
		w.t.Fatal(err)
	}
}

// next is the unit that an agent would get.
func (w *world) next() *bus.Delivery {
	w.t.Helper()
	if err := w.bus.OpenQueue(w.t.Context(), "default_0123"); err != nil {
		w.t.Fatal(err)
	}
	q, err := w.bus.Queue(w.t.Context(), "default_0123")
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := q.Next(w.t.Context(), 100*time.Millisecond)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func TestHaltGoesThroughTheController(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		heard := w.controls()
		begun := time.Now()
		holder, err := Halt(t.Context(), w.bus, "r1", "too hot")
		if err != nil || holder != "one pid 1" {
			t.Fatalf("halted by %q, %v", holder, err)
		}
		if m := <-heard; m.Kind != wire.Halt || m.Reason != "halted: too hot" || m.Generation != 1 || time.Since(begun) > 100*time.Millisecond {
			t.Errorf("agents heard %+v after %v", m, time.Since(begun))
		}
		var halted *Halted
		if cause := context.Cause(c.Context()); !errors.As(cause, &halted) || halted.Reason != "too hot" {
			t.Errorf("cause %v", cause)
		}
		if !c.Sure() || c.Err() != nil || w.run().State != wire.Running {
			t.Errorf("sure %v, %v, state %s; the run is still the controller's to end", c.Sure(), c.Err(), w.run().State)
		}
		if g, err := w.ask(wire.Ask{Calls: 1}); err != nil || g.Denied != "halted: too hot" || g.Calls != 0 {
			t.Errorf("grant %+v, %v", g, err)
		}
		if _, err := Halt(t.Context(), w.bus, "r1", "again"); err != nil || len(heard) != 0 {
			t.Errorf("a second halt: %v, %d further messages", err, len(heard))
		}
	})
}

func TestHaltWithoutAController(t *testing.T) {
	for name, c := range map[string]struct {
		vanish func(*controller)
		most   time.Duration
	}{
		"Killed": {(*controller).kill, haltWait},
		"Silent": {func(c *controller) { c.link.freeze() }, haltWait},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				old := w.create(nil)
				heard := w.controls()
				w.queued()
				c.vanish(old)
				begun := time.Now()
				told := make(chan time.Duration, 1)
				go func() {
					if m := <-heard; m.Kind == wire.Halt && m.Generation == 1 {
						told <- time.Since(begun)
					}
				}()
				holder, err := Halt(t.Context(), w.bus, "r1", "too hot")
				if err != nil || holder != "" || time.Since(begun) > c.most {
					t.Fatalf("halted by %q after %v, %v", holder, time.Since(begun), err)
				}
				if d := <-told; d > 500*time.Millisecond {
					t.Errorf("agents were told after %v", d)
				}
				if m := <-heard; m.Kind != wire.Halt || m.Generation != 2 {
					t.Errorf("then %+v, want the higher generation", m)
				}
				if r := w.run(); r.State != wire.Stopped || r.Reason != "halted: too hot" || r.Generation != 2 || r.Holder != "one pid 1" {
					t.Errorf("record %+v", r)
				}
				if d := w.next(); d != nil {
					t.Errorf("unit %s is still queued", d.Unit.ID)
				}
				old.link.thaw()
				if name == "Silent" {
					<-old.Lost()
					if !strings.Contains(old.Err().Error(), "it is stopped: halted: too hot") {
						t.Errorf("the old controller learns %v", old.Err())
					}
				}
				if _, err := Halt(t.Context(), w.bus, "r1", ""); err == nil || !strings.Contains(err.Error(), "ordeal runs resume r1 goes on with it") {
					t.Errorf("halted twice: %v", err)
				}
				// What was measured has no document yet: the run may be taken for that.
				if c := w.mustTake("two"); c.Generation() != 3 || w.run().State != wire.Running || w.run().Reason != "" {
					t.Errorf("generation %d, record %+v", c.Generation(), w.run())
				}
			})
		})
	}
}

// A controller that renews while it is being fenced keeps the run and is told.
func TestHaltOfASlowController(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		c.link.down.shut()
		time.AfterFunc(time.Second, c.link.down.open)
		holder, err := Halt(t.Context(), w.bus, "r1", "slow")
		if err != nil || holder != "one pid 1" || w.run().State != wire.Running {
			t.Errorf("halted by %q, %v, state %s", holder, err, w.run().State)
		}
		if cause := context.Cause(c.Context()); cause == nil || cause.Error() != "halted: slow" {
			t.Errorf("cause %v", cause)
		}
	})
}

func TestHaltRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := Halt(t.Context(), w.bus, "r1", ""); !errors.Is(err, bus.ErrNoRun) {
			t.Errorf("err %v, want %v", err, bus.ErrNoRun)
		}
		c := w.create(nil)
		if err := c.Finish(t.Context(), End{State: wire.Failed, Reason: "no agents"}); err != nil {
			t.Fatal(err)
		}
		var over *Over
		if _, err := Halt(t.Context(), w.bus, "r1", ""); !errors.As(err, &over) {
			t.Errorf("err %v, want %T", err, over)
		}
	})
}

func TestUnknownOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(nil)
		answer, err := w.bus.SendOrder(t.Context(), "r1", wire.Order{Kind: "dance"})
		if err != nil || !strings.Contains(answer.Error, "dance") {
			t.Errorf("answer %+v, %v", answer, err)
		}
	})
}
