package merge

import (
	"math/rand/v2"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// timed is a result of three successes and a timeout, each as slow as told.
func timed(unit, agent string, ms int64, saturated string) *wire.Result {
	t := metrics.NewTally()
	for range 3 {
		t.Add(&metrics.Exchange{Outcome: metrics.OK, Delivered: true, Latency: time.Duration(ms) * time.Millisecond, TTFT: time.Millisecond}, time.Millisecond)
	}
	t.Add(&metrics.Exchange{Outcome: metrics.Timeout, Latency: time.Duration(ms) * time.Millisecond, Message: "late"}, 0)
	return &wire.Result{Stage: "s", Unit: unit, Incarnation: 1, Final: true, Agent: agent, Calls: 4, Tally: t,
		Generator: wire.Generator{Saturated: saturated != "", Reason: saturated}}
}

// TestSaturatedAgents says whose times count, in every order of arrival.
func TestSaturatedAgents(t *testing.T) {
	tests := []struct {
		name      string
		results   []*wire.Result
		samples   int64 // successes with a time, and late ones
		slowest   int64 // ms
		withheld  []Withheld
		saturated string
	}{
		{"None", []*wire.Result{timed("u0", "a", 1, ""), timed("u1", "b", 2, "")}, 6, 3, nil, ""},
		{"One", []*wire.Result{timed("u0", "a", 1, ""), timed("u1", "b", 900, "cpu"), timed("u2", "c", 2, "")}, 6, 3,
			[]Withheld{{Agent: "b", Reason: "cpu", Requests: 4}}, ""},
		{"All", []*wire.Result{timed("u0", "a", 1, "lag"), timed("u1", "b", 2, "cpu")}, 6, 3, nil, "cpu"},
		{"Alone", []*wire.Result{timed("u0", "a", 1, ""), timed("u1", "a", 2, "cpu")}, 6, 3, nil, "cpu"},
		{"NowAndThen", []*wire.Result{timed("u0", "a", 1, ""), timed("u1", "a", 900, "cpu"), timed("u2", "b", 2, ""), timed("u3", "b", 4, "")}, 9, 5,
			[]Withheld{{Agent: "a", Reason: "cpu", Requests: 4}}, ""},
		{"OthersOnlyFailed", []*wire.Result{timed("u0", "a", 1, "cpu"),
			{Stage: "s", Unit: "u1", Incarnation: 1, Final: true, Agent: "b", Failure: &wire.Failure{Class: "lost"}}}, 3, 2, nil, "cpu"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				rng.Shuffle(len(tt.results), func(i, j int) { tt.results[i], tt.results[j] = tt.results[j], tt.results[i] })
				var m Merger
				st := m.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}, {"u2", 1}, {"u3", 1}})
				requests := int64(0)
				for _, r := range tt.results {
					m.Add(r)
					m.Summary() // looked at while it runs
					requests += r.Calls
				}
				st.Took(time.Second)
				if got := st.Tally.Latency.N(); got != tt.samples || st.Tally.Service.N() != got || st.Tally.Late.N() != got || st.Tally.TTFT.N() != got {
					t.Errorf("%d latencies, %d late, want %d of each", got, st.Tally.Late.N(), tt.samples)
				}
				if got := st.Tally.Latency.Max(); got != tt.slowest*1000 {
					t.Errorf("slowest %d µs, want %d ms", got, tt.slowest)
				}
				if got := st.Tally.Measured(); got != requests || st.Calls != requests {
					t.Errorf("%d requests of %d calls: outcomes of saturated agents must count", got, requests)
				}
				if diff := cmp.Diff(tt.withheld, st.Withheld, cmp.AllowUnexported(Withheld{})); diff != "" {
					t.Errorf("withheld (-want +got):\n%s", diff)
				}
				if st.Generator.Saturated != (tt.saturated != "") || st.Generator.Reason != tt.saturated {
					t.Errorf("generator %v %q, want %q", st.Generator.Saturated, st.Generator.Reason, tt.saturated)
				}
			}
		})
	}
}

// TestSettledTwice: what was set aside comes back once nobody had room, and goes
// again.
func TestSettledTwice(t *testing.T) {
	var m Merger
	st := m.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}, {"u2", 1}})
	for i, want := range []int64{3, 3, 6} { // a clean; b saturated; b is all there is to withhold
		m.Add([]*wire.Result{timed("u0", "a", 1, ""), timed("u1", "b", 2, "cpu"), timed("u2", "c", 3, "")}[i])
		if m.Summary(); st.Tally.Latency.N() != want {
			t.Errorf("after %d results %d samples, want %d", i+1, st.Tally.Latency.N(), want)
		}
	}
	var all Merger
	st = all.Stage("s", "latency", 0, []Planned{{"u0", 1}, {"u1", 1}})
	all.Add(timed("u0", "a", 1, "cpu"))
	if all.Summary(); st.Tally.Latency.N() != 3 || !st.Generator.Saturated {
		t.Errorf("alone: %d samples, saturated %v", st.Tally.Latency.N(), st.Generator.Saturated)
	}
	all.Add(timed("u1", "b", 1, ""))
	if all.Summary(); st.Tally.Latency.N() != 3 || st.Generator.Saturated || len(st.Withheld) != 1 {
		t.Errorf("beside one with room: %d samples, saturated %v, withheld %v", st.Tally.Latency.N(), st.Generator.Saturated, st.Withheld)
	}
}
