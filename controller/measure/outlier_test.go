package measure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ordeal/controller/measure"
	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// nature is how one agent sees the target.
type nature struct {
	median float64 // µs, of a lognormal latency
	tail   float64 // chance of a call ten times as slow
	errors float64
}

var ordinary = nature{median: 80_000, tail: 0.02, errors: 0.01}

// watch draws n requests into a stage.
func (v nature) watch(rng *rand.Rand, st *merge.Stage, agent string, n int) {
	if st.Agents == nil {
		st.Agents = map[string]*merge.AgentTally{}
	}
	a := st.Agents[agent]
	if a == nil {
		a = &merge.AgentTally{Outcomes: metrics.Counts{}}
		st.Agents[agent] = a
	}
	a.Units++
	for range n {
		if rng.Float64() < v.errors {
			a.Outcomes[metrics.ServerError]++
			continue
		}
		a.Outcomes[metrics.OK]++
		us := v.median * math.Exp(0.4*rng.NormFloat64())
		if rng.Float64() < v.tail {
			us *= 10
		}
		a.Latency.Record(int64(us), 1)
	}
}

const fleetSize = 16

func id(i int) string { return fmt.Sprintf("agent-%02d", i) }

// gangOf16 is a gang in which agent 0 is of another nature.
func gangOf16(rng *rand.Rand, first nature, each int) *merge.Summary {
	st := &merge.Stage{Name: "concurrency-16", Probe: "concurrency", Gang: &merge.Gang{}}
	for i := range fleetSize {
		v := ordinary
		if i == 0 {
			v = first
		}
		v.watch(rng, st, id(i), each)
	}
	return &merge.Summary{Stages: []*merge.Stage{st}}
}

func named(sum *merge.Summary) []string {
	out := []string{}
	for _, o := range measure.Fleet(sum, nil).Outliers {
		out = append(out, o.Agent+" "+o.What)
	}
	return out
}

// TestEqualFleetsNameNobody: of 400 fleets of equals at most one in twenty names
// anybody, whatever they are equal in.
func TestEqualFleetsNameNobody(t *testing.T) {
	const fleets = 400
	for _, row := range []struct {
		name  string
		build func(rng *rand.Rand) *merge.Summary
	}{
		{"Gang", func(rng *rand.Rand) *merge.Summary { return gangOf16(rng, ordinary, 50+rng.IntN(300)) }},
		{"FewestRequests", func(rng *rand.Rand) *merge.Summary { return gangOf16(rng, ordinary, 52) }},
		// Busy stages are slower for everybody; who works how much on which is luck.
		{"UnequalShares", func(rng *rand.Rand) *merge.Summary {
			sum := &merge.Summary{}
			for level := range 4 {
				st := &merge.Stage{Name: fmt.Sprint("concurrency-", 1<<level), Probe: "concurrency"}
				busy := nature{median: 20_000 * float64(int(1)<<(2*level)), tail: 0.02, errors: 0.002 * float64(int(1)<<(2*level))}
				for i := range fleetSize {
					for range 3 + rng.IntN(5)*rng.IntN(5) {
						busy.watch(rng, st, id(i), 10)
					}
				}
				sum.Stages = append(sum.Stages, st)
			}
			return sum
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 8))
			wrong, compared := 0, 0
			for range fleets {
				f := measure.Fleet(row.build(rng), nil)
				if len(f.Outliers) > 0 {
					wrong++
				}
				compared += f.Compared
			}
			t.Logf("%d of %d fleets named somebody", wrong, fleets)
			if wrong > fleets/20 {
				t.Errorf("%d of %d fleets of equals named somebody", wrong, fleets)
			}
			if compared < fleets*fleetSize*9/10 {
				t.Errorf("%d agents compared: the test proves nothing", compared)
			}
		})
	}
}

func TestPlantedOutlierIsFound(t *testing.T) {
	slow, failing, jumpy, fast := ordinary, ordinary, ordinary, ordinary
	slow.median *= 4
	fast.median /= 4
	failing.errors = 0.1
	jumpy.tail = 0.2
	for _, row := range []struct {
		name  string
		first nature
		each  int
		want  string
	}{
		{"FourTimesSlower", slow, 55, result.Slower},
		{"FourTimesFaster", fast, 55, result.Faster},
		{"TenPercentErrors", failing, 200, result.MoreErrors},
		{"HeavyTail", jumpy, 200, result.SlowerTail},
	} {
		t.Run(row.name, func(t *testing.T) {
			const fleets = 200
			rng := rand.New(rand.NewPCG(9, 10))
			found, others := 0, 0
			for range fleets {
				names := named(gangOf16(rng, row.first, row.each))
				if slices.Contains(names, id(0)+" "+row.want) {
					found++
				}
				others += len(slices.DeleteFunc(names, func(s string) bool { return s[:len(id(0))] == id(0) }))
			}
			t.Logf("found in %d of %d fleets, %d others named", found, fleets, others)
			if found < fleets*95/100 || others > fleets/20 {
				t.Errorf("found in %d of %d fleets, and %d others were named", found, fleets, others)
			}
		})
	}
}

func TestOutlierEvidence(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	slow := ordinary
	slow.median *= 4
	f := measure.Fleet(gangOf16(rng, slow, 100), func(agent string) (string, map[string]string) { return "1", map[string]string{"zone": "z" + agent} })
	if len(f.Outliers) != 1 || f.Compared != fleetSize {
		t.Fatalf("outliers %+v of %d compared", f.Outliers, f.Compared)
	}
	o := f.Outliers[0]
	e := o.Evidence
	own, _ := e.Own.Number()
	rest, _ := e.Rest.Number()
	if o.Agent != id(0) || o.What != result.Slower || o.Labels["zone"] != "z"+id(0) || e.Metric != "p50_s" {
		t.Errorf("outlier %+v", o)
	}
	if own < 0.28 || own > 0.36 || rest < 0.077 || rest > 0.084 || e.Own.N > 100 || e.Rest.N < 1400 || e.P > e.Level || e.Level != 0.05/48 {
		t.Errorf("evidence %+v: own %v, rest %v", e, own, rest)
	}
	for _, m := range []metrics.Measured{e.Own, e.Rest} {
		if v, _ := m.Number(); m.Interval == nil || m.Interval.Lo > v || m.Interval.Hi < v || m.Unit != "s" {
			t.Errorf("%+v with interval %+v", m, m.Interval)
		}
	}
}

// TestRestIsWeightedToTheAgentsStages: an agent that mostly did the slow stage is
// held against what the others saw there.
func TestRestIsWeightedToTheAgentsStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	quick := &merge.Stage{Name: "concurrency-1", Gang: &merge.Gang{}}
	busy := &merge.Stage{Name: "concurrency-64", Gang: &merge.Gang{}}
	for i := range fleetSize {
		at := map[bool][2]int{true: {20, 380}, false: {380, 20}}[i == 0]
		nature{median: 1000}.watch(rng, quick, id(i), at[0])
		nature{median: 400_000, errors: map[bool]float64{true: 0.5, false: 0.1}[i == 0]}.watch(rng, busy, id(i), at[1])
	}
	f := measure.Fleet(&merge.Summary{Stages: []*merge.Stage{quick, busy}}, nil)
	if len(f.Outliers) != 1 || f.Outliers[0].What != result.MoreErrors {
		t.Fatalf("outliers %+v, want the errors of one agent alone: its stage is slow for everybody", f.Outliers)
	}
	if rest, _ := f.Outliers[0].Evidence.Rest.Number(); rest < 0.06 || rest > 0.13 {
		t.Errorf("the rest fails %v, want 10 %% of 95 %% of the mix", rest)
	}
	// (20+380)² / (20²/5700 + 380²/300): hardly more than the 300 it has on the busy stage.
	if n := f.Outliers[0].Evidence.Rest.N; n != 332 {
		t.Errorf("the rest is worth %d requests, want 332", n)
	}
}

func TestWhoCanBeNamed(t *testing.T) {
	slow := ordinary
	slow.median *= 8
	rng := rand.New(rand.NewPCG(15, 16))
	gang := func(natures ...nature) *merge.Stage {
		st := &merge.Stage{Name: "concurrency-4", Gang: &merge.Gang{}}
		for i, v := range natures {
			v.watch(rng, st, id(i), 200)
		}
		return st
	}
	pooled := func(units int) *merge.Stage {
		st := &merge.Stage{Name: "latency"}
		for i := range 4 {
			for range units {
				map[bool]nature{true: slow, false: ordinary}[i == 0].watch(rng, st, id(i), 200)
			}
		}
		return st
	}
	lossy := gang(slow, ordinary, ordinary)
	lossy.Gang.Degraded = true
	plain := nature{median: 80_000}
	other := gang(plain, plain, plain, plain)
	slow.watch(rng, other, merge.Other, 20)
	few := &merge.Stage{Name: "concurrency-4", Gang: &merge.Gang{}}
	for i := range 4 {
		map[bool]nature{true: slow, false: ordinary}[i == 0].watch(rng, few, id(i), 49)
	}
	tests := []struct {
		name     string
		stage    *merge.Stage
		compared int
		want     []string
	}{
		{"TwoAgentsTheWorse", gang(ordinary, slow), 2, []string{id(1) + " slower"}},
		{"Alone", gang(slow), 0, []string{}},
		{"TwoOfSeven", gang(slow, ordinary, ordinary, slow, ordinary, ordinary, ordinary), 7, []string{id(0) + " slower", id(3) + " slower"}},
		{"NoMajority", gang(slow, slow, slow, ordinary), 4, []string{id(3) + " faster"}},
		{"DegradedLeftOut", lossy, 0, []string{}},
		{"UnnamedAgents", other, 4, []string{}},
		{"TooFew", few, 0, []string{}},
		{"OneUnitOfAPool", pooled(1), 0, []string{}},
		{"ThreeUnitsOfAPool", pooled(3), 4, []string{id(0) + " slower"}},
		{"AllEqualToTheCell", gang(nature{median: 1}, nature{median: 1}, nature{median: 1}), 3, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sum := &merge.Summary{Stages: []*merge.Stage{tt.stage}}
			if f := measure.Fleet(sum, nil); f.Compared != tt.compared {
				t.Errorf("%d compared, want %d", f.Compared, tt.compared)
			}
			got := named(sum)
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("outliers (-want +got):\n%s", diff)
			}
			if again := named(sum); len(again) != len(got) {
				t.Errorf("a second look names %v", again)
			}
		})
	}
}

// TestOneFastAmongTies: values that are all equal leave no room above them.
func TestOneFastAmongTies(t *testing.T) {
	st := &merge.Stage{Name: "concurrency-4", Gang: &merge.Gang{}, Agents: map[string]*merge.AgentTally{}}
	for i := range 8 {
		a := &merge.AgentTally{Outcomes: metrics.Counts{metrics.OK: 100}}
		a.Latency.Record(map[bool]int64{true: 1_000, false: 50_000}[i == 2], 100)
		st.Agents[id(i)] = a
	}
	if diff := cmp.Diff([]string{id(2) + " faster"}, named(&merge.Summary{Stages: []*merge.Stage{st}})); diff != "" {
		t.Errorf("outliers (-want +got):\n%s", diff)
	}
}
