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

// gangMoment is a moment in a level of a ramp that is under way.
type gangMoment struct {
	tg    *target
	w     *world
	scan  *fleettest.Proc
	hit   int // which level
	later time.Duration
}

// inGang begins a ramp whose controller is at toController, and returns at a
// random moment of a level in which the agent called far takes part, which is at
// toAgent.
func inGang(t *testing.T, scenario string, moment int, w *world, toController, toAgent string) *gangMoment {
	t.Helper()
	r := draw(scenario, moment)
	m := &gangMoment{tg: newTarget(t, gangLatency), w: w, hit: r.IntN(len(gangLevels))}
	m.later = upTo(r, levelTime(gangLevels[m.hit])*9/10)
	w.join("a", toAgent)
	m.scan = scanAt(t, toController, gangArgs(m.tg)...)
	if err := w.spy.awaitGo(within(t, faultWait), m.hit+1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(m.later)
	return m
}

func (m *gangMoment) String() string {
	return fmt.Sprintf("level %d + %v", gangLevels[m.hit], m.later.Round(time.Millisecond))
}

// A server that is gone for a moment, shorter than a lease, is not felt by a gang
// at all.
func TestFaultServerRestartedInGang(t *testing.T) {
	for moment := range ofFaults(1, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			w := newWorld(t, "b", "c")
			m := inGang(t, "nats-server restarted in a gang", moment, w, w.url, w.url)
			w.nats.Kill()
			w.nats.Restart(t)
			doc := w.report(m.scan)
			for i, level := range gangLevels {
				if g := gangOf(t, doc, level); g.Attempts != 1 || len(g.Lost) > 0 {
					t.Errorf("level %d: %d attempts, lost %v; want one and nobody", level, g.Attempts, g.Lost)
				}
				for _, id := range operations(i*gangCalls, (i+1)*gangCalls) {
					if n := m.tg.times()[id]; n != 1 {
						t.Errorf("level %d: operation %s was seen %d times", level, id, n)
					}
				}
			}
			row{"nats-server killed in a gang", m.String(), fmt.Sprintf("%d calls, nobody lost", doc.Run.Calls), yesNo(!t.Failed())}.note(t)
		})
	}
}

// An agent that is cut off may work on until its lease is over: the level is
// begun again without it, and not before it has stopped.
func TestFaultAgentCutOffInGang(t *testing.T) {
	for _, cut := range cuts {
		for moment := range ofFaults(1, 10) {
			t.Run(fmt.Sprintf("%s/%d", cut.name, moment), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "b", "c")
				cable := fleettest.NewCut(t, w.nats.Addr())
				scenario := "agent cut off in a gang, " + cut.name
				m := inGang(t, scenario, moment, w, w.url, cable.URL())
				cut.begin(cable)
				struck := time.Now()
				time.Sleep(5 * time.Second)
				cable.Heal()
				doc := w.report(m.scan)
				g := gangOf(t, doc, gangLevels[m.hit])
				if g.Attempts != 2 || !slices.Equal(g.Lost, []string{"a"}) {
					t.Errorf("level %d: %d attempts, lost %v; want it repeated without a", gangLevels[m.hit], g.Attempts, g.Lost)
				}
				unsaid := checkGangs(t, m.tg, doc, m.hit, int64(gangLevels[m.hit])*int64(faultTTL/gangLatency))
				if n := callsOf(m.tg, "caller-a", m.hit, struck.Add(faultTTL)); n > 0 {
					t.Errorf("%d calls of the agent that was cut off after its lease", n)
				}
				if again := w.spy.startOf(t, m.hit, 2); callsOf(m.tg, "caller-a", m.hit, again) > 0 {
					t.Errorf("%d calls of the agent that was cut off, beside the second try of the level", callsOf(m.tg, "caller-a", m.hit, again))
				}
				row{scenario, m.String() + ", for 5s", fmt.Sprintf("%d attempts, lost %v, %d operations repeated, %d in flight", g.Attempts, g.Lost, g.Repeated, unsaid), yesNo(!t.Failed())}.note(t)
			})
		}
	}
}

// startOf is when the go of a level's attempt was heard.
func (s *spy) startOf(t *testing.T, hit, attempt int) time.Time {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var gangs []string // stages with a go, in order
	for _, c := range s.controls {
		if c.msg.Kind != wire.Go {
			continue
		}
		stage, number, _ := strings.Cut(c.msg.Gang, "-a")
		if !slices.Contains(gangs, stage) {
			gangs = append(gangs, stage)
		}
		if gangs[min(hit, len(gangs)-1)] == stage && len(gangs) == hit+1 && number == fmt.Sprint(attempt) {
			return c.at
		}
	}
	t.Fatalf("no go of attempt %d of level %d", attempt, gangLevels[hit])
	return time.Time{}
}

// A controller that is cut off for longer than the lease leaves a level cut
// short. What was measured counts, what the target saw is what the report says,
// and the report says why there is not more.
func TestFaultControllerCutOffInGang(t *testing.T) {
	for _, cut := range cuts {
		for moment := range ofFaults(1, 10) {
			t.Run(fmt.Sprintf("%s/%d", cut.name, moment), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "b", "c")
				cable := fleettest.NewCut(t, w.nats.Addr())
				scenario := "controller cut off in a gang, " + cut.name
				m := inGang(t, scenario, moment, w, cable.URL(), w.url)
				cut.begin(cable)
				struck := time.Now()
				last := quietFor(t, m.tg, 2*time.Second)
				time.Sleep(time.Until(struck.Add(5 * time.Second)))
				cable.Heal()
				doc := w.report(m.scan)
				if after := last.Sub(struck); after > faultTTL {
					t.Errorf("the last call came %v after the cut, want within the lease", after)
				}
				said := accounted(t, m, doc)
				row{scenario, m.String() + ", for 5s", fmt.Sprintf("last call after %v, %s", last.Sub(struck).Round(time.Millisecond), said), yesNo(!t.Failed())}.note(t)
			})
		}
	}
}

// accounted checks that what the target saw is what a report counts or says was
// repeated, and that a level which is short of operations is said to be.
func accounted(t *testing.T, m *gangMoment, doc *result.Document) string {
	t.Helper()
	g := gangOf(t, doc, gangLevels[m.hit])
	all, short := int64(len(m.tg.seen())), 0
	for _, id := range operations(0, len(gangLevels)*gangCalls) {
		if m.tg.times()[id] == 0 {
			short++
		}
	}
	// A call that was in flight when its agent stopped is in neither.
	if unsaid := all - doc.Run.Calls - g.Repeated; unsaid < 0 || unsaid > int64(gangLevels[m.hit]) {
		t.Errorf("the target saw %d calls, the report counts %d and says that %d more were repeated", all, doc.Run.Calls, g.Repeated)
	}
	partial := fmt.Sprintf("concurrency.partial.concurrency-%d", gangLevels[m.hit])
	told := slices.ContainsFunc(doc.Caveats, func(c metrics.Caveat) bool { return c.ID == partial })
	if short > 0 && !told {
		t.Errorf("%d operations were never made, and there is no caveat %s among %+v", short, partial, doc.Caveats)
	}
	if len(g.Lost) > 0 {
		t.Errorf("lost %v, want nobody: it was the controller that was cut off", g.Lost)
	}
	return fmt.Sprintf("%d attempts, %d operations not made, %d repeated", g.Attempts, short, g.Repeated)
}
