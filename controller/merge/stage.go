package merge

import (
	"cmp"
	"slices"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Took records how long a stage lasted on the controller's clock. It is the end
// of the stage: its numbers may be read.
func (s *Stage) Took(d time.Duration) {
	s.Elapsed = d
	s.settle()
}

func (s *Stage) add(r *wire.Result) {
	s.Done++
	s.Calls += r.Calls
	s.cut(r)
	if r.Busy > 0 {
		if s.Busy == nil {
			s.Busy = map[string]time.Duration{}
		}
		s.Busy[r.Agent] += r.Busy
	}
	if r.Failure != nil && len(s.Failures) < MaxFailures {
		s.Failures = append(s.Failures, *r.Failure)
	}
	s.addGenerator(&r.Generator)
	s.addTally(r)
	s.addCourse(r)
	if r.Behavior != nil {
		if s.Behavior == nil {
			s.Behavior = &metrics.Behavior{}
		}
		s.Behavior.Merge(r.Behavior)
	}
	if r.Oracle != nil {
		s.Oracle = r.Oracle
	}
	s.addContract(r.Contract)
}

// cut notes a result that holds less than its unit planned.
func (s *Stage) cut(r *wire.Result) {
	s.Partial = s.Partial || r.Partial || r.Released != ""
	if r.Released == "" {
		return
	}
	if s.Released == nil {
		s.Released = map[string]int64{}
	}
	s.Released[r.Released]++
}

func (s *Stage) addContract(c *wire.ContractResult) {
	switch {
	case c == nil:
		return
	case s.Contract == nil:
		s.Contract = c
		return
	}
	into := s.Contract
	into.Total = max(into.Total, c.Total)
	into.LeftOut = max(into.LeftOut, c.LeftOut)
	into.Cases = append(into.Cases, c.Cases...)
	slices.SortFunc(into.Cases, func(a, b wire.CaseResult) int { return cmp.Compare(a.Index, b.Index) })
	if into.Controls == nil {
		into.Controls = map[string]int64{}
	}
	for k, n := range c.Controls {
		into.Controls[k] += n
	}
	into.Output.Checked += c.Output.Checked
	into.Output.Violations += c.Output.Violations
	if into.Output.First == "" || c.Output.First != "" && c.Output.First < into.Output.First {
		into.Output.First = c.Output.First
	}
	into.Liveness = append(into.Liveness, c.Liveness...)
	slices.Sort(into.Liveness)
}
