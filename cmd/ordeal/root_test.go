package main

import (
	"io"
	"os"
	"testing"
)

// A terminal shows colours unless its user or its kind forbids them.
func TestColored(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("open a pseudo terminal: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	rows := []struct {
		name, noColor, kind string
		w                   io.Writer
		terminal, colored   bool
	}{
		{"Terminal", "", "xterm", tty, true, true},
		{"NoColor", "1", "xterm", tty, true, false},
		{"Dumb", "", "dumb", tty, false, false},
		{"Writer", "", "xterm", io.Discard, false, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", r.noColor)
			t.Setenv("TERM", r.kind)
			if a, b := terminal(r.w), colored(r.w); a != r.terminal || b != r.colored {
				t.Errorf("terminal %v, colored %v; want %v, %v", a, b, r.terminal, r.colored)
			}
		})
	}
}
