package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

func TestClassify(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name string
		hint *bool
		want Mutability
	}{
		{"get_user", nil, ReadOnly},
		{"listFiles", nil, ReadOnly},
		{"HTTPHeadRequest", nil, ReadOnly},
		{"get_and_delete", nil, Mutating},
		{"createIssue", nil, Mutating},
		{"git-commit", nil, Mutating},
		{"echo", nil, Unknown},
		{"getaway", nil, Unknown},
		{"delete_all", &yes, ReadOnly},
		{"get_user", &no, Mutating},
	}
	for _, tt := range tests {
		got, why := Classify(&wire.Tool{Name: tt.name, ReadOnly: tt.hint})
		if got != tt.want || why == "" {
			t.Errorf("Classify(%s) = %s (%s), want %s", tt.name, got, why, tt.want)
		}
	}
}

func scan(t *testing.T, set func(*spec.Spec)) *spec.Spec {
	t.Helper()
	s := spec.Default()
	s.TargetText = "./server"
	if set != nil {
		set(&s)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return &s
}

func tool(name string, readOnly bool) wire.Tool {
	return wire.Tool{Name: name, ReadOnly: &readOnly, Args: json.RawMessage(`{"q":"x"}`), ArgsSource: "placeholder"}
}

func TestChoose(t *testing.T) {
	empty := tool("fetch", true)
	empty.Args, empty.ArgsEmpty, empty.ArgsError = nil, true, "ids could only be []"
	survey := func(tools ...wire.Tool) *wire.Survey { return &wire.Survey{Tools: tools} }
	tests := []struct {
		name   string
		set    func(*spec.Spec)
		survey *wire.Survey
		want   string // tool, or part of the error
		refuse bool
	}{
		{"FirstReadOnly", nil, survey(tool("write", false), tool("read", true)), "read", false},
		{"SkipsEmptyArguments", nil, survey(empty, tool("read", true)), "read", false},
		{"NoTools", nil, survey(), "offers no tools", true},
		{"NoneReadOnly", nil, survey(tool("write", false)), "no tool is known to be read-only", true},
		{"OnlyEmptyArguments", nil, survey(empty), "only be synthesized empty", true},
		{"MutatingNeedsKey", func(s *spec.Spec) { s.Tool = "write" }, survey(tool("write", false)), `"write" changes state`, true},
		{"MutatingWithKey", func(s *spec.Spec) { s.Tool, s.AllowMutating = "write", true }, survey(tool("write", false)), "write", false},
		{"UnknownTool", func(s *spec.Spec) { s.Tool = "raed" }, survey(tool("read", true)), "did you mean read?", false},
		{"UserArguments", func(s *spec.Spec) { s.Tool, s.ToolArgs = "fetch", json.RawMessage(`{"ids":[1]}`) }, survey(empty), "fetch", false},
		{"OracleMustRead", func(s *spec.Spec) {
			s.Tool, s.AllowMutating, s.VerifyTool = "write", true, "write2"
		}, survey(tool("write", false), tool("write2", false)), "--verify-tool", true},
		{"OracleNeedsAWriter", func(s *spec.Spec) {
			s.Tool, s.AllowMutating, s.VerifyTool = "read", true, "read"
		}, survey(tool("read", true)), "only reads", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			choices, err := Choose(scan(t, tt.set), tt.survey)
			var refusal *Refusal
			switch {
			case err == nil && choices[0].Name() != tt.want:
				t.Errorf("chose %q, want %q", choices[0].Name(), tt.want)
			case err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("error %v, want %q", err, tt.want)
			case errors.As(err, &refusal) != tt.refuse:
				t.Errorf("refusal %v, want %v", err, tt.refuse)
			}
		})
	}
}

// Without a name every read-only tool is a candidate, in the server's order, up
// to a bound.
func TestChooseCandidates(t *testing.T) {
	var tools []wire.Tool
	for i := range 20 {
		tools = append(tools, tool(fmt.Sprintf("t%d", i), i%2 == 1))
	}
	choices, err := Choose(scan(t, nil), &wire.Survey{Tools: tools})
	if err != nil || len(choices) != MaxCandidates || choices[0].Name() != "t1" || choices[1].Name() != "t3" {
		t.Errorf("%d candidates, err %v; want the first %d read-only tools", len(choices), err, MaxCandidates)
	}
}

// A stage waits for quotas no longer than its budget, however many units and
// agents it is divided over; one that a duration ends promises no count.
func TestBudgetIsDivided(t *testing.T) {
	survey := &wire.Survey{Tools: []wire.Tool{tool("read", true)}}
	for name, level := range map[string]time.Duration{"Counted": 0, "Timed": time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := scan(t, func(s *spec.Spec) { s.Requests, s.LevelDuration, s.BackoffBudget = 5000, level, 30*time.Second })
			c, err := Choose(s, survey)
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range Build(s, survey, c[0], &wire.Preflight{LatencyUS: 100_000}) {
				units, loads := st.Units, 0
				if st.Gang {
					units = Share(units[0], 3)
				}
				var sum time.Duration
				for _, u := range units {
					if u.Load != nil {
						sum += u.Load.BackoffBudget
						loads++
					}
				}
				if off := s.BackoffBudget - sum; loads > 0 && (off < 0 || off > time.Microsecond) {
					t.Errorf("stage %s: %d units may wait %v together, want %v", st.Name, loads, sum, s.BackoffBudget)
				}
				if got := st.Operations(); loads > 0 && (got == 0) != (level > 0) {
					t.Errorf("stage %s of level duration %v plans %d operations", st.Name, level, got)
				}
			}
		})
	}
}

// The shares of a level sum to the level, for every number of agents.
func TestSharesSumToTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		workers, agents := 1+rng.IntN(64), 1+rng.IntN(40)
		from := uint64(rng.IntN(1000))
		u := wire.Unit{Ops: wire.Range{From: from, To: from + uint64(rng.IntN(5000))}, Load: &wire.Load{Workers: workers, Level: workers}}
		at, first := u.Ops.From, 0
		for _, part := range Share(u, agents) {
			if part.Ops.From != at || part.Load.FirstWorker != first || part.Load.Workers < 1 || part.Load.Level != workers {
				t.Fatalf("%d workers on %d agents: part %+v %+v does not follow %d, %d", workers, agents, part.Ops, part.Load, at, first)
			}
			at, first = part.Ops.To, first+part.Load.Workers
		}
		if at != u.Ops.To || first != workers {
			t.Fatalf("%d workers on %d agents: parts end at %d with %d workers, want %d with %d", workers, agents, at, first, u.Ops.To, workers)
		}
	}
}

func TestSplitCoversTheRange(t *testing.T) {
	for size := uint64(1); size < 40; size++ {
		at := uint64(7)
		for _, r := range split(wire.Range{From: 7, To: 107}, size) {
			if r.From != at || r.Len() == 0 || r.Len() > size {
				t.Fatalf("size %d: part %+v after %d", size, r, at)
			}
			at = r.To
		}
		if at != 107 {
			t.Fatalf("size %d: ends at %d", size, at)
		}
	}
}

func TestLevels(t *testing.T) {
	for ceiling, want := range map[int][]int{1: {1}, 2: {1, 2}, 5: {1, 2, 4, 5}, 8: {1, 2, 4, 8}, 9: {1, 2, 4, 8, 9}} {
		if diff := cmp.Diff(want, Levels(ceiling)); diff != "" {
			t.Errorf("Levels(%d) (-want +got):\n%s", ceiling, diff)
		}
	}
}

// outline prints a plan as a reader would want it.
func outline(stages []Stage) string {
	var b strings.Builder
	for _, st := range stages {
		first, last := st.Units[0], st.Units[len(st.Units)-1]
		fmt.Fprintf(&b, "%s %s/%s level %d: %d units [%d,%d) at once %d gang %v faults %v\n", st.Name, st.Phase, st.Probe, st.Level,
			len(st.Units), first.Ops.From, last.Ops.To, st.Parallel, st.Gang, first.Faults != nil)
	}
	return b.String()
}

func TestBuild(t *testing.T) {
	survey := &wire.Survey{Tools: []wire.Tool{tool("read", true), tool("list", true), tool("write", false)}}
	preflight := &wire.Preflight{LatencyUS: 100_000}
	tests := []struct {
		name, want string
		set        func(*spec.Spec)
		survey     *wire.Survey
	}{
		{"Server", `latency baseline/latency level 1: 4 units [1,101) at once 1 gang false faults false
concurrency-1 baseline/concurrency level 1: 1 units [0,100) at once 0 gang true faults false
concurrency-2 baseline/concurrency level 2: 1 units [100,200) at once 0 gang true faults false
contract-read baseline/contract level 0: 4 units [0,200) at once 1 gang false faults false
contract-list baseline/contract level 0: 4 units [0,200) at once 1 gang false faults false
degradation chaos/fault level 1: 1 units [1,101) at once 1 gang false faults true
recovery chaos/fault level 1: 1 units [101,201) at once 1 gang false faults true
`, func(s *spec.Spec) { s.Concurrency = 2 }, survey},
		{"Mock", `latency baseline/latency level 1: 3 units [1,120001) at once 0 gang false faults false
degradation chaos/fault level 1: 3 units [1,120001) at once 0 gang false faults true
recovery chaos/fault level 1: 3 units [120001,240001) at once 0 gang false faults true
`, func(s *spec.Spec) {
			s.Requests, s.Probes = 120_000, []string{"latency", "fault", "behavior"}
		}, &wire.Survey{Virtual: true, Tools: survey.Tools}},
		{"OpenLoopIsOneSchedule", "latency baseline/latency level 1: 1 units [1,101) at once 1 gang true faults false\n",
			func(s *spec.Spec) { s.Rate, s.Probes = 50, []string{"latency"} }, survey},
	}
	timed := func(s *spec.Spec) {
		s.LevelDuration, s.Concurrency, s.Probes = time.Minute, 2, []string{"latency", "concurrency", "fault"}
	}
	tests = append(tests, []struct {
		name, want string
		set        func(*spec.Spec)
		survey     *wire.Survey
	}{
		{"Timed", `latency baseline/latency level 1: 1 units [1,1099511627777) at once 1 gang false faults false
concurrency-1 baseline/concurrency level 1: 1 units [0,1099511627776) at once 0 gang true faults false
concurrency-2 baseline/concurrency level 2: 1 units [1099511627776,2199023255552) at once 0 gang true faults false
degradation chaos/fault level 1: 1 units [1,1099511627777) at once 1 gang false faults true
recovery chaos/fault level 1: 1 units [101,201) at once 1 gang false faults true
`, timed, survey},
		{"TimedMock", `latency baseline/latency level 1: 1 units [1,1099511627777) at once 0 gang false faults false
concurrency-1 baseline/concurrency level 1: 1 units [0,1099511627776) at once 0 gang false faults false
concurrency-2 baseline/concurrency level 2: 2 units [1099511627776,2199023255552) at once 0 gang false faults false
degradation chaos/fault level 1: 1 units [1,1099511627777) at once 0 gang false faults true
recovery chaos/fault level 1: 1 units [101,201) at once 0 gang false faults true
`, timed, &wire.Survey{Virtual: true, Tools: survey.Tools}},
	}...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scan(t, tt.set)
			c, err := Choose(s, tt.survey)
			if err != nil {
				t.Fatal(err)
			}
			got := outline(Build(s, tt.survey, c[0], preflight))
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckPreflight(t *testing.T) {
	tests := []struct {
		name    string
		outcome metrics.Outcome
		user    bool
		probes  []string
		want    string // part of the refusal; empty = go on
		warned  bool
	}{
		{"Accepted", metrics.OK, false, spec.AllProbes, "", false},
		{"RejectedSynthesized", metrics.ToolError, false, spec.AllProbes, "rejected the arguments synthesized", false},
		{"RejectedByProtocol", metrics.ProtocolError, false, spec.AllProbes, "rejected the arguments synthesized", false},
		{"InvalidAnswerIsMeasured", metrics.InvalidResponse, false, spec.AllProbes, "", true},
		{"Unreachable", metrics.Connection, false, spec.AllProbes, "could not be reached", false},
		{"ContractStillRuns", metrics.ToolError, false, []string{"contract"}, "", false},
		{"UserVouched", metrics.ToolError, true, spec.AllProbes, "", true},
		{"Authorization", metrics.AuthRequired, true, spec.AllProbes, "asks for authorization", false},
		{"Overloaded", metrics.ServerError, false, spec.AllProbes, "", false},
		{"Quota", metrics.RateLimited, false, spec.AllProbes, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scan(t, func(s *spec.Spec) { s.Probes = tt.probes })
			c := &Choice{ArgsSource: "placeholder", Calls: []wire.ToolCall{{Name: "read"}}}
			if tt.user {
				c.ArgsSource = "user"
			}
			warned := false
			err := CheckPreflight(s, c, &wire.Preflight{Outcome: tt.outcome, Delivered: true}, func(string) { warned = true })
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || warned != tt.warned {
				t.Errorf("err %v, warned %v; want %q, %v", err, warned, tt.want, tt.warned)
			}
		})
	}
}

func TestStopEndsARampAtHalfFailing(t *testing.T) {
	tally := metrics.NewTally()
	for i := range 10 {
		o := metrics.OK
		if i < 5 {
			o = metrics.Timeout
		}
		tally.Add(&metrics.Exchange{Outcome: o, Latency: time.Millisecond}, 0)
	}
	ramp, latency := &Stage{Probe: "concurrency"}, &Stage{Probe: "latency"}
	if !Stop(ramp, &merge.Stage{Tally: tally}) {
		t.Error("a ramp went on past a level at which half of the calls fail")
	}
	tally.Add(&metrics.Exchange{Outcome: metrics.OK, Latency: time.Millisecond}, 0)
	if Stop(ramp, &merge.Stage{Tally: tally}) || Stop(latency, &merge.Stage{Tally: tally}) || Stop(ramp, nil) {
		t.Error("stopped without reason")
	}
}
