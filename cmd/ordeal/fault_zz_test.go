package main

import (
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	args := []string{"mock:degraded", "--requests", "8000000", "--probes", "latency"}
	for _, rest := range []time.Duration{0, 4 * time.Second} {
		t.Run(rest.String(), func(t *testing.T) {
			w := newWorld(t, "a")
			scan := w.scan(args...)
			run := runOf(t, scan)
			if err := w.spy.awaitResults(within(t, faultWait), 8); err != nil {
				t.Fatal(err)
			}
			scan.Kill()
			time.Sleep(rest)
			doc, err := w.resume(within(t, 40*time.Second), run)
			if err != nil {
				t.Fatal(err)
			}
			w.counted(doc)
			t.Log(sameAsWhole(t, args, doc))
		})
	}
}
