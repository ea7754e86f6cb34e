package lead

import (
	"context"
	"errors"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// measured publishes a result of r1.
func (w *world) measured() {
	w.t.Helper()
	r := &wire.Result{V: wire.Version, Run: "r1", Unit: "u1", Agent: "a1", Incarnation: 1, Final: true}
	if err := w.bus.PublishResult(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// results counts those that are stored.
func (w *world) results() (n int) {
	w.t.Helper()
	if _, err := w.bus.StoredResults(w.t.Context(), "r1", func(*wire.Result) { n++ }); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestFinish(t *testing.T) {
	for name, c := range map[string]struct {
		end  End
		kept int
	}{
		"Finished":       {End{State: wire.Finished, Verdict: "Fit (87)", Document: []byte(`{"run":1}`)}, 0},
		"Stopped":        {End{State: wire.Stopped, Reason: "interrupted", Verdict: "no verdict", Document: []byte(`{}`)}, 0},
		"Failed":         {End{State: wire.Failed, Reason: "no agents"}, 0},
		"StoppedWithout": {End{State: wire.Stopped, Reason: "disk full"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := realWorld(t)
			l := w.create(nil)
			w.measured()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // an interrupted run ends like any other
			if err := l.Finish(ctx, c.end); err != nil {
				t.Fatal(err)
			}
			r := w.run()
			if r.State != c.end.State || r.Reason != c.end.Reason || r.Verdict != c.end.Verdict {
				t.Errorf("record %+v", r)
			}
			if n := w.results(); n != c.kept {
				t.Errorf("%d results kept, want %d", n, c.kept)
			}
			w.checkDocument(r, c.end.Document)
			_, err := w.ask(wire.Ask{})
			if !errors.Is(err, bus.ErrGone) { // the server may not have heard of the unsubscription yet
				_, err = w.ask(wire.Ask{})
			}
			if !errors.Is(err, bus.ErrGone) || l.Sure() {
				t.Errorf("asked after the end: %v; sure %v", err, l.Sure())
			}
			if err := l.Update(t.Context(), func(*wire.Run) {}); !errors.Is(err, errClosed) {
				t.Errorf("update after the end: %v", err)
			}
		})
	}
}

func (w *world) checkDocument(r *wire.Run, want []byte) {
	w.t.Helper()
	if want == nil {
		if r.Document != "" {
			w.t.Errorf("document %q, want none", r.Document)
		}
		return
	}
	if doc, err := w.bus.Document(w.t.Context(), r.Document); err != nil || string(doc) != string(want) {
		w.t.Errorf("document %q, %v; want %q", doc, err, want)
	}
}

// What a controller that was replaced has to say is not what the run says.
func TestFencedFinishChangesNothing(t *testing.T) {
	w := realWorld(t)
	old := w.create(func(o *Options) { o.TTL = MinTTL })
	w.measured()
	old.link.freeze()
	c := w.mustTake("two")
	old.link.thaw()
	if err := old.Finish(t.Context(), End{State: wire.Finished, Document: []byte("old")}); !errors.Is(err, bus.ErrFenced) {
		t.Errorf("err %v, want %v", err, bus.ErrFenced)
	}
	if w.results() != 1 || w.run().State != wire.Running {
		t.Errorf("%d results, state %s; want both left alone", w.results(), w.run().State)
	}
	if _, err := w.bus.Document(t.Context(), "r1/1"); !errors.Is(err, bus.ErrNoRun) {
		t.Errorf("a fenced controller has stored a document: %v", err)
	}
	// Stopped between its two writes and woken last, it would store one.
	if err := c.Finish(t.Context(), End{State: wire.Finished, Document: []byte("new")}); err != nil {
		t.Fatal(err)
	}
	if err := w.bus.StoreDocument(t.Context(), "r1/1", []byte("old")); err != nil {
		t.Fatal(err)
	}
	w.checkDocument(w.run(), []byte("new"))
}

func TestFinishOutlastsARestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.create(nil)
		w.stop()
		time.AfterFunc(5*time.Second, w.start)
		if err := c.Finish(t.Context(), End{State: wire.Failed, Reason: "no agents"}); err != nil {
			t.Error(err)
		}
		for w.bus.Reconnects() == 0 {
			time.Sleep(time.Second)
		}
		if r := w.run(); r.State != wire.Failed {
			t.Errorf("state %s", r.State)
		}
	})
}

func TestClosedRunMayBeTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told tales
		old := w.create(func(o *Options) { o.Log = told.add })
		time.Sleep(time.Minute)
		old.Close()
		old.Close()
		if told.all() != "" {
			t.Errorf("told %q of an end that was wanted", told.all())
		}
		begun := time.Now()
		if c := w.mustTake("two"); c.Generation() != 2 || time.Since(begun) > 2*time.Second {
			t.Errorf("generation %d after %v", c.Generation(), time.Since(begun))
		}
	})
}
