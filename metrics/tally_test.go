package metrics

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// anyExchange draws an exchange with everything that may be in one.
func anyExchange(r *rand.Rand) Exchange {
	us := func(n int64) time.Duration { return time.Duration(r.Int64N(n)) * time.Microsecond }
	x := Exchange{Outcome: Outcome(r.IntN(int(numOutcomes))), Delivered: r.IntN(2) == 0, Executed: Tri(r.IntN(3)),
		Latency: us(1e6), TTFT: us(1e5), ServerTime: us(1e5), ClientTime: us(3), ByText: r.IntN(5) == 0, Usage: r.IntN(2) == 0,
		TokensIn: r.Int64N(1000), TokensOut: r.Int64N(100), CachedIn: r.Int64N(10), BytesIn: r.Int64N(1e6), BytesOut: r.Int64N(1e3),
		Truncated: r.IntN(9) == 0, Message: fmt.Sprintf("error %d", r.IntN(60))}
	if r.IntN(3) == 0 {
		x.Fault = fmt.Sprint("kind", r.IntN(4))
		x.Gaps = []time.Duration{us(1000), us(1000)}
		x.Notes = []string{fmt.Sprint("note ", r.IntN(40))}
	}
	if r.IntN(4) == 0 {
		x.Code, x.Status, x.RetryAfter = -32600-r.IntN(9), 400+r.IntN(30), us(1e6)
		x.Quota, x.QuotaLimit, x.QuotaWindow = fmt.Sprint("where", r.IntN(3)), r.Int64N(100), us(1e6)
	}
	return x
}

// TestTallyMerge: however exchanges are split, sent and merged, the tally is
// the same, byte for byte, bounded texts included.
func TestTallyMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		whole, parts := NewTally(), make([]*Tally, 1+rng.IntN(8))
		for i := range parts {
			parts[i] = &Tally{}
		}
		for range rng.IntN(400) {
			x := anyExchange(rng)
			late := time.Duration(rng.IntN(3)) * time.Millisecond
			whole.Add(&x, late)
			parts[rng.IntN(len(parts))].Add(&x, late)
		}
		whole.Window = Window{}
		for i, p := range parts {
			p.Window = Window{Workers: int64(i), Completed: rng.Int64N(10), BusyUS: rng.Int64N(10), SpanUS: rng.Int64N(10), Dropped: rng.Int64N(3)}
			whole.Window.Merge(p.Window)
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		sum := &Tally{}
		for _, p := range parts {
			back := &Tally{}
			if err := json.Unmarshal([]byte(jsonOf(t, p)), back); err != nil {
				t.Fatal(err)
			}
			sum.Merge(back)
		}
		sum.Merge(nil)
		if diff := cmp.Diff(jsonOf(t, whole), jsonOf(t, sum)); diff != "" {
			t.Fatal(diff)
		}
		if len(sum.Errors) > MaxTexts+1 || len(sum.Notes) > MaxTexts+1 {
			t.Fatalf("%d errors and %d notes kept", len(sum.Errors), len(sum.Notes))
		}
		for name, texts := range map[string]map[string]int64{"errors": sum.Errors} {
			var n int64
			for _, c := range texts {
				n += c
			}
			if n != sum.Failures() {
				t.Fatalf("%s add up to %d, want %d", name, n, sum.Failures())
			}
		}
	}
}

func TestTallyAdd(t *testing.T) {
	tally := NewTally()
	add := func(o Outcome, latency, late time.Duration) {
		tally.Add(&Exchange{Outcome: o, Latency: latency}, late)
	}
	add(OK, 10*time.Millisecond, 0)
	add(OK, 10*time.Millisecond, 5*time.Millisecond)
	add(OK, 10*time.Millisecond, time.Nanosecond)
	add(ToolError, 2*time.Millisecond, 0)
	add(Timeout, 30*time.Second, 0)
	add(Cancelled, time.Hour, time.Hour)
	add(HarnessError, time.Hour, time.Hour)
	if tally.Calls() != 7 || tally.Measured() != 5 || tally.Successes() != 3 || tally.Failures() != 2 {
		t.Errorf("calls %d, measured %d, successes %d, failures %d", tally.Calls(), tally.Measured(), tally.Successes(), tally.Failures())
	}
	if tally.Latency.Max() != 15_000 || tally.Service.Max() != 10_000 || tally.Latency.N() != 3 {
		t.Errorf("latency to %d, service to %d µs", tally.Latency.Max(), tally.Service.Max())
	}
	if tally.Late.N() != 2 || tally.Late.Max() != 5_000 {
		t.Errorf("%d lateness values to %d µs: closed loop has none, and unmeasured calls do not count", tally.Late.N(), tally.Late.Max())
	}
	if tally.Failed.N() != 1 || tally.TimedOut.N() != 1 || tally.TimedOut.Max() != 30_000_000 {
		t.Errorf("failed %d, timed out %d", tally.Failed.N(), tally.TimedOut.N())
	}
}

func TestTallyReset(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	used := NewTally()
	for range 200 {
		x := anyExchange(rng)
		used.Add(&x, 0)
	}
	used.Note("n")
	used.Reset()
	if diff := cmp.Diff(jsonOf(t, NewTally()), jsonOf(t, used)); diff != "" {
		t.Error(diff)
	}
}

// anyTrajectory draws an operation of up to four attempts.
func anyTrajectory(r *rand.Rand, op uint64) Trajectory {
	t := Trajectory{Op: op, Label: fmt.Sprint("t#", op)}
	var at int64
	for attempt := range 1 + r.IntN(4) {
		inv := Invocation{Attempt: attempt + 1, Outcome: ServerError, Delivered: r.IntN(2) == 0, Executed: Tri(r.IntN(3)),
			StartedUS: at, LatencyUS: r.Int64N(1000), Fingerprint: "f"}
		if r.IntN(2) == 0 {
			inv.Fault = fmt.Sprint("kind", r.IntN(3))
		}
		if r.IntN(3) == 0 {
			inv.Outcome = OK
		}
		if r.IntN(30) == 0 {
			inv.Outcome = Cancelled
		}
		at += inv.LatencyUS
		t.Invocations = append(t.Invocations, inv)
		if inv.Outcome == OK || inv.Outcome == Cancelled {
			break
		}
	}
	return t
}

// TestBehaviorMerge: like TestTallyMerge, and the kept trajectories are the
// first of those worth keeping, whoever met them.
func TestBehaviorMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		whole, parts := &Behavior{}, make([]*Behavior, 1+rng.IntN(8))
		for i := range parts {
			parts[i] = &Behavior{BackoffWaits: int64(i), BackoffVirtualUS: int64(i)}
			whole.BackoffWaits += int64(i)
			whole.BackoffVirtualUS += int64(i)
		}
		var reused Trajectory // folded like the executor does, over one slice
		for _, op := range rng.Perm(rng.IntN(300) + 1) {
			t := anyTrajectory(rng, uint64(op))
			reused.Op, reused.Label = t.Op, t.Label
			reused.Invocations = append(reused.Invocations[:0], t.Invocations...)
			whole.Fold(&reused)
			parts[rng.IntN(len(parts))].Fold(&reused)
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		sum := &Behavior{}
		for _, p := range parts {
			back := &Behavior{}
			if err := json.Unmarshal([]byte(jsonOf(t, p)), back); err != nil {
				t.Fatal(err)
			}
			sum.Merge(back)
		}
		sum.Merge(nil)
		if diff := cmp.Diff(jsonOf(t, whole), jsonOf(t, sum)); diff != "" {
			t.Fatal(diff)
		}
		checkKept(t, whole)
	}
}

func checkKept(t *testing.T, b *Behavior) {
	t.Helper()
	if want := min(b.Disrupted, KeptTrajectories); int64(len(b.Kept)) != want {
		t.Fatalf("%d trajectories kept, want %d", len(b.Kept), want)
	}
	for i := 1; i < len(b.Kept); i++ {
		if compareKept(&b.Kept[i-1], &b.Kept[i]) >= 0 {
			t.Fatalf("kept %d before %d", b.Kept[i-1].Op, b.Kept[i].Op)
		}
	}
}

func TestFold(t *testing.T) {
	inv := func(o Outcome, fault string, executed Tri, delivered bool, start, took int64) Invocation {
		return Invocation{Outcome: o, Fault: fault, Executed: executed, Delivered: delivered, StartedUS: start, LatencyUS: took, Fingerprint: "f"}
	}
	b := &Behavior{}
	fold := func(op uint64, invs ...Invocation) { b.Fold(&Trajectory{Op: op, Invocations: invs}) }
	fold(1, inv(OK, "", Yes, true, 0, 10))
	fold(2, inv(Timeout, "timeout", No, false, 0, 30), inv(OK, "", Yes, true, 40, 10))
	fold(3, inv(Timeout, "response_lost", Yes, false, 0, 30), inv(InvalidResponse, "malformed", Yes, true, 30, 5), inv(OK, "", Yes, true, 35, 5))
	fold(4, inv(ServerError, "", Unknown, true, 0, 1), inv(ServerError, "server_error", No, true, 1, 1))
	fold(5, inv(ServerError, "", Unknown, true, 0, 1), inv(Cancelled, "", Unknown, false, 1, 1))
	fold(6)
	b.Kept = nil
	recovery := b.Recovery
	b.Recovery = Dist{}
	want := &Behavior{Operations: 4, Attempts: 8, Retried: 3, MaxAttempts: 3, Succeeded: 3, Disrupted: 3, Recovered: 2,
		CleanAttempts: 4, CleanFailed: 1, DisruptedClean: 2, RecoveredClean: 2, Redelivered: 1, Unmeasured: 1,
		Faults:      map[string]int64{"timeout": 1, "response_lost": 1, "malformed": 1, "server_error": 1},
		Unrecovered: map[string]int64{"server_error": 1}}
	if diff := cmp.Diff(want, b, cmp.AllowUnexported(Dist{})); diff != "" {
		t.Error(diff)
	}
	if recovery.N() != 2 || recovery.Min() != 40 || recovery.Max() != 50 {
		t.Errorf("recovery %d values, %d to %d µs; want 2, 40 to 50", recovery.N(), recovery.Min(), recovery.Max())
	}
}

func TestCycle(t *testing.T) {
	rows := []struct {
		calls           string
		period, repeats int
	}{
		{"", 0, 0}, {"A", 0, 0}, {"AA", 0, 0}, {"AAA", 1, 3}, {"AAAAA", 1, 5}, {"BAAA", 1, 3}, {"AAAB", 0, 0},
		{"ABAB", 0, 0}, {"ABABAB", 2, 3}, {"XABABABAB", 2, 4}, {"BABABA", 2, 3}, {"ABCABCABC", 3, 3}, {"ABCABCAB", 0, 0},
		{"AABAABAAB", 3, 3}, {"ABABABC", 0, 0},
	}
	for _, r := range rows {
		var calls []string
		for _, c := range r.calls {
			calls = append(calls, string(c))
		}
		if period, repeats := Cycle(calls); period != r.period || repeats != r.repeats {
			t.Errorf("%q: period %d, %d times; want %d, %d", r.calls, period, repeats, r.period, r.repeats)
		}
	}
}

// TestRetriesAreNoLoop: an exhausted retry budget is one event, not a loop as
// well; the same successful call three times over is one.
func TestRetriesAreNoLoop(t *testing.T) {
	row := func(outcomes ...Outcome) *Trajectory {
		t := &Trajectory{}
		for _, o := range outcomes {
			t.Invocations = append(t.Invocations, Invocation{Outcome: o, Fingerprint: "f"})
		}
		return t
	}
	if row(ServerError, ServerError, ServerError, ServerError).Looped() {
		t.Error("three retries are called a loop")
	}
	if !row(OK, OK, OK).Looped() {
		t.Error("the same call three times in a row is no loop")
	}
}

func BenchmarkTallyAdd(b *testing.B) {
	t := NewTally()
	x := Exchange{Delivered: true, Latency: 350 * time.Millisecond, TTFT: 100 * time.Millisecond, ServerTime: 300 * time.Millisecond, Usage: true, TokensIn: 800, TokensOut: 120}
	b.ReportAllocs()
	for i := range b.N {
		x.Latency += time.Duration(i&1023) * time.Microsecond
		if t.Add(&x, 0); i&511 == 511 {
			t.Reset()
			x.Latency = 350 * time.Millisecond
		}
	}
}

func BenchmarkFold(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	ts := make([]Trajectory, 1024)
	for i := range ts {
		ts[i] = anyTrajectory(rng, uint64(i))
	}
	behavior := &Behavior{}
	b.ReportAllocs()
	for i := range b.N {
		t := &ts[i&1023]
		t.Op = uint64(i)
		behavior.Fold(t)
	}
}
