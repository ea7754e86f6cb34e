package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/controller/result"
	"ordeal/testdata/fleettest"
)

// handOnWait is within what a unit of a killed agent is begun by another.
const handOnWait = 500 * time.Millisecond

// A killed agent costs neither a unit nor a second count, and what it had in
// hand is begun by another at once.
func TestFaultAgentKilledInPoolUnit(t *testing.T) {
	for moment := range ofFaults(3, 50) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) { killInPool(t, moment) })
	}
}

func killInPool(t *testing.T, moment int) {
	r := draw("agent killed in a unit", moment)
	w := newWorld(t, "doomed", "heir")
	scan := w.scan(mockScanArgs...)
	unit, later := 1+r.IntN(40), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitBegun(within(t, faultWait), "doomed", unit); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	killed := time.Now()
	w.agents["doomed"].Kill()
	doc := w.report(scan)
	d := w.counted(doc)
	what := "nothing in hand"
	if lost, held := w.spy.inHand("doomed"); held {
		took, again := w.spy.redelivered(lost, killed)
		what = fmt.Sprintf("unit handed on in %v", took.Round(time.Millisecond))
		if !again || took > handOnWait {
			t.Errorf("unit %s was begun again %v (%v) after the kill, want within %v", lost.Unit, took, again, handOnWait)
		}
	}
	row{"agent killed in a pool unit", fmt.Sprintf("unit %d + %v", unit, later.Round(time.Millisecond)),
		fmt.Sprintf("%s, %s", what, d), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// A paused agent's unit is worked by others, and when it is woken it neither
// counts twice nor disturbs them.
func TestFaultAgentPausedInPoolUnit(t *testing.T) {
	for moment := range ofFaults(1, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			r := draw("agent paused in a unit", moment)
			w := newWorld(t, "sleeper", "heir")
			scan := w.scan(mockScanArgs...)
			unit, later := 1+r.IntN(40), upTo(r, 30*time.Millisecond)
			if err := w.spy.awaitBegun(within(t, faultWait), "sleeper", unit); err != nil {
				t.Fatal(err)
			}
			time.Sleep(later)
			w.agents["sleeper"].Pause()
			time.Sleep(2 * faultTTL)
			w.agents["sleeper"].Resume()
			doc := w.report(scan)
			row{"agent paused in a pool unit", fmt.Sprintf("unit %d + %v, for %v", unit, later.Round(time.Millisecond), 2*faultTTL),
				w.counted(doc).String(), sameAsWhole(t, mockScanArgs, doc)}.note(t)
		})
	}
}

// An agent that is killed while it waits for work costs nothing at all.
func TestFaultAgentKilledIdle(t *testing.T) {
	for moment := range ofFaults(2, 50) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			if moment%2 == 0 {
				killIdle(t, moment)
			} else {
				killBefore(t, moment)
			}
		})
	}
}

// killIdle kills one of two agents that wait while a third works the only unit
// that is out.
func killIdle(t *testing.T, moment int) {
	const calls = 1000
	r := draw("agent killed while idle", moment)
	tg := newTarget(t, 2*time.Millisecond)
	w := newWorld(t, "a", "b", "c")
	scan := w.scan(tg.args("--probes", "latency", "--requests", fmt.Sprint(calls))...)
	later := upTo(r, 2*time.Second)
	if err := w.spy.awaitBegun(within(t, faultWait), "", 3); err != nil { // survey, preflight, the first of load
		t.Fatal(err)
	}
	time.Sleep(later)
	names := []string{"a", "b", "c"}
	at := slices.IndexFunc(names, func(name string) bool { _, held := w.spy.inHand(name); return !held })
	w.agents[names[at]].Kill()
	doc := w.report(scan)
	for _, id := range operations(0, calls) {
		if n := tg.times()[id]; n != 1 {
			t.Errorf("operation %s was seen %d times, want once", id, n)
		}
	}
	if doc.Run.Calls != calls+1 || doc.Run.Reissued != 0 {
		t.Errorf("%d calls, %d operations reissued; want %d and none", doc.Run.Calls, doc.Run.Reissued, calls+1)
	}
	row{"agent killed while idle", "load + " + later.Round(time.Millisecond).String(), w.counted(doc).String(), yesNo(!t.Failed())}.note(t)
}

// killBefore kills an agent that stands in the registry around the beginning of
// a scan.
func killBefore(t *testing.T, moment int) {
	r := draw("agent killed while idle", moment)
	w := newWorld(t, "doomed", "heir")
	before := upTo(r, time.Second)
	w.agents["doomed"].Kill()
	time.Sleep(before)
	doc := w.report(w.scan(mockScanArgs...))
	row{"agent killed while idle", before.Round(time.Millisecond).String() + " before the scan", w.counted(doc).String(), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// A busy agent is no dead agent: with more to do than its machine has cores
// nobody is taken for lost, in units and in gangs.
func TestFaultBusyAgentsAreNotLost(t *testing.T) {
	args := ofFaults(mockScanArgs, []string{"mock:degraded", "--requests", "15000000"}) // some 10 and 70 s beside the hogs
	hogs := fleettest.HogCPU(t, 4)
	t.Run("units", func(t *testing.T) {
		w := newWorld(t, "a", "b")
		begun := time.Now()
		scan := w.scan(args...)
		doc := w.report(scan)
		lasted := time.Since(begun)
		d := w.counted(doc)
		notLost(t, scan, doc)
		hogs()
		row{"agents at 100 % CPU", lasted.Round(time.Second).String() + " of units", d.String(), sameAsWhole(t, args, doc)}.note(t)
	})
	t.Run("gangs", func(t *testing.T) {
		each := ofFaults(time.Second, 15*time.Second)
		hogs := fleettest.HogCPU(t, 4)
		defer hogs()
		tg := newTarget(t, 0)
		w := newWorld(t, "a", "b", "c")
		scan := w.scan(tg.args("--probes", "concurrency", "--concurrency", "8", "--level-duration", each.String())...)
		doc := w.report(scan)
		notLost(t, scan, doc)
		for _, level := range gangLevels {
			if g := gangOf(t, doc, level); g.Attempts != 1 || g.Degraded {
				t.Errorf("level %d: %d attempts, lost %v; want one", level, g.Attempts, g.Lost)
			}
		}
		if all := int64(len(tg.seen())); doc.Run.Calls != all {
			t.Errorf("the report counts %d calls, the target saw %d", doc.Run.Calls, all)
		}
		row{"agents at 100 % CPU", (time.Duration(len(gangLevels)) * each).String() + " of gangs", w.counted(doc).String(), yesNo(!t.Failed())}.note(t)
	})
}

// notLost checks that nobody was taken for lost.
func notLost(t *testing.T, scan *fleettest.Proc, doc *result.Document) {
	t.Helper()
	if strings.Contains(scan.Stderr(), "lost:") || strings.Contains(scan.Stderr(), " lost ") || doc.Run.Reissued != 0 {
		t.Errorf("%d operations reissued, and the controller says:\n%s\nwant nobody lost", doc.Run.Reissued, scan.Stderr())
	}
	if doc.Fleet == nil || doc.Fleet.Ignored != 0 || slices.ContainsFunc(doc.Fleet.Agents, func(a result.FleetAgent) bool { return a.Lost }) {
		t.Errorf("fleet %+v, want nobody lost and nothing ignored", doc.Fleet)
	}
}
