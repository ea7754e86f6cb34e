package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/dispatch"
	"ordeal/controller/lead"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
)

func TestStartAndStop(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	e, err := Start(t.Context(), 3, 0, "test")
	if err != nil {
		t.Fatal(err)
	}
	r, err := roster.Open(t.Context(), e.Bus)
	if err != nil {
		t.Fatal(err)
	}
	if fit, refused := r.Members(wire.DefaultPool, roster.Selector{}); len(fit) != 3 {
		t.Errorf("%d agents, refused %v; want 3 that have announced themselves", len(fit), refused)
	}
	r.Close()
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
		e, err := Start(b.Context(), 1, 0, "bench")
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

// Two runs that start their gangs at once on one fleet both come to an end.
func TestTwoRunsShareTheFleet(t *testing.T) {
	e, err := Start(t.Context(), 3, 0, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var runs sync.WaitGroup
	for _, id := range []string{"r1", "r2"} {
		runs.Go(func() {
			if err := gangs(ctx, e.Bus, id, 5); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	runs.Wait()
}

// sink keeps what a stage brings.
type sink []*wire.Result

func (s *sink) Planned([]wire.Unit) {}
func (s *sink) Add(r *wire.Result)  { *s = append(*s, r) }
func (s *sink) Gang(merge.Gang)     {}
func (s *sink) Lost(string)         {}

// gangs runs n gang stages, one after the other, of a run of their own.
func gangs(ctx context.Context, b *bus.Bus, run string, n int) (err error) {
	leader, err := lead.Create(ctx, lead.Options{Bus: b, Record: wire.Run{ID: run}})
	if err != nil {
		return err
	}
	defer leader.Close()
	fleet, err := roster.Open(ctx, b)
	if err != nil {
		return err
	}
	defer fleet.Close()
	d, err := dispatch.New(ctx, dispatch.Options{Bus: b, Roster: fleet, Run: run, Pool: wire.DefaultPool, Generation: 1, Sure: leader.Sure,
		LeaseTTL: wire.LeaseTTL, Record: func(context.Context, wire.GangRecord) error { return nil }, Sent: func(string) int64 { return 0 }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range n {
		ops := wire.Range{To: 600}
		st := plan.Stage{Name: fmt.Sprintf("level-%d", i), Gang: true, Units: []wire.Unit{{
			Kind: wire.LoadUnit, Target: wire.Target{Kind: wire.Mock, Profile: "healthy", Seed: "1", Timeout: time.Second}, Ops: ops,
			Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: []byte(`{"query":"x"}`)}}},
			Load: &wire.Load{Workers: 6, Level: 6, Stage: ops},
		}}}
		var results sink
		if err := d.Stage(ctx, &st, &results); err != nil {
			return err
		}
		calls := int64(0)
		for _, r := range results {
			if r.Failure != nil {
				return fmt.Errorf("%s: %s: %s", st.Name, r.Unit, r.Failure.Message)
			}
			calls += r.Tally.Calls()
		}
		if calls != 600 {
			return fmt.Errorf("%s: %d calls, want 600", st.Name, calls)
		}
	}
	return nil
}
