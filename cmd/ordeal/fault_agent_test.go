package main

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"ordeal/controller/result"
	"ordeal/testdata/fleettest"
)

// handOnWait is within what a unit of a killed agent is begun by another, and
// handOnMost what it may take once on a machine full of other tests.
const (
	handOnWait = 500 * time.Millisecond
	handOnMost = 3 * time.Second
)

// A killed agent costs neither a unit nor a second count, and what it had in
// hand is begun by another at once.
func TestFaultAgentKilledInPoolUnit(t *testing.T) {
	var all []time.Duration
	times(t, ofFaults(3, 50), func(t *testing.T, moment int) {
		if took, held := killInPool(t, moment); held {
			all = append(all, took)
		}
	})
	if slices.Sort(all); faultsFull && len(all) > 0 && all[len(all)/2] > handOnWait {
		t.Errorf("half of the units were handed on after more than %v, want within %v", all[len(all)/2], handOnWait)
	}
}

// killInPool returns how long it took until the unit that was in hand, if there was
// one, was begun by another.
func killInPool(t *testing.T, moment int) (took time.Duration, held bool) {
	r := draw("agent killed in a unit", moment)
	w := newWorld(t, "doomed", "heir")
	scan := w.scan(mockScanArgs...)
	when := w.inUnit(r, "doomed")
	killed := time.Now()
	w.agents["doomed"].Kill()
	doc := w.report(scan)
	said := w.counted(doc)
	what := "nothing in hand"
	lost, held := w.spy.inHand("doomed")
	if held {
		var again bool
		took, again = w.spy.redelivered(lost, killed)
		what = fmt.Sprintf("unit handed on in %v", took.Round(time.Millisecond))
		if !again || took > handOnMost {
			t.Errorf("unit %s was begun again %v (%v) after the kill, want within %v", lost.Unit, took, again, handOnMost)
		}
	}
	row{"agent killed in a pool unit", when, what + ", " + said, sameAsWhole(t, mockScanArgs, doc)}.note(t)
	return took, held
}

// A paused agent's unit is worked by others, and when it is woken it neither
// counts twice nor disturbs them.
func agentPaused(t *testing.T) {
	times(t, ofFaults(1, 20), func(t *testing.T, moment int) {
		r := draw("agent paused in a unit", moment)
		w := newWorld(t, "sleeper", "heir")
		scan := w.scan(mockScanArgs...)
		when := w.inUnit(r, "sleeper")
		w.agents["sleeper"].Pause()
		time.Sleep(2 * faultTTL)
		w.agents["sleeper"].Resume()
		doc := w.report(scan)
		row{"agent paused in a pool unit", fmt.Sprintf("%s, for %v", when, 2*faultTTL), w.counted(doc), sameAsWhole(t, mockScanArgs, doc)}.note(t)
	})
}

// An agent that is killed while it waits for work costs nothing at all.
func agentKilledIdle(t *testing.T) {
	times(t, ofFaults(2, 50), func(t *testing.T, moment int) {
		if moment%2 == 0 {
			killIdle(t, moment)
		} else {
			killBefore(t, moment)
		}
	})
}

// killIdle kills one of two agents that wait while a third works the only unit
// that is out.
func killIdle(t *testing.T, moment int) {
	const calls = 1000
	r := draw("agent killed while idle", moment)
	tg := newTarget(t, 2*time.Millisecond)
	names := []string{"a", "b", "c"}
	w := newWorld(t, names...)
	scan := w.scan(tg.args("--probes", "latency", "--requests", fmt.Sprint(calls))...)
	if err := w.spy.awaitBegun(within(t, faultWait), "", 3); err != nil { // survey, preflight, the first of load
		t.Fatal(err)
	}
	later := upTo(r, 2*time.Second)
	time.Sleep(later)
	idle := slices.IndexFunc(names, func(name string) bool { _, held := w.spy.inHand(name); return !held })
	w.agents[names[idle]].Kill()
	doc := w.report(scan)
	seen := tg.times()
	for _, id := range operations(0, calls) {
		if seen[id] != 1 {
			t.Errorf("operation %s was seen %d times, want once", id, seen[id])
		}
	}
	if doc.Run.Calls != calls+1 || doc.Run.Reissued != 0 {
		t.Errorf("%d calls, %d operations reissued; want %d and none", doc.Run.Calls, doc.Run.Reissued, calls+1)
	}
	row{"agent killed while idle", "load + " + later.Round(time.Millisecond).String(), w.counted(doc), traced(t)}.note(t)
}

// killBefore kills an agent that stands in the registry when a scan begins.
func killBefore(t *testing.T, moment int) {
	r := draw("agent killed while idle", moment)
	w := newWorld(t, "doomed", "heir")
	before := upTo(r, time.Second)
	w.agents["doomed"].Kill()
	time.Sleep(before)
	doc := w.report(w.scan(mockScanArgs...))
	row{"agent killed while idle", before.Round(time.Millisecond).String() + " before the scan", w.counted(doc), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// A busy agent is no dead agent: with more to do than its machine has cores
// nobody is taken for lost, in units and in gangs.
func TestFaultBusyAgentsAreNotLost(t *testing.T) {
	const hogs = 4
	t.Run("Units", func(t *testing.T) {
		args := ofFaults(mockScanArgs, []string{"mock:degraded", "--requests", "20000000"}) // some 10 and 70 s beside the hogs
		w := newWorld(t, "a", "b")
		stop := fleettest.HogCPU(t, hogs)
		begun := time.Now()
		scan := w.scan(args...)
		doc := w.report(scan)
		lasted := time.Since(begun)
		stop()
		notLost(t, scan, doc)
		row{"agents at 100 % CPU", lasted.Round(time.Second).String() + " of units", w.counted(doc), sameAsWhole(t, args, doc)}.note(t)
	})
	t.Run("Gangs", func(t *testing.T) {
		each := ofFaults(time.Second, 15*time.Second)
		tg := newTarget(t, 0)
		w := newWorld(t, "a", "b", "c")
		stop := fleettest.HogCPU(t, hogs)
		scan := w.scan(tg.args("--probes", "concurrency", "--concurrency", "8", "--level-duration", each.String())...)
		doc := w.report(scan)
		stop()
		notLost(t, scan, doc)
		for _, level := range gangLevels {
			if g := gangOf(t, doc, level); g.Attempts != 1 || g.Degraded {
				t.Errorf("level %d: %d attempts, lost %v; want one", level, g.Attempts, g.Lost)
			}
		}
		if all := int64(len(tg.seen())); doc.Run.Calls != all {
			t.Errorf("the report counts %d calls, the target saw %d", doc.Run.Calls, all)
		}
		row{"agents at 100 % CPU", (time.Duration(len(gangLevels)) * each).String() + " of gangs", fmt.Sprintf("%d calls, nobody lost", doc.Run.Calls), traced(t)}.note(t)
	})
}

// lostLine is how a controller says that it takes an agent for lost.
var lostLine = regexp.MustCompile(`agent \S+ is lost|stage \S+ lost `)

// notLost checks that nobody was taken for lost.
func notLost(t *testing.T, scan *fleettest.Proc, doc *result.Document) {
	t.Helper()
	if lostLine.MatchString(scan.Stderr()) || doc.Run.Reissued != 0 {
		t.Errorf("%d operations reissued, and the controller says:\n%s\nwant nobody lost", doc.Run.Reissued, scan.Stderr())
	}
	if doc.Fleet.Ignored != 0 || slices.ContainsFunc(doc.Fleet.Agents, func(a result.FleetAgent) bool { return a.Lost }) {
		t.Errorf("fleet %+v, want nobody lost and nothing ignored", doc.Fleet)
	}
}
