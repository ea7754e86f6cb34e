package main

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ordeal/controller"
)

func TestProgressLine(t *testing.T) {
	rows := []struct {
		name          string
		event         controller.Event
		elapsed, idle time.Duration
		want          string
	}{
		{"Begun", controller.Event{Phase: "baseline", Stage: "latency", Total: 100}, 0, 0, "baseline  latency  0/100"},
		{"Moving", controller.Event{Phase: "baseline", Stage: "latency", Done: 40, Total: 100, Errs: 1}, 4 * time.Second, 0,
			"baseline  latency  40/100  10.0/s  1 error  ETA 6s"},
		{"JustQuiet", controller.Event{Phase: "baseline", Stage: "latency", Done: 40, Total: 40}, 4 * time.Second, 2 * time.Second,
			"baseline  latency  40/40  10.0/s  0 errors"},
		{"Waiting", controller.Event{Phase: "chaos", Stage: "degradation", Done: 39, Total: 40, Errs: 2}, 30 * time.Second, 12 * time.Second,
			"chaos     degradation  39/40  waiting for calls or injected delays, 12s"},
		{"NothingInjected", controller.Event{Phase: "survey", Stage: "survey", Total: 0}, 3 * time.Second, 3 * time.Second,
			"survey    survey  waiting for calls, 3s"},
		{"Timed", controller.Event{Phase: "baseline", Stage: "concurrency-8", Done: 900, Errs: 2}, 10 * time.Second, 0,
			"baseline  concurrency-8  900  90.0/s  2 errors"},
		{"Cut", controller.Event{Phase: "baseline", Stage: strings.Repeat("x", 100)}, 0, 0, "baseline  " + strings.Repeat("x", 69)},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := progressLine(r.event, r.elapsed, r.idle); got != r.want {
				t.Errorf("%q\nwant %q", got, r.want)
			}
		})
	}
}

// screen keeps what was drawn since it was last looked at.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) look() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

// TestProgressTicks: without news the line is drawn every second and says what
// it waits for; in the end it is wiped and nothing goes on.
func TestProgressTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		p := newProgress(&s, time.Now)
		if p.observer() != nil {
			t.Fatal("a line is drawn on what is no terminal")
		}
		p.w = &s
		show := p.observer()
		e := controller.Event{Phase: "chaos", Stage: "recovery", Total: 10}
		show(e)
		e.Done = 5
		time.Sleep(time.Second / 2)
		show(e)
		synctest.Wait()
		if got := s.look(); !strings.HasSuffix(got, "5/10  10.0/s  0 errors  ETA 1s") {
			t.Errorf("drew %q", got)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got := s.look()
		if n := strings.Count(got, "\r\x1b[K"); n != 5 || !strings.HasSuffix(got, "\r\x1b[Kchaos     recovery  5/10  waiting for calls or injected delays, 5s") {
			t.Errorf("drew %d lines in 5 s, the last of %q", n, got)
		}
		p.done()
		show(e)
		if got := s.look(); got != "\r\x1b[K" {
			t.Errorf("in the end %q, want a wiped line", got)
		}
	})
}
