package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"ordeal/controller"
)

const (
	redraw = time.Second     // how often the line is drawn while nothing happens
	stale  = 2 * time.Second // after that long without a call a rate is history
)

// progress is one live line on a terminal: phase, probe, how far, how fast. It
// is drawn with every event and every second, vanishes when the run is done, and
// is silent when err is not a terminal.
type progress struct {
	w    io.Writer
	now  func() time.Time
	stop chan struct{}
	wg   sync.WaitGroup // the ticker

	mu    sync.Mutex // guards what is below
	event controller.Event
	since time.Time // the stage began
	moved time.Time // a call was last done
	shown bool
	ended bool
}

func newProgress(w io.Writer, now func() time.Time) *progress {
	if !terminal(w) {
		w = nil
	}
	return &progress{w: w, now: now, stop: make(chan struct{})}
}

// observer starts the line; it is nil when nobody would see anything.
func (p *progress) observer() func(controller.Event) {
	if p.w == nil {
		return nil
	}
	p.wg.Go(p.tick)
	return p.show
}

// tick draws the line until done.
func (p *progress) tick() {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// show takes news of the run.
func (p *progress) show(e controller.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	switch {
	case e.Stage != p.event.Stage:
		p.since, p.moved = now, now
	case e.Done != p.event.Done:
		p.moved = now
	}
	p.event = e
	p.draw()
}

// draw writes the line; the caller holds mu.
func (p *progress) draw() {
	if p.ended || p.event.Stage == "" {
		return
	}
	now := p.now()
	fmt.Fprintf(p.w, "\r\x1b[K%s", progressLine(p.event, now.Sub(p.since), now.Sub(p.moved)))
	p.shown = true
}

// done ends the ticker and wipes the line.
func (p *progress) done() {
	close(p.stop)
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// progressLine fits 80 columns: "baseline  latency  40/100  12.3/s  0 errors  ETA 5s".
// elapsed is the age of the stage, idle the time since a call was done in it.
func progressLine(e controller.Event, elapsed, idle time.Duration) string {
	line := fmt.Sprintf("%-8s  %s", e.Phase, e.Stage)
	switch {
	case e.Total > 0:
		line += fmt.Sprintf("  %d/%d", min(e.Done, e.Total), e.Total)
	case e.Done > 0:
		line += fmt.Sprintf("  %d", e.Done)
	}
	rate := 0.0
	if e.Done > 0 && elapsed > 0 {
		rate = float64(e.Done) / elapsed.Seconds()
	}
	switch {
	case idle > stale:
		line += "  " + waiting(e) + ", " + idle.Round(time.Second).String()
	case rate > 0:
		line += fmt.Sprintf("  %.1f/s  %s", rate, errorCount(e.Errs))
		if left := e.Total - e.Done; left > 0 {
			line += fmt.Sprintf("  ETA %v", (time.Duration(float64(left) / rate * 1e9)).Round(time.Second))
		}
	}
	if r := []rune(line); len(r) > 79 {
		line = string(r[:79])
	}
	return line
}

// waiting says what a stage without news waits for. Faults are injected in the
// chaos phase alone.
func waiting(e controller.Event) string {
	if e.Phase == "chaos" {
		return "waiting for calls or injected delays"
	}
	return "waiting for calls"
}

func errorCount(n int64) string {
	if n == 1 {
		return "1 error"
	}
	return fmt.Sprintf("%d errors", n)
}
