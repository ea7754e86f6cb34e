package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ordeal/controller/result"
)

// The gangs of these tests: a ramp over three agents against a target that takes
// gangLatency for a call.
const (
	gangLatency = 20 * time.Millisecond
	gangCalls   = 100 // a level
)

var gangLevels = []int{1, 2, 4, 8}

// levelTime is how long a level lasts.
func levelTime(level int) time.Duration { return gangCalls * gangLatency / time.Duration(level) }

// gangArgs are those of the scan of a target.
func gangArgs(tg *target) []string {
	return tg.args("--probes", "concurrency", "--concurrency", fmt.Sprint(gangLevels[len(gangLevels)-1]), "--requests", fmt.Sprint(gangCalls))
}

// A level that loses an agent is repeated with the others: its callers are all
// there, and what the target saw of the first try is said.
func TestFaultAgentKilledInGang(t *testing.T) {
	for moment := range ofFaults(3, 50) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) { hitGang(t, "agent killed in a gang", moment, false) })
	}
}

// A paused agent counts as lost once its lease is over, and does nothing for the
// level when it is woken.
func TestFaultAgentPausedInGang(t *testing.T) {
	for moment := range ofFaults(2, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) { hitGang(t, "agent paused in a gang", moment, true) })
	}
}

func hitGang(t *testing.T, scenario string, moment int, pause bool) {
	r := draw(scenario, moment)
	tg := newTarget(t, gangLatency)
	w := newWorld(t, "a", "b", "c")
	scan := w.scan(gangArgs(tg)...)
	hit := r.IntN(len(gangLevels))
	later := upTo(r, levelTime(gangLevels[hit])*9/10)
	if err := w.spy.awaitGo(within(t, faultWait), hit+1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	struck := time.Now()
	if pause {
		w.agents["a"].Pause() // a member of every level: the first by its name
		time.Sleep(2 * faultTTL)
		w.agents["a"].Resume()
	} else {
		w.agents["a"].Kill()
	}
	doc := w.report(scan)
	g := gangOf(t, doc, gangLevels[hit])
	if g.Attempts != 2 || !slices.Equal(g.Lost, []string{"a"}) {
		t.Errorf("level %d: %d attempts, lost %v; want it repeated without a", gangLevels[hit], g.Attempts, g.Lost)
	}
	unsaid := checkGangs(t, tg, doc, hit, 0)
	if n := callsOf(tg, "caller-a", hit, struck); n > 0 {
		t.Errorf("%d calls of the lost agent for the level after it was struck", n)
	}
	row{scenario, fmt.Sprintf("level %d + %v", gangLevels[hit], later.Round(time.Millisecond)),
		fmt.Sprintf("%d attempts, lost %v, %d operations repeated, %d in flight", g.Attempts, g.Lost, g.Repeated, unsaid), yesNo(!t.Failed())}.note(t)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// gangOf is what a report says of a level.
func gangOf(t *testing.T, doc *result.Document, level int) result.Gang {
	t.Helper()
	if doc.Fleet == nil {
		t.Fatal("the document has no fleet")
	}
	name := fmt.Sprintf("concurrency-%d", level)
	i := slices.IndexFunc(doc.Fleet.Gangs, func(g result.Gang) bool { return g.Stage == name })
	if i < 0 {
		t.Fatalf("no gang %s in the document: %+v", name, doc.Fleet.Gangs)
	}
	return doc.Fleet.Gangs[i]
}

// checkGangs holds a report against the target's own trace: every level had its
// callers, every operation of the ramp was seen, those of the level that was hit
// at most twice and all others once; and what the target saw is what the report
// counts, says to be repeated, and what was in flight or not said yet when the
// first try of the level ended, which it returns. beyond is for agents that could
// not say any more what they did.
func checkGangs(t *testing.T, tg *target, doc *result.Document, hit int, beyond int64) (unsaid int64) {
	t.Helper()
	times := tg.times()
	var repeated int64
	for i, level := range gangLevels {
		if g := gangOf(t, doc, level); g.Degraded || g.Achieved != level || g.Planned != level {
			t.Errorf("level %d: %d of %d callers, degraded %v; want all", level, g.Achieved, g.Planned, g.Degraded)
		}
		for _, id := range operations(i*gangCalls, (i+1)*gangCalls) {
			n := times[id]
			if n < 1 || n > 2 || n == 2 && i != hit {
				t.Errorf("level %d: operation %s was seen %d times", level, id, n)
			}
			repeated += int64(n - 1)
		}
	}
	if want := int64(gangCalls*len(gangLevels)) + 1; doc.Run.Calls != want {
		t.Errorf("the report counts %d calls, want %d: the levels and the preflight", doc.Run.Calls, want)
	}
	said := gangOf(t, doc, gangLevels[hit]).Repeated
	unsaid = repeated - said
	// Agents say how far they are every 200 ms, their callers every 200 ms.
	most := int64(gangLevels[hit])*(int64(400*time.Millisecond/gangLatency)+2) + beyond
	if all := int64(len(tg.seen())); all != doc.Run.Calls+repeated || unsaid < 0 || unsaid > most {
		t.Errorf("the target saw %d calls; the report counts %d and says that %d more were repeated, of %d: want at most %d unsaid", all, doc.Run.Calls, said, repeated, most)
	}
	return unsaid
}

// callsOf counts the calls of an agent for a level after an instant.
func callsOf(tg *target, caller string, hit int, after time.Time) (n int) {
	ids := operations(hit*gangCalls, (hit+1)*gangCalls)
	for _, c := range tg.seen() {
		if c.caller == caller && c.at.After(after.Add(20*time.Millisecond)) && slices.Contains(ids, c.operation) {
			n++
		}
	}
	return n
}
