package merge

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// somePeriods are periods with random content.
func somePeriods(rng *rand.Rand, n int) []metrics.Period {
	periods := make([]metrics.Period, n)
	for i := range periods {
		p := &periods[i]
		p.Outcomes = metrics.Counts{metrics.OK: rng.Int64N(9), metrics.Timeout: rng.Int64N(3)}
		p.Scheduled, p.Sent, p.Completed = rng.Int64N(99), rng.Int64N(99), rng.Int64N(99)
		for range rng.IntN(20) {
			p.Latency.Record(1 + rng.Int64N(1e6))
		}
	}
	return periods
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestCourseInAnyOrder: periods, steps and sessions of several agents merge to the
// same in every order, whatever lengths their periods have.
func TestCourseInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var results []*wire.Result
		var calls int64
		for i := range 1 + rng.IntN(5) {
			length := time.Second << rng.IntN(3)
			r := &wire.Result{Stage: "load", Unit: string(rune('a' + i)), Agent: string(rune('a' + i)), Incarnation: 1, Final: true,
				Period: length, Periods: somePeriods(rng, rng.IntN(12)), Sessions: wire.Sessions{Opened: rng.Int64N(5)}}
			r.Steps = []wire.StepTally{{Scenario: "s", Step: string(rune('x' + rng.IntN(3))), Outcomes: metrics.Counts{metrics.OK: 2}}}
			r.Steps[0].Latency.Record(rng.Int64N(1e5))
			for j := range r.Periods {
				calls += r.Periods[j].Outcomes.Total()
			}
			results = append(results, r)
		}
		var want string
		for order := range 3 {
			rng.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			var m Merger
			var planned []Planned
			for _, r := range results {
				planned = append(planned, Planned{r.Unit, 1})
			}
			st := m.Stage("load", "load", 1, planned)
			for _, r := range results {
				m.Add(r)
			}
			st.Took(time.Second)
			c := st.Course()
			got := asJSON(t, c)
			if order == 0 {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("in another order (-want +got):\n%s", diff)
			}
			var merged int64
			for i := range c.Periods {
				merged += c.Periods[i].Outcomes.Total()
			}
			if merged != calls {
				t.Fatalf("%d calls in the periods, want %d", merged, calls)
			}
		}
	}
}

// TestCourseOfSaturatedAgents: the times of an agent that was the limit itself are
// left out while another had room, its outcomes are not.
func TestCourseOfSaturatedAgents(t *testing.T) {
	result := func(agent string, us int64, saturated bool) *wire.Result {
		p := metrics.Period{Outcomes: metrics.Counts{metrics.OK: 1}}
		p.Latency.Record(us)
		return &wire.Result{Stage: "load", Unit: agent, Agent: agent, Incarnation: 1, Final: true, Period: time.Second, Periods: []metrics.Period{p},
			Tally: metrics.NewTally(), Generator: wire.Generator{Saturated: saturated, Reason: "no CPU left"}}
	}
	for _, tt := range []struct {
		name       string
		a, b       bool
		calls, max int64
		timed      int64
	}{{"OneOfTwo", false, true, 2, 10, 1}, {"Both", true, true, 2, 5000, 2}, {"None", false, false, 2, 5000, 2}} {
		var m Merger
		st := m.Stage("load", "load", 1, []Planned{{"a", 1}, {"b", 1}})
		m.Add(result("b", 5000, tt.b))
		m.Add(result("a", 10, tt.a))
		st.Took(time.Second)
		p := st.Course().Periods[0]
		if p.Outcomes.Total() != tt.calls || p.Latency.Max() != tt.max || p.Latency.N() != tt.timed {
			t.Errorf("%s: %d calls, %d timed up to %d µs; want %d, %d, %d", tt.name, p.Outcomes.Total(), p.Latency.N(), p.Latency.Max(), tt.calls, tt.timed, tt.max)
		}
	}
}
