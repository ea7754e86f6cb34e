package merge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

func tally(rng *rand.Rand, n int) *metrics.Tally {
	t := metrics.NewTally()
	for range n {
		x := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Latency: time.Duration(rng.Int64N(1e9))}
		if rng.IntN(5) == 0 {
			x.Outcome, x.Message = metrics.ServerError, "boom"
		}
		t.Add(&x, 0)
	}
	return t
}

func results(rng *rand.Rand, units int) ([]Planned, []*wire.Result) {
	var planned []Planned
	var out []*wire.Result
	for i := range units {
		id := fmt.Sprintf("u%d", i)
		planned = append(planned, Planned{id, 10})
		out = append(out, &wire.Result{Stage: "latency", Unit: id, Incarnation: 1, Final: true, Agent: fmt.Sprintf("a%d", i%3),
			Calls: 10, Tally: tally(rng, 10)})
	}
	return planned, out
}

// Any order and any repetition of delivery gives the same summary.
func TestOrderAndRepetitionDoNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	planned, rs := results(rng, 20)
	var want string
	for trial := range 200 {
		order := append([]*wire.Result{}, rs...)
		for range rng.IntN(10) {
			order = append(order, rs[rng.IntN(len(rs))])
		}
		if trial > 0 {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		var m Merger
		m.Stage("latency", "latency", 1, planned)
		for _, r := range order {
			m.Add(r)
		}
		s := m.Summary()
		s.Ignored = 0
		got, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if trial == 0 {
			want = string(got)
			continue
		}
		if string(got) != want {
			t.Fatalf("trial %d differs:\n%s\n%s", trial, got, want)
		}
	}
}

func TestAdd(t *testing.T) {
	result := func(unit string, incarnation uint64, final bool) *wire.Result {
		return &wire.Result{Stage: "s", Unit: unit, Incarnation: incarnation, Final: final, Agent: "a", Calls: 1}
	}
	tests := []struct {
		name                     string
		results                  []*wire.Result
		done                     int
		calls, ignored, reissued int64
	}{
		{"Once", []*wire.Result{result("u0", 1, true)}, 1, 1, 0, 0},
		{"RepeatIgnored", []*wire.Result{result("u0", 1, true), result("u0", 1, true)}, 1, 1, 1, 0},
		{"StaleIncarnationIgnored", []*wire.Result{result("u0", 2, true), result("u0", 1, true)}, 1, 1, 1, 7},
		{"LateIncarnationSeenTwice", []*wire.Result{result("u0", 1, true), result("u0", 2, true)}, 1, 1, 1, 7},
		{"ThreeIncarnationsInAnyOrder", []*wire.Result{result("u0", 2, true), result("u0", 3, true), result("u0", 1, true)}, 1, 1, 2, 14},
		{"OtherRunIgnored", []*wire.Result{{Run: "r2", Stage: "s", Unit: "u0", Incarnation: 2, Final: true, Agent: "a", Calls: 1}}, 0, 0, 1, 0},
		{"PartOfDeadIncarnationDropped", []*wire.Result{result("u0", 1, false), result("u0", 2, true)}, 1, 1, 1, 7},
		{"UnplannedUnitIgnored", []*wire.Result{result("u9", 1, true)}, 0, 0, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Merger
			st := m.Stage("s", "latency", 0, []Planned{{"u0", 7}, {"u1", 7}})
			for _, r := range tt.results {
				m.Add(r)
			}
			s := m.Summary()
			if st.Done != tt.done || s.Calls != tt.calls || s.Ignored != tt.ignored || s.Reissued != tt.reissued {
				t.Errorf("done %d calls %d ignored %d reissued %d, want %d %d %d %d",
					st.Done, s.Calls, s.Ignored, s.Reissued, tt.done, tt.calls, tt.ignored, tt.reissued)
			}
			if st.Planned != 2 {
				t.Errorf("planned %d, want 2", st.Planned)
			}
		})
	}
}

// An agent's share is what it worked, not what was planned for it.
func TestShareIsWhatWasWorked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tests := []struct {
		name   string
		result wire.Result
		want   int64
	}{
		{"Tally", wire.Result{Calls: 5, Tally: tally(rng, 3)}, 3},
		{"Behavior", wire.Result{Calls: 5, Tally: tally(rng, 5), Behavior: &metrics.Behavior{Operations: 2, Unmeasured: 1}}, 3},
		{"Contract", wire.Result{Calls: 6, Contract: &wire.ContractResult{Cases: make([]wire.CaseResult, 3)}}, 3},
		{"CallsOnly", wire.Result{Calls: 3}, 3},
		{"Failed", wire.Result{Failure: &wire.Failure{Class: "unreachable"}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Merger
			m.Stage("s", "latency", 0, []Planned{{"u0", 880}})
			r := tt.result
			r.Stage, r.Unit, r.Incarnation, r.Final, r.Agent = "s", "u0", 1, true, "a"
			m.Add(&r)
			if got := m.Summary().Fleet[0].Operations; got != tt.want {
				t.Errorf("%d operations, want %d", got, tt.want)
			}
		})
	}
}
