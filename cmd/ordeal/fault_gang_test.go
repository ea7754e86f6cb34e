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

// The gangs of these tests: a ramp over three agents against a target that takes
// gangLatency for a call. The agent called a is a member of every level.
const (
	gangLatency = 20 * time.Millisecond
	gangCalls   = 100 // a level
)

var gangLevels = []int{1, 2, 4, 8}

// levelTime is how long a level lasts at the least.
func levelTime(level int) time.Duration { return gangCalls * gangLatency / time.Duration(level) }

func levelName(level int) string { return fmt.Sprintf("concurrency-%d", level) }

// gangArgs are those of the scan of a target.
func gangArgs(tg *target) []string {
	return tg.args("--probes", "concurrency", "--concurrency", fmt.Sprint(gangLevels[len(gangLevels)-1]), "--requests", fmt.Sprint(gangCalls))
}

// ramp is a scan in the middle of a level.
type ramp struct {
	tg    *target
	w     *world
	scan  *fleettest.Proc
	run   string
	hit   int // which level
	later time.Duration
}

// inRamp starts agents, the one called a by way of toAgent and the controller by
// way of toController, and returns at a random moment of a level.
func inRamp(t *testing.T, scenario string, moment int, w *world, toController, toAgent string) *ramp {
	t.Helper()
	r := draw(scenario, moment)
	m := &ramp{tg: newTarget(t, gangLatency), w: w, hit: r.IntN(len(gangLevels))}
	m.later = upTo(r, levelTime(gangLevels[m.hit])*3/4)
	w.join("a", toAgent)
	w.join("b", w.url)
	w.join("c", w.url)
	m.scan = scanAt(t, toController, gangArgs(m.tg)...)
	m.run = runOf(t, m.scan)
	if err := w.spy.awaitGo(within(t, faultWait), m.hit+1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(m.later)
	return m
}

func (m *ramp) level() int { return gangLevels[m.hit] }

func (m *ramp) String() string {
	return fmt.Sprintf("level %d + %v", m.level(), m.later.Round(time.Millisecond))
}

// A level that loses an agent is repeated with the others: its callers are all
// there, and what the target saw of the first try is said.
func agentKilledInGang(t *testing.T) {
	times(t, ofFaults(3, 50), func(t *testing.T, moment int) {
		w := newWorld(t)
		m := inRamp(t, "agent killed in a gang", moment, w, w.url, w.url)
		struck := time.Now()
		w.agents["a"].Kill()
		m.lostA(t, "agent killed in a gang", struck, struck.Add(time.Second), 0)
	})
}

// A paused agent counts as lost once its lease is over, and does nothing for the
// level when it is woken.
func agentPausedInGang(t *testing.T) {
	times(t, ofFaults(2, 20), func(t *testing.T, moment int) {
		w := newWorld(t)
		m := inRamp(t, "agent paused in a gang", moment, w, w.url, w.url)
		struck := time.Now()
		w.agents["a"].Pause()
		time.Sleep(2 * faultTTL)
		woken := time.Now()
		w.agents["a"].Resume()
		m.lostA(t, "agent paused in a gang", struck, woken, 0)
	})
}

// lostA checks a ramp that lost the agent a when it was struck. From an instant on
// it must not have called for the level any more, nor beside those who repeat it.
// beyond is as in whole. A share that was done before is no loss.
func (m *ramp) lostA(t *testing.T, scenario string, struck, silent time.Time, beyond int64) {
	t.Helper()
	doc := m.w.report(m.scan)
	g := gangOf(t, doc, m.level())
	switch done := m.w.spy.hasResult(levelName(m.level()), "a", struck); {
	case starved(m.scan): // see whole
	case done && g.Attempts != 1:
		t.Errorf("level %d: %d attempts, lost %v; want one, a had done its share", m.level(), g.Attempts, g.Lost)
	case !done && (g.Attempts != 2 || !slices.Equal(g.Lost, []string{"a"})):
		t.Errorf("level %d: %d attempts, lost %v; want it repeated without a", m.level(), g.Attempts, g.Lost)
	}
	unsaid := m.whole(t, doc, beyond)
	if n := m.callsOfA(silent); n > 0 {
		t.Errorf("%d calls of the lost agent for the level when it had to be silent", n)
	}
	if again, ok := m.w.spy.goOf(m.hit, 2); ok && m.callsOfA(again) > 0 {
		t.Errorf("%d calls of the lost agent beside the second try of the level", m.callsOfA(again))
	}
	row{scenario, m.String(), fmt.Sprintf("%d attempts, lost %v, %d operations repeated, %d in flight", g.Attempts, g.Lost, g.Repeated, unsaid), traced(t)}.note(t)
}

// gangOf is what a report says of a level.
func gangOf(t *testing.T, doc *result.Document, level int) result.Gang {
	t.Helper()
	i := slices.IndexFunc(doc.Fleet.Gangs, func(g result.Gang) bool { return g.Stage == levelName(level) })
	if i < 0 {
		t.Fatalf("no gang %s in the document: %+v", levelName(level), doc.Fleet.Gangs)
	}
	return doc.Fleet.Gangs[i]
}

// whole holds a report against the target's own trace: every level had its
// callers, every operation of the ramp was seen, those of the level that was hit
// at most twice and all others once; and what the target saw is what the report
// counts, says to be repeated, and what was in flight or not said yet when the
// first try of the level ended, which it returns. beyond is for agents that could
// not say any more what they did. Where the machine had no time for the controller's
// lease, and so for its agents', levels may be short: then the report must say so.
func (m *ramp) whole(t *testing.T, doc *result.Document, beyond int64) (unsaid int64) {
	t.Helper()
	// Agents say how far they are every 200 ms, their callers every 200 ms.
	most := int64(m.level())*(int64(400*time.Millisecond/gangLatency)+2) + beyond
	if starved(m.scan) {
		return m.said(t, doc, most)
	}
	seen := m.tg.times()
	var repeated int64
	for i, level := range gangLevels {
		if g := gangOf(t, doc, level); g.Degraded || g.Achieved != level || g.Planned != level {
			t.Errorf("level %d: %d of %d callers, degraded %v; want all", level, g.Achieved, g.Planned, g.Degraded)
		}
		for _, id := range operations(i*gangCalls, (i+1)*gangCalls) {
			n := seen[id]
			if n < 1 || n > 2 || n == 2 && i != m.hit {
				t.Errorf("level %d: operation %s was seen %d times", level, id, n)
			}
			repeated += int64(n - 1)
		}
	}
	if want := int64(gangCalls*len(gangLevels)) + 1; doc.Run.Calls != want {
		t.Errorf("the report counts %d calls, want %d: the levels and the preflight", doc.Run.Calls, want)
	}
	said := gangOf(t, doc, m.level()).Repeated
	unsaid = repeated - said
	if all := int64(len(m.tg.seen())); all != doc.Run.Calls+repeated || unsaid < 0 || unsaid > most {
		t.Errorf("the target saw %d calls; the report counts %d and says that %d more were repeated, of %d: want at most %d unsaid", all, doc.Run.Calls, said, repeated, most)
	}
	if doc.Run.Reissued != said {
		t.Errorf("%d operations reissued, want the %d repeated", doc.Run.Reissued, said)
	}
	return unsaid
}

// starved reports whether a controller could not renew its lease in time although
// its connection stood: a machine full of other work.
func starved(scan *fleettest.Proc) bool {
	return lateLine.MatchString(scan.Stderr())
}

var lateLine = regexp.MustCompile(`its lease is not renewed.*context deadline exceeded`)

// said checks that every level which is short of operations is said to be, and that
// what the target saw is what a report counts, says to be repeated, and at most so
// many that were in flight.
func (m *ramp) said(t *testing.T, doc *result.Document, most int64) (unsaid int64) {
	t.Helper()
	short := m.short(t, doc)
	for _, g := range doc.Fleet.Gangs {
		unsaid -= g.Repeated
	}
	if unsaid += int64(len(m.tg.seen())) - doc.Run.Calls; unsaid < 0 || unsaid > most {
		t.Errorf("the target saw %d calls, the report counts %d and leaves %d unsaid: want at most %d", len(m.tg.seen()), doc.Run.Calls, unsaid, most)
	}
	t.Logf("the machine had no time for the lease: %d operations were not made, and the report says so", short)
	return unsaid
}

// short counts the operations that were never made, and checks that their levels are
// said to be short of them.
func (m *ramp) short(t *testing.T, doc *result.Document) (short int) {
	t.Helper()
	seen := m.tg.times()
	for i, level := range gangLevels {
		missing := 0
		for _, id := range operations(i*gangCalls, (i+1)*gangCalls) {
			if seen[id] == 0 {
				missing++
			}
		}
		short += missing
		if g := gangOf(t, doc, level); missing > 0 && !g.Degraded && !hasCaveat(doc, "concurrency.partial."+levelName(level)) {
			t.Errorf("level %d: %d operations were never made by %d of %d callers, and no caveat says so: %+v", level, missing, g.Achieved, level, doc.Caveats)
		}
	}
	return short
}

// callsOfA counts the calls of agent a for the level after an instant.
func (m *ramp) callsOfA(after time.Time) (n int) {
	ids := operations(m.hit*gangCalls, (m.hit+1)*gangCalls)
	for _, c := range m.tg.seen() {
		if c.caller == "caller-a" && c.at.After(after) && slices.Contains(ids, c.operation) {
			n++
		}
	}
	return n
}

// traced says whether all that was held against the target's trace was so.
func traced(t *testing.T) string {
	if t.Failed() {
		return "no"
	}
	return "yes, by the target's trace"
}
