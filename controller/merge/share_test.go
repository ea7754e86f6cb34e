package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ordeal/agent/wire"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

func TestGroups(t *testing.T) {
	zones := map[string]map[string]string{"a1": {"zone": "eu"}, "a2": {"zone": "eu", "node": "n"}, "b": {"zone": "us"}, "c": {"node": "n"}, "e": {"zone": ""}}
	m := Merger{By: "zone", Labels: func(agent string) map[string]string { return zones[agent] }}
	st := m.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}, {"u2", 1}, {"u3", 1}, {"u4", 1}, {"u5", 1}})
	for i, agent := range []string{"a1", "a2", "b", "c", "unknown", "e"} {
		saturated := map[string]string{"a2": "cpu"}[agent]
		m.Add(timed(fmt.Sprintf("u%d", i), agent, int64(i+1), saturated))
	}
	got := map[string]string{}
	for value, sh := range st.Groups {
		got[value] = fmt.Sprintf("%d agents, %d operations, %d of %d ok, %d times", len(sh.Agents), sh.Operations, sh.Outcomes[metrics.OK], sh.Outcomes.Total(), sh.Latency.N())
	}
	want := map[string]string{
		"eu": "2 agents, 8 operations, 6 of 8 ok, 3 times",
		"us": "1 agents, 4 operations, 3 of 4 ok, 3 times",
		None: "3 agents, 12 operations, 9 of 12 ok, 9 times",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if m.Summary().By != "zone" {
		t.Errorf("by %q", m.Summary().By)
	}
}

// TestLateHello: an agent whose labels come after its first result is asked again.
func TestLateHello(t *testing.T) {
	known := false
	m := Merger{By: "zone", Labels: func(string) map[string]string {
		if !known {
			return nil
		}
		return map[string]string{"zone": "eu"}
	}}
	st := m.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}})
	m.Add(timed("u0", "a", 1, ""))
	known = true
	m.Add(timed("u1", "a", 1, ""))
	if st.Groups["eu"] == nil || st.Groups["eu"].Operations != 4 || st.Groups[None].Operations != 4 {
		t.Errorf("groups %+v", st.Groups)
	}
}

func TestNothingIsKeptApartOfFaultsAndWithoutBy(t *testing.T) {
	m := Merger{By: "zone"}
	st := m.Stage("s", "fault", 0, []Planned{{"u0", 1}})
	m.Add(timed("u0", "a", 1, ""))
	if st.Groups != nil || st.Agents != nil {
		t.Errorf("faults are kept apart: %v %v", st.Groups, st.Agents)
	}
	var none Merger
	st = none.Stage("s", "latency", 0, []Planned{{"u0", 1}})
	none.Add(timed("u0", "a", 1, ""))
	if st.Groups != nil || st.Agents["a"].Outcomes.Total() != 4 || st.Agents["a"].Latency.N() != 3 {
		t.Errorf("groups %v, agents %v", st.Groups, st.Agents)
	}
}

// TestSharesAreBounded: more agents and zones than are kept apart lose their
// names and none of their numbers.
func TestSharesAreBounded(t *testing.T) {
	m := Merger{By: "zone", Labels: func(agent string) map[string]string { return map[string]string{"zone": "z" + agent} }}
	var planned []Planned
	const agents = MaxAgents + 50
	for i := range agents {
		planned = append(planned, Planned{fmt.Sprint(i), 1})
	}
	st := m.Stage("s", "latency", 0, planned)
	for i := range agents {
		m.Add(timed(fmt.Sprint(i), fmt.Sprint("agent", i), 1, ""))
	}
	if len(st.Agents) != MaxAgents+1 || st.Agents[Other].Latency.N() != 50*3 {
		t.Errorf("%d agents, others have %d times", len(st.Agents), st.Agents[Other].Latency.N())
	}
	if len(st.Groups) != MaxGroups+1 || st.Groups[Other].Operations != 4*(agents-MaxGroups) {
		t.Errorf("%d groups, others have %d operations", len(st.Groups), st.Groups[Other].Operations)
	}
	if got := len(m.Summary().Fleet); got != agents {
		t.Errorf("%d agents in the fleet, want all %d", got, agents)
	}
}

func TestReleasedIsPartial(t *testing.T) {
	var m Merger
	st := m.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}})
	r := timed("u0", "a", 1, "")
	r.Released = "lease"
	m.Add(r)
	m.Add(timed("u1", "a", 1, ""))
	if !st.Partial || st.Released["lease"] != 1 || st.Done != 2 {
		t.Errorf("partial %v, released %v, done %d", st.Partial, st.Released, st.Done)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var m Merger
	var planned []Planned
	for i := range 3 * MaxFailures {
		planned = append(planned, Planned{fmt.Sprint(i), 1})
	}
	st := m.Stage("s", "latency", 0, planned)
	for _, u := range planned {
		m.Add(&wire.Result{Stage: "s", Unit: u.Unit, Incarnation: 1, Final: true, Agent: "a", Failure: &wire.Failure{Message: "gone"}})
	}
	if len(st.Failures) != MaxFailures || st.Done != 3*MaxFailures {
		t.Errorf("%d failures kept of %d", len(st.Failures), st.Done)
	}
}

// TestLostUnitIsNoWork: the failure that stands for the share of an agent that
// went away ends the unit and is no work of the agent.
func TestLostUnitIsNoWork(t *testing.T) {
	var m Merger
	st := m.Stage("s", "concurrency", 2, []Planned{{"u0", 1}, {"u1", 1}})
	m.Add(timed("u0", "a", 1, ""))
	m.Add(&wire.Result{Stage: "s", Unit: "u1", Incarnation: 1, Final: true, Agent: "b", Failure: &wire.Failure{Class: "lost", Message: "agent b was lost"}})
	want := []AgentShare{{ID: "a", Units: 1, Operations: 4}, {ID: "b", Lost: true}}
	if diff := cmp.Diff(want, m.Summary().Fleet); diff != "" || st.Done != 2 {
		t.Errorf("done %d, fleet (-want +got):\n%s", st.Done, diff)
	}
}

// TestSpread compares with every value kept: ranks land in the cell of the exact
// value, cells are narrow, and parts merge to the whole.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, top := range []int64{1, 60, 5_000, 3_600_000_000} {
		var whole, left, right Spread
		var values []int64
		for range 2000 {
			v := rng.Int64N(top + 1)
			values = append(values, v)
			whole.Record(v, 1)
			[]*Spread{&left, &right}[rng.IntN(2)].Record(v, 1)
		}
		slices.Sort(values)
		left.Merge(&right)
		if diff := cmp.Diff(cells(&whole), cells(&left)); diff != "" || left.N() != whole.N() {
			t.Errorf("top %d: parts do not sum to the whole:\n%s", top, diff)
		}
		rank, previous := int64(0), -1
		for cell, n := range whole.Cells {
			if cell <= previous {
				t.Fatalf("cell %d after %d", cell, previous)
			}
			for _, v := range values[rank : rank+n] {
				high := CellHigh(cell)
				if low := CellHigh(cell-1) + 1; v < low && cell > 0 || v > high || high-v > v/32+1 {
					t.Fatalf("%d is in cell %d, which ends at %d", v, cell, high)
				}
			}
			rank, previous = rank+n, cell
		}
	}
}

func cells(s *Spread) map[int]int64 {
	out := map[int]int64{}
	for cell, n := range s.Cells {
		out[cell] = n
	}
	return out
}
