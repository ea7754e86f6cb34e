package merge

import (
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Summary is everything the agents observed in a run, each unit exactly once.
type Summary struct {
	Stages   []*Stage // in the order of the plan
	Fleet    []AgentShare
	By       string // label that Stage.Groups tells apart; empty for none
	Calls    int64  // everything sent to the target
	Reissued int64  // operations the target may have seen twice because an agent was lost
	Ignored  int64  // late, repeated and stale results
}

// Stage is one stage of the plan, merged over its units.
type Stage struct {
	Name    string // latency, cost, concurrency-8, contract-search, degradation, recovery, oracle-before, ...
	Probe   string // latency, cost, concurrency, contract, fault
	Level   int    // callers at once; 0 where it has no meaning
	Planned int    // units
	Done    int    // units with a result
	Calls   int64
	Partial bool // cut by a halt, or for a reason in Released
	// Released says what cut units, when not a halt, and how many: a lease that
	// ended, calls that were not granted.
	Released map[string]int64
	Elapsed  time.Duration // first unit out to last result in, controller's clock
	// Busy is how long each agent had a call in flight or a deliberate wait.
	Busy map[string]time.Duration
	Gang *Gang // what became of the gang; nil for a stage of a pool

	Tally     *metrics.Tally
	Behavior  *metrics.Behavior
	Contract  *wire.ContractResult // cases in index order
	Oracle    *wire.OracleResult
	Generator wire.Generator
	// Withheld are the agents whose own side was the limit while others had room:
	// their times are in no distribution of Tally, their outcomes are. By agent.
	Withheld []Withheld
	Failures []wire.Failure // units that could not be worked, the first MaxFailures of them

	Groups map[string]*Share      // by value of the label; nil without Merger.By
	Agents map[string]*AgentTally // by id, at most MaxAgents and Other

	clean, aside Course               // see Course
	generators   map[string]*Withheld // agents that measured something, saturated or not
	times        *times
}

// MaxFailures bounds the failures a stage keeps in words.
const MaxFailures = 100

// Withheld is an agent whose times are left out of a stage.
type Withheld struct {
	Agent    string
	Reason   string
	Requests int64 // attempts that say something about the target, without a time

	saturated bool
}

// AgentShare is one agent's part of the work.
type AgentShare struct {
	ID         string
	Units      int64
	Operations int64 // worked
	Lost       bool
	// Offset is the agent's clock minus the controller's, wrong by at most Bound,
	// as measured for its last gang. A Bound of 0: never measured.
	Offset, Bound time.Duration
}

// Degraded reports a stage that lost a part of its gang even when repeated: it
// was carried out with less load than planned, and its numbers are not those
// that were asked for.
func (s *Stage) Degraded() bool { return s.Gang != nil && s.Gang.Degraded }

// Untimed is the number of requests whose times are withheld.
func (s *Stage) Untimed() int64 {
	var n int64
	for _, w := range s.Withheld {
		n += w.Requests
	}
	return n
}

// Stage returns the stage of that name, nil when the run had none.
func (s *Summary) Stage(name string) *Stage {
	for _, st := range s.Stages {
		if st.Name == name {
			return st
		}
	}
	return nil
}

// OfProbe lists the stages of a probe in the order of the plan.
func (s *Summary) OfProbe(probe string) []*Stage {
	var out []*Stage
	for _, st := range s.Stages {
		if st.Probe == probe {
			out = append(out, st)
		}
	}
	return out
}
