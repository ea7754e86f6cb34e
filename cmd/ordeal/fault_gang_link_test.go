package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/testdata/fleettest"
)

// cutFor is longer than any lease of these tests.
const cutFor = 5 * time.Second

// A server that is gone for a moment, shorter than a lease, is not felt by a gang
// at all.
func serverRestartedInGang(t *testing.T) {
	times(t, ofFaults(1, 20), func(t *testing.T, moment int) {
		w := newWorld(t)
		m := inRamp(t, "nats-server killed in a gang", moment, w, w.url, w.url)
		w.nats.Kill()
		w.nats.Restart(t)
		doc := w.report(m.scan)
		if said := m.whole(t, doc, 0); !starved(m.scan) {
			if said != 0 || gangOf(t, doc, m.level()).Attempts != 1 {
				t.Errorf("level %d: %+v, %d calls too many; want one attempt", m.level(), gangOf(t, doc, m.level()), said)
			}
			notLost(t, m.scan, doc)
		}
		row{"nats-server killed in a gang", m.String(), fmt.Sprintf("%d calls, nobody lost", doc.Run.Calls), traced(t)}.note(t)
	})
}

// An agent that is cut off may work on until its lease is over: the level is
// begun again without it, and not before it has stopped.
func agentCutOffInGang(t *testing.T) {
	for _, cut := range cuts {
		t.Run(cut.name, func(t *testing.T) {
			times(t, ofFaults(1, 10), func(t *testing.T, moment int) {
				w := newWorld(t)
				cable := fleettest.NewCut(t, w.nats.Addr())
				scenario := "agent cut off in a gang, " + cut.name
				m := inRamp(t, scenario, moment, w, w.url, cable.URL())
				cut.begin(cable)
				struck := time.Now()
				time.Sleep(cutFor)
				cable.Heal()
				// What it did beside its last word the controller cannot know.
				m.lostA(t, scenario, struck, struck.Add(faultTTL+100*time.Millisecond), int64(m.level())*int64(faultTTL/gangLatency))
			})
		})
	}
}

// goOf is when the go of a level's attempt was heard.
func (s *spy) goOf(hit, attempt int) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stages []string // with a go, in order
	for _, c := range s.controls {
		if c.msg.Kind != wire.Go {
			continue
		}
		stage, number, _ := strings.Cut(c.msg.Gang, "-a")
		if !slices.Contains(stages, stage) {
			stages = append(stages, stage)
		}
		if slices.Index(stages, stage) == hit && number == fmt.Sprint(attempt) {
			return c.at, true
		}
	}
	return time.Time{}, false
}

// A controller that is cut off for longer than the lease leaves a level cut
// short. What was measured counts, what the target saw is what the report says,
// and the report says why there is not more.
func controllerCutOffInGang(t *testing.T) {
	for _, cut := range cuts {
		t.Run(cut.name, func(t *testing.T) {
			times(t, ofFaults(1, 10), func(t *testing.T, moment int) {
				w := newWorld(t)
				cable := fleettest.NewCut(t, w.nats.Addr())
				scenario := "controller cut off in a gang, " + cut.name
				m := inRamp(t, scenario, moment, w, cable.URL(), w.url)
				cut.begin(cable)
				struck := time.Now()
				last := quietFor(t, m.tg, 2*time.Second)
				time.Sleep(time.Until(struck.Add(cutFor)))
				cable.Heal()
				doc := w.report(m.scan)
				if after := last.Sub(struck); after > faultTTL {
					t.Errorf("the last call came %v after the cut, want within the lease", after)
				}
				said := m.accounted(t, doc)
				row{scenario, m.String() + ", for " + cutFor.String(), fmt.Sprintf("last call after %v, %s", last.Sub(struck).Round(time.Millisecond), said), traced(t)}.note(t)
			})
		})
	}
}

// accounted checks that what the target saw is what a report counts or says was
// repeated, that every level which is short of operations is said to be, and that
// nobody is called lost.
func (m *ramp) accounted(t *testing.T, doc *result.Document) string {
	t.Helper()
	g, short := gangOf(t, doc, m.level()), m.short(t, doc)
	// A call that was in flight when its agent stopped is in neither.
	all := int64(len(m.tg.seen()))
	if unsaid := all - doc.Run.Calls - g.Repeated; unsaid < 0 || unsaid > int64(m.level()) {
		t.Errorf("the target saw %d calls, the report counts %d and says that %d more were repeated", all, doc.Run.Calls, g.Repeated)
	}
	if len(g.Lost) > 0 {
		t.Errorf("lost %v, want nobody: it was the controller that was cut off", g.Lost)
	}
	return fmt.Sprintf("%d attempts, %d operations not made, %d repeated", g.Attempts, short, g.Repeated)
}

func hasCaveat(doc *result.Document, id string) bool {
	return slices.ContainsFunc(doc.Caveats, func(c metrics.Caveat) bool { return c.ID == id })
}
