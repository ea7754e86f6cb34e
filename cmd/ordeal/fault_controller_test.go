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
var slowScanArgs = []string{"mock:degraded", "--requests", "4000000", "--probes", "latency"}

// A run whose controller is killed goes on where it stood, and its report is
// that of a run that nobody disturbed: at once, while agents still work for the
// old controller, and later, when they have given everything back.
func TestFaultControllerKilled(t *testing.T) {
	for moment := range ofFaults(3, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			agents, args, most, rest := []string{"a", "b"}, mockScanArgs, 110, time.Duration(0)
			if moment%3 > 0 {
				agents, args, most, rest = agents[:1], slowScanArgs, 60, time.Duration(moment%3-1)*3*time.Second/2*faultTTL/time.Second
			}
			killController(t, moment, args, most, rest, agents...)
		})
	}
}

func killController(t *testing.T, moment int, args []string, most int, rest time.Duration, agents ...string) {
	r := draw("controller killed", moment)
	w := newWorld(t, agents...)
	scan := w.scan(args...)
	run := runOf(t, scan)
	results, later := r.IntN(most), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	scan.Kill()
	time.Sleep(rest)
	doc := w.report(w.resume(run))
	row{"controller killed and resumed", fmt.Sprintf("%d results + %v, after %v", results, later.Round(time.Millisecond), rest),
		w.counted(doc).String(), sameAsWhole(t, args, doc)}.note(t)
}

// A level that was under way when the controller was killed is begun again by
// the next one, and what the target saw of it before is said.
func TestFaultControllerKilledInGang(t *testing.T) {
	for moment := range ofFaults(1, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			r := draw("controller killed in a gang", moment)
			tg := newTarget(t, gangLatency)
			w := newWorld(t, "a", "b", "c")
			scan := w.scan(gangArgs(tg)...)
			run := runOf(t, scan)
			hit := r.IntN(len(gangLevels))
			later := upTo(r, levelTime(gangLevels[hit])*9/10)
			if err := w.spy.awaitGo(within(t, faultWait), hit+1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(later)
			scan.Kill()
			doc := w.report(w.resume(run))
			unsaid := checkGangs(t, tg, doc, hit, 0)
			g := gangOf(t, doc, gangLevels[hit])
			row{"controller killed in a gang", fmt.Sprintf("level %d + %v", gangLevels[hit], later.Round(time.Millisecond)),
				fmt.Sprintf("%d attempts, %d operations repeated, %d in flight", g.Attempts, g.Repeated, unsaid), yesNo(!t.Failed())}.note(t)
		})
	}
}

// A run that is led cannot be taken.
func TestFaultSecondControllerIsRefused(t *testing.T) {
	w := newWorld(t, "a")
	scan := w.scan(slowScanArgs...)
	run := runOf(t, scan)
	second := w.resume(run)
	code, err := second.Wait(within(t, faultWait))
	if want := fmt.Sprintf("pid %d", scan.Pid()); code != cli.Unmeasured || err != nil || !strings.Contains(second.Stderr(), want) {
		t.Errorf("exit code %d, %v, stderr:\n%s\nwant %d and who leads the run: %s", code, err, second.Stderr(), cli.Unmeasured, want)
	}
	doc := w.report(scan)
	row{"second controller of a live run", "", "refused: " + strings.TrimSpace(second.Stderr()), sameAsWhole(t, slowScanArgs, doc)}.note(t)
}

// A controller that is stopped, replaced and woken again finds that out, says so
// and does nothing more.
func TestFaultReplacedControllerIsFenced(t *testing.T) {
	for moment := range ofFaults(2, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			t.Parallel()
			replaceController(t, moment, moment%2 == 0)
		})
	}
}

// replaceController wakes the first controller while the second one works, or
// once it is done.
func replaceController(t *testing.T, moment int, meanwhile bool) {
	r := draw("controller replaced", moment)
	w := newWorld(t, "a")
	scan := w.scan(slowScanArgs...)
	run := runOf(t, scan)
	results, later := r.IntN(60), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	scan.Pause()
	second := w.resume(run)
	w.awaitGeneration(run, 2)
	woken := time.Now()
	if meanwhile {
		scan.Resume()
	}
	doc := w.report(second)
	w.counted(doc)
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
	row{"controller stopped and replaced", fmt.Sprintf("%d results + %v, woken %s", results, later.Round(time.Millisecond), when),
		"fenced, " + w.spy.denominators().String(), sameAsWhole(t, slowScanArgs, doc)}.note(t)
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
