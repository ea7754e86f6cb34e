package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ordeal/controller/result"
	"ordeal/testdata/fleettest"
)

const (
	// faultTTL is the lease of most disturbed runs: short, so that what waits for
	// its end does not wait long.
	faultTTL = 2 * time.Second
	// faultWait bounds one disturbed run on a busy machine.
	faultWait = 2 * time.Minute
)

// world is a fleet of one test.
type world struct {
	t      *testing.T
	url    string
	nats   *fleettest.NATS // nil for one of a cluster
	spy    *spy
	agents map[string]*fleettest.Proc
}

// newWorld starts a server and agents.
func newWorld(t *testing.T, agents ...string) *world {
	t.Helper()
	n := fleettest.StartNATS(t, fleettest.NATSOptions{})
	w := worldAt(t, n.URL(), agents...)
	w.nats = n
	return w
}

// worldAt starts agents on servers that are there.
func worldAt(t *testing.T, url string, agents ...string) *world {
	t.Helper()
	w := &world{t: t, url: url, spy: newSpy(t, url), agents: map[string]*fleettest.Proc{}}
	for _, name := range agents {
		w.join(name, url)
	}
	return w
}

// join starts an agent that reaches the server at url.
func (w *world) join(name, url string) {
	w.t.Helper()
	w.agents[name] = fleettest.Agent(w.t, url, name)
	introduce(w.t, w.agents[name], name)
}

// scan begins a scan under a lease of faultTTL; report waits for its document.
func (w *world) scan(args ...string) *fleettest.Proc {
	w.t.Helper()
	return scanAt(w.t, w.url, args...)
}

// scanAt is scan over another way to the server.
func scanAt(t *testing.T, url string, args ...string) *fleettest.Proc {
	t.Helper()
	return fleettest.Scan(t, url, append(slices.Clone(args), "--lease-ttl", faultTTL.String(), "--json")...)
}

// report waits for a command that must succeed and returns what it measured.
func (w *world) report(p *fleettest.Proc) *result.Document {
	w.t.Helper()
	code, err := p.Wait(within(w.t, faultWait))
	if err != nil {
		w.t.Fatal(err)
	}
	if code != 0 {
		w.t.Fatalf("exit code %d, want 0", code)
	}
	doc := parse(w.t, p.Stdout())
	if doc.Fleet == nil {
		w.t.Fatal("the document has no fleet")
	}
	return doc
}

// counted checks what a report says about work that was done again or came too
// late against what the spy has heard, and repeats it.
func (w *world) counted(doc *result.Document) string {
	w.t.Helper()
	d := w.spy.denominators()
	// Never fewer than were begun again. More are said where a unit was handed out
	// while no controller listened: the target may have seen it.
	if n := doc.Run.Reissued; n < d.begun || n > d.handed {
		w.t.Errorf("%d operations reissued; want %d, which were begun again, to %d, which were handed out again", n, d.begun, d.handed)
	}
	return w.ignored(doc, d)
}

func (w *world) ignored(doc *result.Document, d denominators) string {
	w.t.Helper()
	if n := doc.Fleet.Ignored; n != d.ignored {
		w.t.Errorf("%d results ignored, want %d", n, d.ignored)
	}
	return denominatorsOf(doc)
}

// denominatorsOf are those of a report.
func denominatorsOf(doc *result.Document) string {
	return fmt.Sprintf("%d operations reissued, %d results ignored", doc.Run.Reissued, doc.Fleet.Ignored)
}

// inUnit returns at a random moment of a unit of an agent, and says which.
func (w *world) inUnit(r *rand.Rand, agent string) string {
	w.t.Helper()
	unit, later := 1+r.IntN(40), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitBegun(within(w.t, faultWait), agent, unit); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(later)
	return fmt.Sprintf("unit %d + %v", unit, later.Round(time.Millisecond))
}

// afterResults returns a random moment after at most so many results, and says
// which.
func (w *world) afterResults(r *rand.Rand, most int) string {
	w.t.Helper()
	results, later := r.IntN(most), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitResults(within(w.t, faultWait), results); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(later)
	return fmt.Sprintf("%d results + %v", results, later.Round(time.Millisecond))
}
