package main

import (
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
	return parse(w.t, p.Stdout())
}

// counted checks what a report says about work that was done again or came too
// late against what the spy has heard.
func (w *world) counted(doc *result.Document) denominators {
	w.t.Helper()
	d := w.spy.denominators()
	if doc.Run.Reissued != d.reissued {
		w.t.Errorf("%d operations reissued, want %d", doc.Run.Reissued, d.reissued)
	}
	if doc.Fleet != nil && doc.Fleet.Ignored != int64(d.ignored) {
		w.t.Errorf("%d results ignored, want %d", doc.Fleet.Ignored, d.ignored)
	}
	return d
}
