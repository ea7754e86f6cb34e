package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func liveWhole() LiveRow {
	r := LiveRow{Achieved: 95.8, InFlight: 64, P50: 21300 * time.Microsecond, P95: 1280 * time.Millisecond, P99: 1310 * time.Millisecond,
		Outcomes: map[string]int64{"ok": 96, "timeout": 12, "connection": 3, "tool_error": 1}, Dropped: 7}
	for i := range 40 {
		r.Spark = append(r.Spark, float64(60+10*(i%5)))
	}
	return r
}

func liveZones() LiveState {
	s := LiveState{Target: "notes-server", Stage: "load-2", Model: "open", Elapsed: 12 * time.Second, Total: 30 * time.Second, Asked: 120, By: "zone"}
	for _, name := range []string{"", "eu", "us-east", "ap"} {
		r := liveWhole()
		if r.Name = name; name != "" {
			r.Achieved, r.InFlight, r.Dropped = 32, 20, 0
			r.Outcomes = map[string]int64{"ok": 32}
		}
		s.Rows = append(s.Rows, r)
	}
	s.Rows[3].P50, s.Rows[3].P95, s.Rows[3].P99, s.Rows[3].Achieved, s.Rows[3].Outcomes = 0, 0, 0, 0, map[string]int64{"auth_required": 1234567}
	return s
}

func liveStates() map[string]LiveState {
	closed := LiveState{Target: "notes-server", Stage: "load", Model: "closed", Elapsed: 33 * time.Second, Total: 30 * time.Second, Asked: 16, Rows: []LiveRow{liveWhole()}}
	hostile := liveZones()
	hostile.Target, hostile.Stage, hostile.By = "\x1b[2Jevil\n天気"+strings.Repeat("x", 90), "\r\x07", "\x1b]0;x\x07"
	hostile.Rows[1].Name, hostile.Rows[1].Outcomes = "\x1b[31m\n", map[string]int64{"\x1b[2J": 3}
	many := liveZones()
	for i := range 40 {
		r := many.Rows[1]
		r.Name = fmt.Sprint("zone-", i)
		many.Rows = append(many.Rows, r)
	}
	return map[string]LiveState{"zones": liveZones(), "closed": closed, "hostile": hostile, "many": many, "empty": {}}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestLiveLines: at every width no line is wider, nothing foreign reaches the
// terminal, and colours change no column.
func TestLiveLines(t *testing.T) {
	var golden strings.Builder
	for _, name := range []string{"zones", "closed", "hostile", "many", "empty"} {
		s := liveStates()[name]
		for width := 20; width <= 160; width++ {
			plain, colored := liveLines(s, width, 24, false), liveLines(s, width, 24, true)
			if diff := cmp.Diff(plain, strings.Split(sgr.ReplaceAllString(strings.Join(colored, "\n"), ""), "\n")); diff != "" {
				t.Fatalf("%s, %d columns (-plain +coloured):\n%s", name, width, diff)
			}
			if len(plain) > 24 {
				t.Fatalf("%s: %d lines", name, len(plain))
			}
			for _, line := range plain {
				if n := len([]rune(line)); n > width || strings.ContainsAny(line, "\x1b\r\n\x07") {
					t.Fatalf("%s: %d columns of %d: %q", name, n, width, line)
				}
			}
			if width == 40 || width == 60 || width == 80 || width == 120 {
				fmt.Fprintf(&golden, "-- %s %d --\n%s\n", name, width, strings.Join(plain, "\n"))
			}
		}
	}
	path := filepath.Join("testdata", "live.golden")
	if os.Getenv("ORDEAL_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (ORDEAL_UPDATE=1 writes it)", err)
	}
	if diff := cmp.Diff(string(want), golden.String()); diff != "" {
		t.Errorf("live.golden (-want +got):\n%s", diff)
	}
}

// onScreen is a table on a screen of that size, with its ticker running.
func onScreen(w io.Writer, columns, lines int) *liveTable {
	table := newLiveTable(io.Discard, time.Now)
	table.w, table.size = w, func() (int, int) { return columns, lines }
	return table
}

// TestLiveTable: each drawing is one write that goes back over the one before, the
// clock goes on by itself, and in the end nothing is left.
func TestLiveTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		if newLiveTable(&s, time.Now).observer() != nil {
			t.Fatal("a table is drawn on what is no terminal")
		}
		table := onScreen(&s, 100, 24)
		show := table.observer()
		state := liveZones()
		show(state)
		if got := s.look(); strings.Contains(got, "A") && strings.HasPrefix(got, "\r\x1b[") || strings.Count(got, "\n") != 6 || !strings.Contains(got, "12s of 30s") {
			t.Errorf("first drawing %q", got)
		}
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		got := s.look()
		if n := strings.Count(got, "\r\x1b[6A"); n != 3 || !strings.Contains(got, "15s of 30s") {
			t.Errorf("%d drawings in 3.5 s: %q", n, got)
		}
		table.above("warning: slow")
		if got := s.look(); !strings.HasPrefix(got, "\r\x1b[6A\x1b[Jwarning: slow\n") || strings.Contains(got[10:], "A\x1b") {
			t.Errorf("above: %q", got)
		}
		table.done()
		table.done()
		show(state)
		if got := s.look(); got != "\r\x1b[6A\x1b[J" {
			t.Errorf("in the end %q, want a wiped table", got)
		}
	})
}

// TestLiveRemembers: the table keeps the last forty values of each row, and begins
// anew with a stage.
func TestLiveRemembers(t *testing.T) {
	table := onScreen(io.Discard, 100, 24)
	for i := range 60 {
		table.show(LiveState{Stage: "a", Rows: []LiveRow{{Achieved: float64(i)}, {Name: "eu", Achieved: 1}}})
	}
	if got := table.state.Rows[0].Spark; len(got) != sparkLength || got[0] != 20 || got[sparkLength-1] != 59 {
		t.Errorf("remembers %v", got)
	}
	table.show(LiveState{Stage: "b", Rows: []LiveRow{{Achieved: 7}}})
	if got := table.state.Rows[0].Spark; len(got) != 1 {
		t.Errorf("remembers %v of the stage before", got)
	}
}

// TestLiveNarrowed: a terminal that was made narrower has folded the lines, and
// the table still finds its beginning.
func TestLiveNarrowed(t *testing.T) {
	table := onScreen(io.Discard, 100, 24)
	table.show(liveZones())
	table.drawn = []int{90, 20, 50}
	if got := table.home(50); got != "\r\x1b[4A" {
		t.Errorf("got %q, want four lines up", got)
	}
}

// TestLiveOnTerminal draws on a real terminal and reads what its screen shows.
func TestLiveOnTerminal(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Fatalf("%v: install tmux", err)
	}
	script := filepath.Join(t.TempDir(), "drawings")
	var s screen
	table := onScreen(&s, 60, 20)
	table.show(liveZones())
	table.above("warning: one agent was lost")
	for range 3 {
		table.show(liveZones())
	}
	if err := os.WriteFile(script, []byte(s.look()), 0o644); err != nil {
		t.Fatal(err)
	}
	table.done()
	wiped := filepath.Join(t.TempDir(), "wiped")
	if err := os.WriteFile(wiped, []byte(s.look()), 0o644); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	run := func(args ...string) string {
		out, err := exec.Command(tmux, append([]string{"-S", socket, "-u"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("-f", "/dev/null", "new-session", "-d", "-x", "60", "-y", "20", "stty -echo; cat "+script+"; read x; cat "+wiped+"; echo END; read x")
	defer run("kill-server")
	want := append([]string{"warning: one agent was lost"}, liveLines(liveZones(), 59, 19, false)...)
	if diff := cmp.Diff(want, captured(t, run, "zone-free", len(want))); diff != "" {
		t.Errorf("the screen (-want +got):\n%s", diff)
	}
	run("send-keys", "Enter")
	lines := captured(t, run, "END", 0)
	if !strings.Contains(strings.Join(lines, "\n"), "END") || strings.Contains(strings.Join(lines, "\n"), "notes-server") {
		t.Errorf("after the end the screen shows %q", lines)
	}
}

// captured waits for a screen of n lines, or for one that holds a word.
func captured(t *testing.T, run func(...string) string, word string, n int) []string {
	t.Helper()
	var lines []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		lines = strings.Split(strings.TrimRight(run("capture-pane", "-p"), "\n"), "\n")
		if n > 0 && len(lines) == n || strings.Contains(strings.Join(lines, "\n"), word) {
			break
		}
	}
	return lines
}
