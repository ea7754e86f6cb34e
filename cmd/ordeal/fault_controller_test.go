package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ordeal/agent/wire"
	"ordeal/cmd/internal/cli"
	"ordeal/testdata/fleettest"
)

// runOf is the id of the run that a scan of a fleet has begun.
func runOf(t *testing.T, scan *fleettest.Proc) string {
	t.Helper()
	line, err := scan.WaitStderr(within(t, faultWait), "run ")
	if err != nil {
		t.Fatal(err)
	}
	return line[len("run "):]
}

// resume carries a run on, as a process of its own.
func (w *world) resume(run string) *fleettest.Proc {
	w.t.Helper()
	return fleettest.Ordeal(w.t, "runs", "resume", run, "--nats", w.url, "--json")
}

// slowScanArgs take one agent longer than a lease, in one stage.
var slowScanArgs = []string{"mock:degraded", "--requests", "12000000", "--probes", "latency"}

// A run whose controller is killed goes on where it stood, and its report is
// that of a run that nobody disturbed: at once, while agents still work for the
// old controller, and later, when they have given everything back.
func controllerKilled(t *testing.T) {
	times(t, ofFaults(3, 20), func(t *testing.T, moment int) {
		agents, args, most, rest := []string{"a", "b"}, mockScanArgs, 110, time.Duration(0)
		if moment%3 > 0 {
			agents, args, most = agents[:1], slowScanArgs, 60
		}
		if moment%3 == 2 { // early, so that the lease ends before the units do
			most, rest = 15, faultTTL+time.Second
		}
		r := draw("controller killed", moment)
		w := newWorld(t, agents...)
		scan := w.scan(args...)
		run := runOf(t, scan)
		when := w.afterResults(r, most)
		scan.Kill()
		time.Sleep(rest)
		doc := w.report(w.resume(run))
		row{"controller killed and resumed", fmt.Sprintf("%s, after %v", when, rest), w.counted(doc), sameAsWhole(t, args, doc)}.note(t)
	})
}

// A level that was under way when the controller was killed is begun again by
// the next one, and what the target saw of it before is said.
func controllerKilledInGang(t *testing.T) {
	times(t, ofFaults(1, 20), func(t *testing.T, moment int) {
		w := newWorld(t)
		m := inRamp(t, "controller killed in a gang", moment, w, w.url, w.url)
		m.scan.Kill()
		doc := w.report(w.resume(m.run))
		g, unsaid := gangOf(t, doc, m.level()), m.whole(t, doc, 0)
		row{"controller killed in a gang", m.String(), fmt.Sprintf("%d attempts, %d operations repeated, %d in flight", g.Attempts, g.Repeated, unsaid), traced(t)}.note(t)
	})
}

// A run that is led cannot be taken.
func secondControllerRefused(t *testing.T) {
	w := newWorld(t, "a")
	scan := w.scan(slowScanArgs...)
	run := runOf(t, scan)
	second := w.resume(run)
	code, err := second.Wait(within(t, faultWait))
	if want := fmt.Sprintf("pid %d", scan.Pid()); code != cli.Unmeasured || err != nil || !strings.Contains(second.Stderr(), want) {
		t.Errorf("exit code %d, %v, stderr:\n%s\nwant %d and who leads the run: %s", code, err, second.Stderr(), cli.Unmeasured, want)
	}
	doc := w.report(scan)
	row{"second controller of a live run", "", "refused, and told who leads it", sameAsWhole(t, slowScanArgs, doc)}.note(t)
}

// A controller that is stopped, replaced and woken again finds that out, says so
// and does nothing more.
func controllerReplaced(t *testing.T) {
	times(t, ofFaults(2, 20), func(t *testing.T, moment int) { replaceController(t, moment, moment%2 == 0) })
}

// replaceController wakes the first controller while the second one works, or
// once it is done.
func replaceController(t *testing.T, moment int, meanwhile bool) {
	r := draw("controller replaced", moment)
	w := newWorld(t, "a")
	scan := w.scan(slowScanArgs...)
	run := runOf(t, scan)
	moments := w.afterResults(r, 60)
	scan.Pause()
	second := w.resume(run)
	w.awaitGeneration(run, 2)
	woken := time.Now()
	if meanwhile {
		scan.Resume()
	}
	doc := w.report(second)
	said := w.counted(doc)
	before := w.streams()
	if !meanwhile {
		woken = time.Now()
		scan.Resume()
	}
	code, err := scan.Wait(within(t, faultWait))
	if code != cli.Unmeasured || err != nil || !strings.Contains(scan.Stderr(), "another controller has taken the run over") || scan.Stdout() != "" && !strings.Contains(scan.Stdout(), `"refused": true`) {
		t.Errorf("the replaced controller: exit code %d, %v, stderr:\n%s\nwant %d and that it was replaced", code, err, scan.Stderr(), cli.Unmeasured)
	}
	if after := w.streams(); !slices.Equal(before, after) {
		t.Errorf("units, results and runs stood at %v when the run was over, and at %v later", before, after)
	}
	if stale := w.spy.stale(woken); len(stale) > 0 {
		t.Errorf("the replaced controller said %+v", stale)
	}
	when := "when all was over"
	if meanwhile {
		when = "in the middle"
	}
	row{"controller stopped and replaced", moments + ", woken " + when,
		"fenced, " + said, sameAsWhole(t, slowScanArgs, doc)}.note(t)
}

// awaitGeneration returns once a run has had so many controllers.
func (w *world) awaitGeneration(run string, n uint64) {
	w.t.Helper()
	ctx := within(w.t, faultWait)
	runs, err := w.jetStream().KeyValue(ctx, wire.RunBucket)
	if err != nil {
		w.t.Fatal(err)
	}
	watch, err := runs.Watch(ctx, run)
	if err != nil {
		w.t.Fatal(err)
	}
	for entry := range watch.Updates() {
		var r wire.Run
		if entry != nil && json.Unmarshal(entry.Value(), &r) == nil && r.Generation >= n {
			return
		}
	}
	w.t.Fatalf("run %s did not get its controller %d: %v", run, n, context.Cause(ctx))
}

// streams are the last sequences of the streams that a controller writes.
func (w *world) streams() []uint64 {
	w.t.Helper()
	js := w.jetStream()
	var last []uint64
	for _, name := range []string{wire.UnitStream, wire.ResultStream, "KV_" + wire.RunBucket, "OBJ_" + wire.BlobBucket} {
		s, err := js.Stream(within(w.t, 10*time.Second), name)
		if err != nil {
			w.t.Fatal(err)
		}
		last = append(last, s.CachedInfo().State.LastSeq)
	}
	return last
}

func (w *world) jetStream() jetstream.JetStream {
	w.t.Helper()
	nc, err := nats.Connect(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// stale are the control messages of the first generation after an instant.
func (s *spy) stale(after time.Time) (stale []wire.Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.controls {
		if c.at.After(after) && c.msg.Generation <= 1 {
			stale = append(stale, c.msg)
		}
	}
	return stale
}
