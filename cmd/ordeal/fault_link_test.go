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
func cutOffs(t *testing.T) {
	for _, long := range ofFaults([]time.Duration{cutFor}, []time.Duration{cutFor, 30 * time.Second}) {
		for _, cut := range cuts {
			for _, side := range []string{"controller", "agent"} {
				name := fmt.Sprintf("%s cut off, %s", side, cut.name)
				t.Run(fmt.Sprintf("%s/%s/%v", side, cut.name, long), func(t *testing.T) {
					times(t, ofFaults(1, 3), func(t *testing.T, moment int) { cutOff(t, name, side, long, moment, cut.begin) })
				})
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
	when := w.afterResults(r, 100)
	begin(cable)
	time.Sleep(long)
	cable.Heal()
	doc := w.report(scan)
	row{scenario, when + ", for " + long.String(), w.counted(doc), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}

// A server that is restarted, or killed and started again, costs time only. The
// spy may miss what is said meanwhile.
func serverRestarted(t *testing.T) {
	times(t, ofFaults(2, 20), func(t *testing.T, moment int) {
		r := draw("nats-server restarted", moment)
		w := newWorld(t, "a", "b")
		scan := w.scan(mockScanArgs...)
		when, how := w.afterResults(r, 110), "stopped"
		if moment%2 == 1 {
			how = "killed"
			w.nats.Kill()
		}
		w.nats.Restart(t)
		doc := w.report(scan)
		row{"nats-server " + how + " and started", when,
			denominatorsOf(doc), sameAsWhole(t, mockScanArgs, doc)}.note(t)
	})
}

// A controller that is slow to take its messages in has all of them in the end.
func slowConsumer(t *testing.T) {
	for _, rate := range ofFaults([]int{500_000}, []int{1_000_000, 500_000, 200_000}) { // bytes/s
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			w := newWorld(t, "a", "b")
			cable := fleettest.NewCut(t, w.nats.Addr())
			cable.SlowDown(rate)
			begun := time.Now()
			doc := w.report(scanAt(t, cable.URL(), mockScanArgs...))
			row{"slow consumer", fmt.Sprintf("%d KB/s", rate/1000),
				fmt.Sprintf("%.1f MB in %v, %v", float64(cable.Stats().Down)/1e6, time.Since(begun).Round(time.Second), w.counted(doc)), sameAsWhole(t, mockScanArgs, doc)}.note(t)
		})
	}
}
