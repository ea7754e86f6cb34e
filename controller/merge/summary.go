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
	Calls    int64 // everything sent to the target
	Reissued int64 // operations the target may have seen twice because an agent was lost
	Ignored  int64 // late, repeated and stale results
}

// Stage is one stage of the plan, merged over its units.
type Stage struct {
	Name    string // latency, cost, concurrency-8, contract-search, degradation, recovery, oracle-before, ...
	Probe   string // latency, cost, concurrency, contract, fault
	Level   int    // callers at once; 0 where it has no meaning
	Planned int    // units
	Done    int    // units with a result
	Calls   int64
	Partial bool          // cut by a halt
	Elapsed time.Duration // first unit out to last result in, controller's clock
	// Busy is how long each agent had a call in flight or a deliberate wait.
	Busy map[string]time.Duration

	Tally     *metrics.Tally
	Behavior  *metrics.Behavior
	Contract  *wire.ContractResult // cases in index order
	Oracle    *wire.OracleResult
	Generator wire.Generator
	Failures  []wire.Failure // units that could not be worked
}

// AgentShare is one agent's part of the work.
type AgentShare struct {
	ID         string
	Units      int64
	Operations int64 // worked
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
