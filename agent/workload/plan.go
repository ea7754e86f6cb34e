package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"ordeal/agent/wire"
	"ordeal/faultproxy/schedule"
)

// Bounds of a workload. A unit carries it and a result the tallies of its steps,
// each in one message: a NATS server takes 1 MiB by default.
const (
	MaxScenarios   = 100
	MaxSteps       = 50        // of a scenario
	MaxAllSteps    = 200       // of all scenarios: each has a histogram in every result
	MaxFeederBytes = 256 << 10 // rows of all feeders, as JSON
	MaxBytes       = 512 << 10 // the whole, as JSON
	MaxWeight      = 1_000_000_000
	MaxThink       = time.Hour
)

// Plan is a workload ready to be run. It does not change: any number of
// goroutines may use it.
type Plan struct {
	stream    schedule.Stream
	scenarios []scenario
	upTo      []uint64 // sum of the weights up to and with a scenario
	feeders   []feeder
	tallies   []named // by ID
	vars      int     // most of a scenario
	most      uint64  // steps of the longest scenario
}

// named is whose tally an ID is; an empty step is the scenario as a whole.
type named struct{ scenario, step string }

type scenario struct {
	name  string
	whole int
	steps []step
}

type step struct {
	call    Call // Args set when they are constant
	args    template
	key     schedule.RuleKey
	extract []extraction
}

// Draws that belong to the operation and not to a placeholder.
var (
	scenarioKey = schedule.KeyOf("workload/scenario")
	opIDKey     = schedule.KeyOf("workload/op_id")
)

// laneWhole is the lane of those draws and of feeders; the placeholders of a
// step have two each from here on.
const laneWhole schedule.Lane = 16

// Compile checks a workload and prepares it. The error joins a *Problem for
// everything that is wrong.
func Compile(w *wire.Workload) (*Plan, error) {
	c := &compiler{plan: &Plan{stream: schedule.New(w.Seed)}, at: nowhere()}
	if raw, err := json.Marshal(w); err != nil {
		c.fail("cannot be written as JSON: %v", err)
	} else if len(raw) > MaxBytes {
		c.fail("is %d KiB as JSON: want at most %d KiB, every unit of work carries it", len(raw)>>10, MaxBytes>>10)
	}
	c.addFeeders(w.Feeders)
	c.addScenarios(w.Scenarios)
	if err := c.err(); err != nil {
		return nil, err
	}
	return c.plan, nil
}

func (c *compiler) addScenarios(all []wire.Scenario) {
	p, total, steps := c.plan, uint64(0), 0
	if len(all) == 0 || len(all) > MaxScenarios {
		c.fail("has %d scenarios: want 1 to %d", len(all), MaxScenarios)
	}
	seen := map[string]bool{}
	for i := range all {
		sc := &all[i]
		c.at = Problem{Scenario: i, Step: -1, Place: fmt.Sprintf("scenario %.60q", sc.Name)}
		if sc.Name == "" {
			c.fail("has no name")
		}
		if seen[sc.Name] {
			c.fail("is there twice: give each a name of its own")
		}
		seen[sc.Name] = true
		if sc.Weight < 0 || sc.Weight > MaxWeight {
			c.fail("weight is %d: want 0 to %d", sc.Weight, MaxWeight)
		}
		total += uint64(max(sc.Weight, 0))
		p.upTo = append(p.upTo, total)
		p.scenarios = append(p.scenarios, c.scenario(sc))
		steps += len(sc.Steps)
	}
	c.at = nowhere()
	if len(all) > 0 && total == 0 {
		c.fail("all weights are 0: give at least one scenario a weight")
	}
	if steps > MaxAllSteps {
		c.fail("has %d steps: want at most %d in all scenarios", steps, MaxAllSteps)
	}
}

func (c *compiler) scenario(sc *wire.Scenario) scenario {
	made := scenario{name: sc.Name, whole: c.id(sc.Name, "")}
	if len(sc.Steps) == 0 || len(sc.Steps) > MaxSteps {
		c.fail("has %d steps: want 1 to %d", len(sc.Steps), MaxSteps)
		return made
	}
	c.plan.most = max(c.plan.most, uint64(len(sc.Steps)))
	c.variables(sc)
	place, seen := c.at.Place, map[string]bool{}
	for i := range sc.Steps {
		st := &sc.Steps[i]
		c.at.Step, c.at.Place = i, fmt.Sprintf("%s, step %.60q", place, st.Name)
		if st.Name == "" {
			c.fail("step %d has no name", i+1)
		}
		if seen[st.Name] {
			c.fail("is there twice: give each step of a scenario a name of its own")
		}
		seen[st.Name] = true
		wait := time.Duration(0)
		if i > 0 {
			wait = sc.Steps[i-1].Think
		}
		made.steps = append(made.steps, c.step(sc.Name, i, st, wait))
	}
	return made
}

// id numbers a tally.
func (c *compiler) id(scenario, step string) int {
	c.plan.tallies = append(c.plan.tallies, named{scenario, step})
	return len(c.plan.tallies) - 1
}

func (c *compiler) step(scenario string, i int, st *wire.Step, wait time.Duration) step {
	if st.Think < 0 || st.Think > MaxThink {
		c.fail("think is %v: want 0 to %v", st.Think, MaxThink)
	}
	made := step{
		key:  schedule.KeyOf(fmt.Sprintf("workload/%s/%d", scenario, i)),
		call: Call{Scenario: scenario, Step: st.Name, ID: c.id(scenario, st.Name), Tool: st.Tool, Wait: wait, Keep: len(st.Extract) > 0},
	}
	if len(st.Args) > 0 {
		made.args = c.template(st.Args)
		if len(made.args.pieces) == 0 {
			made.call.Args = made.args.tail
		}
	}
	made.extract = c.extractions(st.Extract)
	return made
}

// variables lists what the steps of a scenario extract.
func (c *compiler) variables(sc *wire.Scenario) {
	c.slots, c.later, c.known = map[string]int{}, map[string]int{}, nil
	for i, st := range sc.Steps {
		for name := range st.Extract {
			if c.later[name] == 0 {
				c.later[name] = i + 1
			}
		}
	}
	names := make([]string, 0, len(c.later))
	for name := range c.later {
		names = append(names, name)
	}
	sort.Strings(names)
	for slot, name := range names {
		c.slots[name] = slot
	}
	c.plan.vars = max(c.plan.vars, len(names))
}

// pick is the scenario of an operation.
func (p *Plan) pick(op uint64) *scenario {
	if len(p.scenarios) == 1 {
		return &p.scenarios[0]
	}
	n := schedule.Below(p.stream.Draw(scenarioKey, op, 0, laneWhole), p.upTo[len(p.upTo)-1])
	i, _ := slices.BinarySearch(p.upTo, n+1) // the first whose sum is above n
	return &p.scenarios[i]
}
