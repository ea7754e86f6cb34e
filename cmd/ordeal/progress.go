package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"ordeal/controller"
)

// progress is one live line on a terminal: phase, probe, how far, how fast. It
// vanishes when the run is done and is silent when err is not a terminal.
type progress struct {
	w     io.Writer
	now   func() time.Time
	mu    sync.Mutex
	stage string
	since time.Time
	shown bool
	ended bool
}

func newProgress(w io.Writer, now func() time.Time) *progress {
	if !terminal(w) {
		w = nil
	}
	return &progress{w: w, now: now}
}

// observer is nil when nobody would see anything.
func (p *progress) observer() func(controller.Event) {
	if p.w == nil {
		return nil
	}
	return p.show
}

func (p *progress) show(e controller.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	now := p.now()
	if e.Stage != p.stage {
		p.stage, p.since = e.Stage, now
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", progressLine(e, now.Sub(p.since)))
	p.shown = true
}

// done wipes the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// progressLine fits 80 columns: "baseline  latency  40/100  12.3/s  0 errors  ETA 5s".
func progressLine(e controller.Event, elapsed time.Duration) string {
	line := fmt.Sprintf("%-8s  %s", e.Phase, e.Stage)
	if e.Total > 0 {
		line += fmt.Sprintf("  %d/%d", min(e.Done, e.Total), e.Total)
	}
	if e.Done > 0 && elapsed > 0 {
		rate := float64(e.Done) / elapsed.Seconds()
		line += fmt.Sprintf("  %.1f/s  %d errors", rate, e.Errs)
		if left := e.Total - e.Done; left > 0 {
			line += fmt.Sprintf("  ETA %v", (time.Duration(float64(left) / rate * 1e9)).Round(time.Second))
		}
	}
	if r := []rune(line); len(r) > 79 {
		line = string(r[:79])
	}
	return line
}
