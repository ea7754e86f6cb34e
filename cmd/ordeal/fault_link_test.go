package main

import (
	"fmt"
	"testing"
	"time"

	"ordeal/testdata/fleettest"
)

// A cut is a cable that is mute for a while, or a connection that is reset and
// cannot be made again for a while.
var cuts = []struct {
	name  string
	begin func(*fleettest.Cut)
}{
	{"mute", (*fleettest.Cut).Cut},
	{"reset", (*fleettest.Cut).Drop},
}

// A connection that is lost for longer than any lease costs time, and nothing
// else, whichever side has lost it.
func TestFaultCuts(t *testing.T) {
	for _, long := range ofFaults([]time.Duration{5 * time.Second}, []time.Duration{5 * time.Second, 30 * time.Second}) {
		for _, cut := range cuts {
			for _, side := range []string{"controller", "agent"} {
				name := fmt.Sprintf("%s cut off, %s", side, cut.name)
				for moment := range ofFaults(1, 3) {
					t.Run(fmt.Sprintf("%s/%v/%d", name, long, moment), func(t *testing.T) {
						t.Parallel()
						cutOff(t, name, side, long, moment, cut.begin)
					})
				}
			}
		}
	}
}

func cutOff(t *testing.T, scenario, side string, long time.Duration, moment int, begin func(*fleettest.Cut)) {
	r := draw(scenario+long.String(), moment)
	w := newWorld(t, "near")
	cable := fleettest.NewCut(t, w.nats.Addr())
	toAgent, toController := w.url, w.url
	if side == "agent" {
		toAgent = cable.URL()
	} else {
		toController = cable.URL()
	}
	w.join("far", toAgent)
	scan := scanAt(t, toController, mockScanArgs...)
	results, later := r.IntN(100), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	begin(cable)
	time.Sleep(long)
	cable.Heal()
	doc := w.report(scan)
	row{scenario, fmt.Sprintf("%d results + %v, for %v", results, later.Round(time.Millisecond), long),
		w.counted(doc).String(), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// A server that is restarted, or killed and started again, costs time only.
func TestFaultServerRestarted(t *testing.T) {
	for moment := range ofFaults(2, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) {
			r := draw("nats-server restarted", moment)
			w := newWorld(t, "a", "b")
			scan := w.scan(mockScanArgs...)
			results, later := r.IntN(110), upTo(r, 30*time.Millisecond)
			if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
				t.Fatal(err)
			}
			time.Sleep(later)
			how := "stopped"
			if moment%2 == 1 {
				how = "killed"
				w.nats.Kill()
			}
			w.nats.Restart(t)
			doc := w.report(scan)
			// The spy may have missed what was said meanwhile.
			row{"nats-server " + how + " and started", fmt.Sprintf("%d results + %v", results, later.Round(time.Millisecond)),
				fmt.Sprintf("%d operations reissued, %d results ignored", doc.Run.Reissued, doc.Fleet.Ignored), sameAsWhole(t, mockScanArgs, doc)}.note(t)
		})
	}
}

// A controller that is slow to take its messages in has all of them in the end.
func TestFaultSlowConsumer(t *testing.T) {
	for _, rate := range ofFaults([]int{500_000}, []int{1_000_000, 500_000, 200_000}) { // bytes/s
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b")
			cable := fleettest.NewCut(t, w.nats.Addr())
			cable.SlowDown(rate)
			begun := time.Now()
			scan := scanAt(t, cable.URL(), mockScanArgs...)
			doc := w.report(scan)
			lasted := time.Since(begun)
			row{"slow consumer", fmt.Sprintf("%d KB/s, %.1f MB in %v", rate/1000, float64(cable.Stats().Down)/1e6, lasted.Round(time.Second)),
				w.counted(doc).String(), sameAsWhole(t, mockScanArgs, doc)}.note(t)
		})
	}
}
