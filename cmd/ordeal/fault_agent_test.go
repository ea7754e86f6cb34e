package main

import (
	"fmt"
	"testing"
	"time"
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
		fmt.Sprintf("%s, %d operations reissued, %d results ignored", what, doc.Run.Reissued, d.ignored), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}
