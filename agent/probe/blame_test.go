package probe

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"ordeal/agent/target"
	"ordeal/metrics"
)

// TestBlame: what the system refused us is ours, whatever else fails is not.
func TestBlame(t *testing.T) {
	dial := func(err error) string { return "connect: dial tcp 127.0.0.1:80: " + err.Error() }
	rows := []struct {
		name         string
		x            metrics.Exchange
		files, ports int64
	}{
		{"Process", metrics.Exchange{Outcome: metrics.Connection, Message: dial(syscall.EMFILE)}, 1, 0},
		{"Machine", metrics.Exchange{Outcome: metrics.Connection, Message: dial(syscall.ENFILE)}, 1, 0},
		{"Port", metrics.Exchange{Outcome: metrics.Connection, Message: dial(syscall.EADDRNOTAVAIL)}, 0, 1},
		{"Refused", metrics.Exchange{Outcome: metrics.Connection, Message: dial(syscall.ECONNREFUSED)}, 0, 0},
		{"SaidByTheServer", metrics.Exchange{Outcome: metrics.ToolError, Message: "too many open files"}, 0, 0},
		{"Injected", metrics.Exchange{Outcome: metrics.Connection, Origin: metrics.FromInjector, Message: "too many open files"}, 0, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			m, was := newMeter(&Env{Target: &fake{}}, true), r.x.Outcome
			m.blame(&r.x)
			ours := r.files+r.ports > 0
			if m.files.Load() != r.files || m.ports.Load() != r.ports || ours != (r.x.Outcome == metrics.HarnessError) || !ours && r.x.Outcome != was {
				t.Errorf("%v from %v: %d without a descriptor, %d without a port; want %d and %d", r.x.Outcome, r.x.Origin, m.files.Load(), m.ports.Load(), r.files, r.ports)
			}
		})
	}
}

func TestOurs(t *testing.T) {
	other := errors.New("no entry")
	if err := ours(other); err != other || ours(nil) != nil {
		t.Errorf("%v is taken for ours", err)
	}
	for _, errno := range []error{syscall.EMFILE, syscall.EADDRNOTAVAIL} {
		f := target.Explain(ours(fmt.Errorf("session of user 3: %w", errno)))
		if f.Class != "harness" || f.Remedy == "" {
			t.Errorf("%v: %+v, want a failure of ours that says what to do", errno, f)
		}
	}
}
