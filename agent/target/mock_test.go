package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

func mockOf(t testing.TB, profile, seed string) (Target, Session) {
	t.Helper()
	target, err := Open(t.Context(), wire.Target{Kind: wire.Mock, Profile: profile, Seed: seed, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	session, err := target.Session(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return target, session
}

var goodArgs = json.RawMessage(`{"query":"x"}`)

func load(op uint64, level int) Call {
	return Call{Op: op, Label: "load", Tool: mockTools[op%3].name, Args: goodArgs, Level: level}
}

// tallied makes n calls of level callers.
func tallied(t *testing.T, profile string, n uint64, level int) *metrics.Tally {
	t.Helper()
	_, s := mockOf(t, profile, "1337")
	tally := metrics.NewTally()
	for op := range n {
		x := s.Call(t.Context(), load(op, level))
		tally.Add(&x, 0)
	}
	return tally
}

// TestProfiles holds each profile against the figures of its table: means are
// within four standard errors of what the parameters give.
func TestProfiles(t *testing.T) {
	const n = 40_000
	rows := []struct {
		profile            string
		level              int
		lowest, highest    int64   // µs, every success
		mean, sd           float64 // µs, successes
		failed             float64 // share
		tokensLow, tokens  int64
		tokensOut, verdict int64
	}{
		{profile: "healthy", level: 1, lowest: 250_000, highest: 450_000, mean: 350_000, sd: 57_735, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "degraded", level: 1, lowest: 2_000_000, highest: 8_800_000, mean: 3_540_000, sd: 1_650_000, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "failing", level: 1, lowest: 8_000_000, highest: 48_000_000, mean: 19_200_000, sd: 12_000_000, failed: 0.35, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "saturating", level: 4, lowest: 250_000, highest: 350_000, mean: 300_000, sd: 28_868, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "saturating", level: 8, lowest: 500_000, highest: 700_000, mean: 600_000, sd: 57_735, failed: 0.6, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "saturating", level: 5, lowest: 312_500, highest: 437_500, mean: 375_000, sd: 36_084, failed: 0.15, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "saturating", level: 64, lowest: 4_000_000, highest: 5_600_000, mean: 4_800_000, sd: 461_880, failed: 0.95, tokensLow: 425, tokens: 850, tokensOut: 120},
		{profile: "bloated", level: 1, lowest: 300_000, highest: 500_000, mean: 400_000, sd: 57_735, tokensLow: 3900, tokens: 4000, tokensOut: 90},
	}
	for _, r := range rows {
		t.Run(r.profile, func(t *testing.T) {
			tally := tallied(t, r.profile, n, r.level)
			if tally.Latency.Min() < r.lowest || tally.Latency.Max() > r.highest {
				t.Errorf("latency %d..%d, want inside %d..%d", tally.Latency.Min(), tally.Latency.Max(), r.lowest, r.highest)
			}
			if off := math.Abs(tally.Latency.Mean() - r.mean); off > 4*r.sd/math.Sqrt(float64(tally.Successes())) {
				t.Errorf("mean latency %.0f, want %.0f", tally.Latency.Mean(), r.mean)
			}
			failed := float64(tally.Failures()) / n
			if off := math.Abs(failed - r.failed); off > 4*math.Sqrt(r.failed*(1-r.failed)/n) {
				t.Errorf("failed %.4f, want %.4f", failed, r.failed)
			}
			if tally.TokensIn.Min() != r.tokensLow || tally.TokensIn.Max() != r.tokens {
				t.Errorf("input tokens %d..%d, want %d..%d", tally.TokensIn.Min(), tally.TokensIn.Max(), r.tokensLow, r.tokens)
			}
			if tally.TokensOut.Min() != r.tokensOut || tally.TokensOut.Max() != r.tokensOut {
				t.Errorf("output tokens %d..%d, want %d", tally.TokensOut.Min(), tally.TokensOut.Max(), r.tokensOut)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	_, s := mockOf(t, "healthy", "1")
	x := s.Call(t.Context(), load(1, 1))
	us := x.Latency.Microseconds()
	if got, want := x.TTFT.Microseconds(), us*35/100; got != want {
		t.Errorf("first token after %d µs, want %d", got, want)
	}
	if got, want := x.ServerTime.Microseconds(), us*92/100; got != want {
		t.Errorf("server time %d µs, want %d", got, want)
	}
	if !x.Usage || x.Executed != metrics.Yes || !x.Delivered {
		t.Errorf("usage %v, executed %v, delivered %v", x.Usage, x.Executed, x.Delivered)
	}
}

func TestFailingKinds(t *testing.T) {
	_, s := mockOf(t, "failing", "1337")
	counts := map[metrics.Outcome]int{}
	for op := range uint64(9000) {
		x := s.Call(t.Context(), load(op, 1))
		counts[x.Outcome]++
		if x.Quota != "" || x.RetryAfter != 0 {
			t.Fatalf("operation %d claims a quota: %+v", op, x)
		}
		if want := x.Outcome != metrics.Timeout; x.Delivered != want {
			t.Fatalf("%v delivered %v", x.Outcome, x.Delivered)
		}
		if x.Outcome == metrics.Timeout && x.Latency != 30*time.Second {
			t.Fatalf("a timeout took %v", x.Latency)
		}
	}
	for _, o := range []metrics.Outcome{metrics.Timeout, metrics.ServerError, metrics.RateLimited} {
		if got := counts[o]; got < 950 || got > 1150 { // 1050 expected, sd 30
			t.Errorf("%v: %d of 9000, want about 1050", o, got)
		}
	}
}

// TestDrawsByCoordinates: the same coordinates give the same exchange, from any
// session, in any order, at the same time; any other coordinate another one.
func TestDrawsByCoordinates(t *testing.T) {
	target, first := mockOf(t, "failing", "42")
	const n = 2000
	want := make([]metrics.Exchange, n)
	for op := range uint64(n) {
		want[op] = first.Call(t.Context(), load(op, 1))
	}
	got := make([]metrics.Exchange, n)
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() {
			s, err := target.Session(t.Context(), int(w))
			if err != nil {
				t.Error(err)
				return
			}
			for op := n - 1 - w; op < n; op -= 4 { // ends by wrapping around
				got[op] = s.Call(t.Context(), load(op, 1))
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*Call){
		"Op": func(c *Call) { c.Op++ }, "Attempt": func(c *Call) { c.Attempt++ }, "Label": func(c *Call) { c.Label = "recovery" },
	} {
		same := 0
		for op := range uint64(200) {
			c := load(op, 1)
			change(&c)
			c.Tool = "echo"
			if x := first.Call(t.Context(), c); x.Latency == want[op].Latency {
				same++
			}
		}
		if same > 40 { // timeouts all take the limit: 12 %
			t.Errorf("%s is no coordinate: %d of 200 latencies are equal", name, same)
		}
	}
	if _, other := mockOf(t, "failing", "43"); cmp.Equal(other.Call(t.Context(), load(0, 1)), want[0]) && cmp.Equal(other.Call(t.Context(), load(1, 1)), want[1]) {
		t.Error("another seed gives the same draws")
	}
}

// TestFrozenDraws pins the layout of the draws: a change here changes every
// published result of a mock scan.
func TestFrozenDraws(t *testing.T) {
	rows := []struct {
		profile string
		op      uint64
		attempt uint32
		latency time.Duration
		outcome metrics.Outcome
		tokens  int64
	}{
		{"healthy", 0, 0, 306_430_000, metrics.OK, 792},
		{"degraded", 7, 0, 3_984_511_000, metrics.OK, 806},
		{"failing", 3, 1, 13_210_041_000, metrics.OK, 450},
		{"bloated", 1 << 40, 2, 498_143_000, metrics.OK, 3949},
	}
	for _, r := range rows {
		_, s := mockOf(t, r.profile, "1337")
		x := s.Call(t.Context(), Call{Op: r.op, Attempt: r.attempt, Label: "load", Tool: "echo", Args: goodArgs, Level: 1})
		if x.Latency != r.latency || x.Outcome != r.outcome || x.TokensIn != r.tokens {
			t.Errorf("{%q, %d, %d, %d, metrics.%v, %d},", r.profile, r.op, r.attempt, x.Latency, x.Outcome, x.TokensIn)
		}
	}
}

func TestValidation(t *testing.T) {
	rows := []struct {
		name, args, names string
	}{
		{"OK", `{"query":"x"}`, ""},
		{"OKEmpty", `{"query":""}`, ""},
		{"OKUndeclared", `{"query":"x","more":1}`, ""},
		{"Missing", `{}`, "query"},
		{"Null", `{"query":null}`, "query"},
		{"Number", `{"query":12345}`, "query"},
		{"NoObject", `[1]`, "object"},
		{"NullDocument", `null`, "object"},
		{"NoJSON", `{"query`, "object"},
		{"Nothing", ``, "object"},
	}
	for _, profile := range profiles {
		_, s := mockOf(t, profile.name, "7")
		for _, r := range rows {
			t.Run(profile.name+"/"+r.name, func(t *testing.T) {
				var x metrics.Exchange
				for op := uint64(0); ; op++ { // the first operation without an error of its own
					x = s.Call(t.Context(), Call{Op: op, Label: "c", Tool: "echo", Args: json.RawMessage(r.args), Level: 1})
					if x.Ok() || x.Outcome == metrics.ToolError {
						break
					}
				}
				rejected := r.names != "" && profile.validates
				if x.Ok() == rejected {
					t.Fatalf("outcome %v %q", x.Outcome, x.Message)
				}
				if rejected && (!strings.Contains(x.Message, r.names) || !x.Delivered || x.Executed != metrics.No) {
					t.Errorf("got %+v, want a rejection that names %s", x, r.names)
				}
			})
		}
	}
}

func TestUnknownTool(t *testing.T) {
	_, s := mockOf(t, "healthy", "7")
	x := s.Call(t.Context(), Call{Tool: "delete", Args: goodArgs})
	if x.Outcome != metrics.ProtocolError || x.Code != -32602 || !x.Delivered {
		t.Errorf("got %+v", x)
	}
}

func TestStopped(t *testing.T) {
	_, s := mockOf(t, "healthy", "7")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if x := s.Call(ctx, load(0, 1)); x.Outcome != metrics.Cancelled {
		t.Errorf("outcome %v, want cancelled", x.Outcome)
	}
}

func TestUnknownProfile(t *testing.T) {
	rows := []struct{ typed, want string }{
		{"helthy", `target: unknown mock profile "helthy" (valid: healthy, degraded, failing, saturating, bloated)`},
		{"slow", `target: unknown mock profile "slow" (valid: healthy, degraded, failing, saturating, bloated)`},
	}
	for _, r := range rows {
		_, err := Open(t.Context(), wire.Target{Kind: wire.Mock, Profile: r.typed})
		if err == nil || err.Error() != r.want {
			t.Errorf("got %v, want %s", err, r.want)
		}
	}
}

func TestMockSurvey(t *testing.T) {
	target, _ := mockOf(t, "", "7")
	s, err := target.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range s.Tools {
		names = append(names, tool.Name)
		if tool.ReadOnly == nil || !*tool.ReadOnly {
			t.Errorf("%s is not declared read-only", tool.Name)
		}
	}
	if diff := cmp.Diff([]string{"echo", "search", "summarize"}, names); diff != "" {
		t.Error(diff)
	}
	if s.Name != "healthy-mock" || !s.Virtual || !s.ReportsUsage {
		t.Errorf("survey %+v", s)
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Open(t.Context(), wire.Target{Kind: "ftp"}); err == nil || !strings.Contains(err.Error(), `"ftp"`) {
		t.Errorf("got %v", err)
	}
}

func TestExplain(t *testing.T) {
	start := &mcp.StartError{Class: mcp.Startup, What: "the process ended", Exit: "exit status 3", Stderr: "boom", Remedy: "run it by hand"}
	want := &wire.Failure{Class: "startup", Message: "the process ended (exit status 3)", Remedy: "run it by hand", Stderr: "boom"}
	rows := []struct {
		name string
		err  error
		want *wire.Failure
	}{
		{"Start", fmt.Errorf("target: %w", start), want},
		{"Opened", &OpenError{Cause: *want}, want},
		{"Stopped", fmt.Errorf("dial: %w", context.Canceled), &wire.Failure{Class: "cancelled", Message: "stopped before the target answered"}},
		{"Ours", errors.New("no memory"), &wire.Failure{Class: "harness", Message: "no memory"}},
	}
	for _, r := range rows {
		if diff := cmp.Diff(r.want, Explain(r.err)); diff != "" {
			t.Errorf("%s: %s", r.name, diff)
		}
	}
}

func BenchmarkMockCall(b *testing.B) {
	for _, profile := range []string{"healthy", "failing"} {
		b.Run(profile, func(b *testing.B) {
			_, s := mockOf(b, profile, "1337")
			b.ReportAllocs()
			for i := range b.N {
				s.Call(b.Context(), load(uint64(i), 1))
			}
		})
	}
}
