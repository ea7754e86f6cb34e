package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

var mockProfiles = []string{"healthy", "degraded", "failing", "saturating", "bloated"}

func mockEnv(t testing.TB, profile string) Env {
	t.Helper()
	mock, err := target.Open(t.Context(), wire.Target{Kind: wire.Mock, Profile: profile, Seed: "1337", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return Env{Target: mock}
}

func mockCall() wire.CallSpec {
	var calls []wire.ToolCall
	for _, name := range []string{"echo", "search", "summarize"} {
		calls = append(calls, wire.ToolCall{Name: name, Args: json.RawMessage(`{"query":"{op_id}"}`)})
	}
	return wire.CallSpec{Tools: calls, OpIDSalt: "salt"}
}

func mockFaults(ppb int64) *wire.Faults {
	f := &wire.Faults{Seed: "1337", Rule: "call/recovery", RatePPB: ppb}
	for _, k := range append(schedule.DefaultKinds(), schedule.ResponseLost) {
		f.Kinds = append(f.Kinds, k.String())
	}
	return f
}

// merged runs the units in a random order and adds up their results the way
// they come over the wire: encoded and decoded.
func merged(t *testing.T, profile string, units []wire.Unit) (tally, behavior string) {
	t.Helper()
	sum, all := metrics.NewTally(), &metrics.Behavior{}
	rand.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	for i := range units {
		res := Run(t.Context(), mockEnv(t, profile), &units[i], nil)
		if res.Failure != nil {
			t.Fatalf("unit %d: %s", i, res.Failure.Message)
		}
		raw, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		var back wire.Result
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		sum.Merge(back.Tally)
		all.Merge(back.Behavior)
	}
	return asJSON(t, sum), asJSON(t, all)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// loadUnits splits one level among k agents, workers as evenly as they go.
func loadUnits(whole wire.Range, level, k int, l wire.Load, faults *wire.Faults) []wire.Unit {
	var units []wire.Unit
	for i := range k {
		part := l
		first, end := level*i/k, level*(i+1)/k
		part.Workers, part.Level, part.FirstWorker, part.Stage = end-first, level, first, whole
		n := whole.Len()
		ops := wire.Range{From: whole.From + n*uint64(first)/uint64(level), To: whole.From + n*uint64(end)/uint64(level)}
		units = append(units, wire.Unit{Kind: wire.LoadUnit, ID: fmt.Sprint(i), Call: mockCall(), Ops: ops, Load: &part, Faults: faults,
			Target: wire.Target{Timeout: 30 * time.Second}})
	}
	return units
}

// rangeUnits cuts a range at k-1 random places.
func rangeUnits(whole wire.Range, k int, unit wire.Unit) []wire.Unit {
	cuts := []uint64{whole.From, whole.To}
	for range k - 1 {
		cuts = append(cuts, whole.From+rand.Uint64N(whole.Len()))
	}
	slices.Sort(cuts)
	var units []wire.Unit
	for i := range k {
		u := unit
		u.ID, u.Ops = fmt.Sprint(i), wire.Range{From: cuts[i], To: cuts[i+1]}
		units = append(units, u)
	}
	return units
}

// TestSplitsAgree: the same work on 1, 2, 4 or 16 agents gives the same merged
// result, byte for byte, whatever the target.
func TestSplitsAgree(t *testing.T) {
	whole := wire.Range{From: 21, To: 21 + 3000}
	recovery := wire.Unit{Kind: wire.RecoveryUnit, Call: mockCall(), Faults: mockFaults(300_000_000), Target: wire.Target{Timeout: 30 * time.Second},
		Recovery: &wire.Recovery{MaxRetries: 2, BackoffMax: 5 * time.Second, BackoffBudget: 30 * time.Second}}
	pool := wire.Unit{Kind: wire.LoadUnit, Call: mockCall(), Load: &wire.Load{Workers: 1, Level: 1, Stage: whole, CheckOutput: true}}
	modes := map[string]func(k int) []wire.Unit{
		"level":    func(k int) []wire.Unit { return loadUnits(whole, 16, k, wire.Load{Warmup: 3}, nil) },
		"faulted":  func(k int) []wire.Unit { return loadUnits(whole, 16, k, wire.Load{}, mockFaults(200_000_000)) },
		"duration": func(k int) []wire.Unit { return loadUnits(whole, 16, k, wire.Load{Duration: 40 * time.Second}, nil) },
		"open": func(k int) []wire.Unit {
			return loadUnits(whole, 16, k, wire.Load{MilliRate: 33_333, Duration: time.Minute}, nil)
		},
		"pool":     func(k int) []wire.Unit { return rangeUnits(whole, k, pool) },
		"recovery": func(k int) []wire.Unit { return rangeUnits(whole, k, recovery) },
	}
	for name, units := range modes {
		for _, profile := range mockProfiles {
			t.Run(name+"/"+profile, func(t *testing.T) {
				t.Parallel()
				tally, behavior := merged(t, profile, units(1))
				checkCounts(t, name, tally, behavior)
				for _, k := range []int{2, 4, 16} {
					gotTally, gotBehavior := merged(t, profile, units(k))
					if diff := cmp.Diff(tally, gotTally); diff != "" {
						t.Fatalf("%d agents: tally %s", k, diff)
					}
					if diff := cmp.Diff(behavior, gotBehavior); diff != "" {
						t.Fatalf("%d agents: behavior %s", k, diff)
					}
				}
			})
		}
	}
}

// checkCounts: agreeing is not enough, the operations must be there.
func checkCounts(t *testing.T, mode, tally, behavior string) {
	t.Helper()
	var sum metrics.Tally
	var all metrics.Behavior
	if err := errors.Join(json.Unmarshal([]byte(tally), &sum), json.Unmarshal([]byte(behavior), &all)); err != nil {
		t.Fatal(err)
	}
	calls := sum.Calls()
	switch mode {
	case "duration": // as many as fit
		if calls < 16 || calls > 3000 || sum.Window.Workers != 16 {
			t.Errorf("%d calls by %d workers", calls, sum.Window.Workers)
		}
	case "open": // one minute at 33.333/s: arrivals 0 to 1999 are due before its end
		if w := sum.Window; calls != 2000 || w.Scheduled != 2000 || w.Sent != 2000 || sum.Late.N() != 2000 || w.SpanUS < 60_000_000 {
			t.Errorf("%d calls, window %+v", calls, w)
		}
	case "recovery":
		if all.Operations != 3000 || all.Attempts != calls || all.Disrupted < 700 || len(all.Kept) != metrics.KeptTrajectories {
			t.Errorf("%d operations, %d attempts, %d disrupted, %d kept", all.Operations, all.Attempts, all.Disrupted, len(all.Kept))
		}
	default:
		if calls != 3000 || sum.Window.Completed != 3000 {
			t.Errorf("%d calls, window %+v", calls, sum.Window)
		}
	}
}

// TestMemoryFlat: ten times the calls need no more memory at the end.
func TestMemoryFlat(t *testing.T) {
	heap := func(n uint64) (*wire.Result, uint64) {
		u := loadUnits(wire.Range{To: n}, 8, 1, wire.Load{}, nil)[0]
		u.Call.OpIDSalt = ""
		res := run(t, mockEnv(t, "degraded"), &u)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return res, m.HeapAlloc
	}
	few, before := heap(50_000)
	many, after := heap(500_000)
	if few.Tally.Calls() != 50_000 || many.Tally.Calls() != 500_000 {
		t.Fatalf("%d and %d calls", few.Tally.Calls(), many.Tally.Calls())
	}
	if growth := int64(after) - int64(before); growth > 1<<20 {
		t.Errorf("500,000 calls hold %d bytes more than 50,000", growth)
	}
}
