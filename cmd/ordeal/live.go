package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// LiveState is what a load looks like at one moment.
type LiveState struct {
	Target  string
	Stage   string
	Model   string        // open, closed
	Elapsed time.Duration // since the stage began
	Total   time.Duration // 0: a number of calls ends it
	Asked   float64       // callers, or arrivals per second
	By      string        // the label whose values the rows after the first are; empty without
	Rows    []LiveRow     // the whole first
}

// LiveRow is what the fleet, or a part of it, observed in the last second.
type LiveRow struct {
	Name          string // empty for the whole
	Achieved      float64
	InFlight      int64
	P50, P95, P99 time.Duration // 0: no call was answered well
	Outcomes      map[string]int64
	Dropped       int64
	Spark         []float64 // of Achieved, the newest last; nil: the table remembers by itself
}

// sparkLength is how many seconds the table looks back.
const sparkLength = 40

// liveTable is a table on a terminal that is drawn anew in its place with every
// show and every second, and vanishes when the run is done. Each drawing is one
// write that overwrites line by line and never clears first, so nothing flickers.
// It is silent where w is no terminal.
type liveTable struct {
	w     io.Writer
	size  func() (columns, lines int)
	color bool
	now   func() time.Time
	stop  chan struct{}
	wg    sync.WaitGroup // the ticker

	mu      sync.Mutex // guards what is below
	state   LiveState
	at      time.Time // of the state
	known   bool
	past    map[string][]float64
	drawn   []int // columns of the lines on the screen
	settled bool  // done: nothing is drawn any more
}

func newLiveTable(w io.Writer, now func() time.Time) *liveTable {
	t := &liveTable{now: now, stop: make(chan struct{}), past: map[string][]float64{}, color: colored(w)}
	if terminal(w) {
		t.w, t.size = w, func() (int, int) { return terminalSize(w) }
	}
	return t
}

// terminalSize is 80 by 24 where the terminal does not say.
func terminalSize(w io.Writer) (columns, lines int) {
	if f, ok := w.(*os.File); ok {
		if columns, lines, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && lines > 0 {
			return columns, lines
		}
	}
	return 80, 24
}

// observer starts the table; it is nil where nobody would see anything.
func (t *liveTable) observer() func(LiveState) {
	if t.w == nil {
		return nil
	}
	t.wg.Go(t.tick)
	return t.show
}

// tick draws the table until done: its clock goes on while no news come.
func (t *liveTable) tick() {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ticker.C:
			t.mu.Lock()
			t.draw()
			t.mu.Unlock()
		}
	}
}

// show takes a new state.
func (t *liveTable) show(s LiveState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Stage != t.state.Stage {
		clear(t.past)
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Spark == nil {
			past := append(t.past[r.Name], r.Achieved)
			past = past[max(0, len(past)-sparkLength):]
			t.past[r.Name], r.Spark = past, past
		}
	}
	t.state, t.at, t.known = s, t.now(), true
	t.draw()
}

// above writes lines that stay, above the table: warnings, levels that are done.
func (t *liveTable) above(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w == nil {
		return
	}
	columns, _ := t.size()
	fmt.Fprint(t.w, t.home(columns)+"\x1b[J"+strings.TrimRight(text, "\n")+"\n")
	t.drawn = nil
	t.draw()
}

// draw overwrites the table; the caller holds mu.
func (t *liveTable) draw() {
	if t.settled || !t.known || t.w == nil {
		return
	}
	columns, lines := t.size()
	s := t.state
	s.Elapsed += t.now().Sub(t.at)
	text := liveLines(s, columns-1, lines-1, t.color)
	var b strings.Builder
	b.WriteString(t.home(columns))
	t.drawn = t.drawn[:0]
	for _, line := range text {
		b.WriteString(line + "\x1b[K\n")
		t.drawn = append(t.drawn, visible(line))
	}
	b.WriteString("\x1b[J")
	io.WriteString(t.w, b.String())
}

// home leads from below the table to its first line. A terminal that was made
// narrower since has folded its lines.
func (t *liveTable) home(columns int) string {
	up := 0
	for _, w := range t.drawn {
		up += max(1, (w+columns-1)/max(columns, 1))
	}
	if up == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", up)
}

// done ends the ticker and wipes the table. It may be called more than once.
func (t *liveTable) done() {
	t.mu.Lock()
	first := !t.settled
	t.settled = true
	t.mu.Unlock()
	if !first {
		return
	}
	close(t.stop)
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.drawn) > 0 {
		columns, _ := t.size()
		io.WriteString(t.w, t.home(columns)+"\x1b[J")
		t.drawn = nil
	}
}
