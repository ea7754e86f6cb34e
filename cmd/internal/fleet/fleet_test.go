package fleet

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStartAndStop(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	e, err := Start(t.Context(), 3, "test")
	if err != nil {
		t.Fatal(err)
	}
	agents, err := e.Bus.Agents(t.Context())
	if err != nil || len(agents) != 3 {
		t.Errorf("%d agents, %v; want 3 that have announced themselves", len(agents), err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// BenchmarkStart is the start-up of the embedded engine: server, streams, one
// agent ready.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		e, err := Start(b.Context(), 1, "bench")
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := e.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
