package merge

import (
	"cmp"
	"slices"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Merger adds the results of one run to a Summary; all it needs is the run.
type Merger struct {
	Run string // results of others are ignored

	summary Summary
	done    map[string]bool   // units that counted
	handed  map[string]uint64 // unit → highest incarnation seen, from 1
	planned map[string]int64  // unit → operations, for what had to be reissued
	shares  map[string]*AgentShare
}

// Planned is one unit a stage consists of.
type Planned struct {
	Unit       string
	Operations int64
}

// Stage opens a stage: the units it plans count as missing until their results
// arrive.
func (m *Merger) Stage(name, probe string, level int, units []Planned) *Stage {
	if m.planned == nil {
		m.planned, m.done = map[string]int64{}, map[string]bool{}
		m.handed, m.shares = map[string]uint64{}, map[string]*AgentShare{}
	}
	for _, u := range units {
		m.planned[u.Unit] = u.Operations
	}
	st := &Stage{Name: name, Probe: probe, Level: level, Planned: len(units)}
	m.summary.Stages = append(m.summary.Stages, st)
	return st
}

// Add counts a result if it is the first final one of a planned unit, and
// reports whether it did. Parts of an incarnation that never finished are
// dropped whole; repeated, late and stale results are counted as ignored.
func (m *Merger) Add(r *wire.Result) bool {
	st := m.summary.Stage(r.Stage)
	operations, planned := m.planned[r.Unit]
	if r.Run != m.Run || st == nil || !planned {
		m.summary.Ignored++
		return false
	}
	m.reissued(r, operations)
	if m.done[r.Unit] || !r.Final {
		m.summary.Ignored++
		return false
	}
	m.done[r.Unit] = true
	m.share(r.Agent, worked(r))
	m.summary.Calls += r.Calls
	st.add(r)
	return true
}

// reissued counts what the target may have seen again: the unit's operations
// once for every incarnation beyond the first, whichever of them counted.
func (m *Merger) reissued(r *wire.Result, operations int64) {
	before := max(m.handed[r.Unit], 1)
	if r.Incarnation > before {
		m.summary.Reissued += operations * int64(r.Incarnation-before)
		m.handed[r.Unit] = r.Incarnation
	}
}

// worked is the number of operations a result speaks of: of a unit that was
// cut, or that a duration ended, fewer than were planned.
func worked(r *wire.Result) int64 {
	switch {
	case r.Behavior != nil:
		return r.Behavior.Operations + r.Behavior.Unmeasured
	case r.Tally != nil:
		return r.Tally.Calls()
	case r.Contract != nil:
		return int64(len(r.Contract.Cases))
	}
	return r.Calls
}

func (m *Merger) share(agent string, operations int64) {
	if agent == "" {
		return // a unit nobody could work
	}
	s := m.shares[agent]
	if s == nil {
		s = &AgentShare{ID: agent}
		m.shares[agent] = s
	}
	s.Units++
	s.Operations += operations
}

// Summary returns what was added so far.
func (m *Merger) Summary() *Summary {
	m.summary.Fleet = m.summary.Fleet[:0]
	for _, s := range m.shares {
		m.summary.Fleet = append(m.summary.Fleet, *s)
	}
	slices.SortFunc(m.summary.Fleet, func(a, b AgentShare) int { return cmp.Compare(a.ID, b.ID) })
	return &m.summary
}

// Took records how long a stage lasted on the controller's clock.
func (s *Stage) Took(d time.Duration) { s.Elapsed = d }

func (s *Stage) add(r *wire.Result) {
	s.Done++
	s.Calls += r.Calls
	s.Partial = s.Partial || r.Partial
	if r.Busy > 0 {
		if s.Busy == nil {
			s.Busy = map[string]time.Duration{}
		}
		s.Busy[r.Agent] += r.Busy
	}
	if r.Failure != nil {
		s.Failures = append(s.Failures, *r.Failure)
	}
	if r.Tally != nil {
		if s.Tally == nil {
			s.Tally = metrics.NewTally()
		}
		s.Tally.Merge(r.Tally)
	}
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
	s.addGenerator(&r.Generator)
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

// addGenerator keeps the worst of the agents: a stage is as trustworthy as its
// least trustworthy generator.
func (s *Stage) addGenerator(g *wire.Generator) {
	into := &s.Generator
	into.CPUMilli = max(into.CPUMilli, g.CPUMilli)
	into.GCPauseUS = max(into.GCPauseUS, g.GCPauseUS)
	into.Lag.Merge(&g.Lag)
	if g.Saturated && (!into.Saturated || g.Reason < into.Reason) {
		into.Saturated, into.Reason = true, g.Reason
	}
}
