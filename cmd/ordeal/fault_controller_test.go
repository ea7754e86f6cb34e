package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller"
	"ordeal/controller/result"
	"ordeal/testdata/fleettest"
)

// runOf is the id of the run that a scan of a fleet has begun.
func runOf(t *testing.T, scan *fleettest.Proc) string {
	t.Helper()
	line, err := scan.WaitStderr(within(t, faultWait), "run ")
	if err != nil {
		t.Fatal(err)
	}
	return line[len("run "):]
}

// resume carries a run on.
func (w *world) resume(ctx context.Context, run string) (*result.Document, error) {
	w.t.Helper()
	b, err := bus.Connect(ctx, bus.Link{URLs: w.nats.URL(), Name: "resume"})
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	return controller.Resume(ctx, controller.ResumeOptions{Bus: b, Run: run, Version: cli.Version, Warnings: func(text string) { w.t.Log("warning: " + text) }})
}

// A run whose controller is killed goes on where it stood, and its report is
// that of a run that nobody disturbed.
func TestFaultControllerKilled(t *testing.T) {
	for moment := range ofFaults(3, 20) {
		t.Run(fmt.Sprint(moment), func(t *testing.T) { killController(t, moment) })
	}
}

func killController(t *testing.T, moment int) {
	r := draw("controller killed", moment)
	w := newWorld(t, "a", "b")
	scan := w.scan(mockScanArgs...)
	run := runOf(t, scan)
	results, later := r.IntN(110), upTo(r, 30*time.Millisecond)
	if err := w.spy.awaitResults(within(t, faultWait), results); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later)
	scan.Kill()
	doc, err := w.resume(within(t, faultWait), run)
	if err != nil {
		t.Fatal(err)
	}
	d := w.counted(doc)
	row{"controller killed and resumed", fmt.Sprintf("%d results + %v", results, later.Round(time.Millisecond)),
		fmt.Sprintf("%d operations reissued, %d results ignored", doc.Run.Reissued, d.ignored), sameAsWhole(t, mockScanArgs, doc)}.note(t)
}
