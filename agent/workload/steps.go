package workload

import (
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Steps counts what became of the calls of each step, and of the operations of
// each scenario. One for each caller, merged afterwards: it meets no lock. Its
// size depends on the plan alone.
type Steps struct {
	plan *Plan
	by   []*stepTally // by ID, nil until something was counted
}

type stepTally struct {
	outcomes []int64 // by metrics.Outcome
	latency  metrics.Dist
}

// outcomes is how many there are.
var outcomes = len(metrics.Outcomes())

// NewSteps returns an empty count.
func (p *Plan) NewSteps() *Steps { return &Steps{plan: p, by: make([]*stepTally, len(p.tallies))} }

// Add counts a call under its ID, or an operation under Whole. The latency
// counts for a success only.
func (s *Steps) Add(id int, o metrics.Outcome, latency time.Duration) {
	t := s.at(id)
	t.outcomes[o]++
	if o == metrics.OK {
		t.latency.Record(latency.Microseconds())
	}
}

func (s *Steps) at(id int) *stepTally {
	if s.by[id] == nil {
		s.by[id] = &stepTally{outcomes: make([]int64, outcomes)}
	}
	return s.by[id]
}

// Merge adds all of o, which is of the same plan.
func (s *Steps) Merge(o *Steps) {
	for id, theirs := range o.by {
		if theirs == nil {
			continue
		}
		t := s.at(id)
		for i, n := range theirs.outcomes {
			t.outcomes[i] += n
		}
		t.latency.Merge(&theirs.latency)
	}
}

// Reset empties it and keeps its memory.
func (s *Steps) Reset() {
	for _, t := range s.by {
		if t != nil {
			clear(t.outcomes)
			t.latency.Reset()
		}
	}
}

// Tallies are those with anything in them, in the order of the plan: a scenario
// as a whole, then its steps. They share nothing with s.
func (s *Steps) Tallies() []wire.StepTally {
	var out []wire.StepTally
	for id, t := range s.by {
		if t == nil {
			continue
		}
		made := wire.StepTally{Scenario: s.plan.tallies[id].scenario, Step: s.plan.tallies[id].step, Outcomes: metrics.Counts{}}
		for o, n := range t.outcomes {
			if n > 0 {
				made.Outcomes[metrics.Outcome(o)] = n
			}
		}
		if len(made.Outcomes) == 0 {
			continue
		}
		made.Latency.Merge(&t.latency)
		out = append(out, made)
	}
	return out
}
