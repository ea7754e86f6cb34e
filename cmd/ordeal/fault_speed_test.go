package main

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordeal/cmd/internal/cli"
	"ordeal/testdata/fleettest"
)

// haltWait is within what a halt reaches every agent that can be reached.
const haltWait = time.Second

// loaded begins an open loop of 200 calls/s by three agents, and returns once it
// is under way.
func loaded(t *testing.T, args ...string) (*target, *world, *fleettest.Proc) {
	t.Helper()
	tg := newTarget(t, 5*time.Millisecond)
	w := newWorld(t, "a", "b", "c")
	scan := fleettest.Scan(t, w.url, append(tg.args("--probes", "latency", "--rate", "200", "--json"), args...)...)
	if err := w.spy.awaitGo(within(t, faultWait), 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if n := len(callers(tg)); n != 3 {
		t.Fatalf("%d agents call, want 3", n)
	}
	return tg, w, scan
}

// callers counts the calls of each agent.
func callers(tg *target) map[string]int {
	n := map[string]int{}
	for _, c := range tg.seen() {
		n[c.caller]++
	}
	return n
}

// However a run is halted, its load ends within a second everywhere, and what
// was measured until then is what the target saw.
func TestFaultHaltReachesAllAgents(t *testing.T) {
	tests := []struct {
		name   string
		silent bool // the controller is stopped and makes no document
		halt   func(*world, *fleettest.Proc)
	}{
		{"interrupt of the controller", false, func(w *world, scan *fleettest.Proc) {
			if err := syscall.Kill(scan.Pid(), syscall.SIGINT); err != nil {
				w.t.Fatal(err)
			}
		}},
		{"runs halt", false, func(w *world, _ *fleettest.Proc) { fleettest.Ordeal(w.t, "runs", "halt", "last", "--nats", w.url) }},
		{"runs halt past a stopped controller", true, func(w *world, scan *fleettest.Proc) {
			scan.Pause()
			fleettest.Ordeal(w.t, "runs", "halt", "last", "--nats", w.url)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tg, w, scan := loaded(t, "--level-duration", "30s", "--lease-ttl", "20s")
			halted := time.Now()
			tt.halt(w, scan)
			took := quietFor(t, tg, 2*time.Second).Sub(halted)
			if took > haltWait {
				t.Errorf("the last call came %v after the halt, want within %v", took, haltWait)
			}
			equal := "n/a"
			if !tt.silent {
				equal = haltedReport(t, tg, scan)
			}
			row{"halt of 3 agents under load", tt.name, fmt.Sprintf("last call after %v", took.Round(time.Millisecond)), equal}.note(t)
		})
	}
}

// quietFor waits until no call has come for so long and returns when the last one
// did.
func quietFor(t *testing.T, tg *target, long time.Duration) time.Time {
	t.Helper()
	ctx := within(t, faultWait)
	for {
		last := tg.last()
		wait := time.Until(last.Add(long))
		if wait <= 0 {
			return last
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			t.Fatalf("calls go on: %v", callers(tg))
		}
	}
}

// haltedReport checks the report of a halted run against the target's trace.
func haltedReport(t *testing.T, tg *target, scan *fleettest.Proc) string {
	t.Helper()
	code, err := scan.Wait(within(t, faultWait))
	if code != cli.Interrupted || err != nil {
		t.Fatalf("exit code %d, %v, want %d", code, err, cli.Interrupted)
	}
	doc := parse(t, scan.Stdout())
	if all := int64(len(tg.seen())); !doc.Run.Partial || doc.Run.Calls != all {
		t.Errorf("partial %v, %d calls in the report, %d at the target; want a partial report of all of them", doc.Run.Partial, doc.Run.Calls, all)
		return "no"
	}
	return "all " + fmt.Sprint(doc.Run.Calls) + " calls"
}

// When a controller vanishes, its agents stop within the lease.
func TestFaultVanishedControllerStopsLoad(t *testing.T) {
	tg, _, scan := loaded(t, "--level-duration", "30s", "--lease-ttl", faultTTL.String())
	killed := time.Now()
	scan.Kill()
	took := quietFor(t, tg, 2*time.Second).Sub(killed)
	if took > faultTTL {
		t.Errorf("the last call came %v after the controller had vanished, want within its lease of %v", took, faultTTL)
	}
	row{"controller vanishes under load", fmt.Sprintf("lease of %v, 3 agents", faultTTL), fmt.Sprintf("last call after %v", took.Round(time.Millisecond)), "n/a"}.note(t)
}

// A controller that stands still does not change what agents send under their
// lease.
func controllerPaused(t *testing.T) {
	const paused, compared = 10 * time.Second, 5 * time.Second
	most := ofFaults(0.03, 0.005) // a machine full of other tests moves a rate, too
	tg, w, scan := loaded(t, "--level-duration", "25s", "--lease-ttl", "30s")
	time.Sleep(8 * time.Second)
	stopped := time.Now()
	scan.Pause()
	time.Sleep(paused)
	scan.Resume()
	woken := time.Now()
	before, meanwhile := pace(tg, stopped.Add(-compared), stopped), pace(tg, stopped, woken)
	change := meanwhile/before - 1
	if math.Abs(change) > most {
		t.Errorf("%.3f calls/s before, %.3f while the controller stood still: %+.2f %%, want less than %.1f %%", before, meanwhile, 100*change, 100*most)
	}
	doc := w.report(scan)
	if all := int64(len(tg.seen())); doc.Run.Calls != all || strings.Contains(scan.Stderr(), "lost") {
		t.Errorf("%d calls in the report, %d at the target, stderr:\n%s", doc.Run.Calls, all, scan.Stderr())
	}
	row{"controller paused for " + paused.String(), "open loop of 200/s, 3 agents", fmt.Sprintf("%.2f calls/s before, %.2f meanwhile: %+.2f %%", before, meanwhile, 100*change),
		fmt.Sprintf("all %d calls", doc.Run.Calls)}.note(t)
}

// pace is the calls a second that arrived between two instants, as the slope of
// a line through the arrivals: one that came late at an edge does not move it.
func pace(tg *target, from, to time.Time) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, c := range tg.seen() {
		if c.at.Before(from) || !c.at.Before(to) {
			continue
		}
		x := c.at.Sub(from).Seconds()
		sx, sy, sxx, sxy = sx+x, sy+n, sxx+x*x, sxy+x*n
		n++
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
