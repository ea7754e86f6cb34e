package merge

import (
	"cmp"
	"math"
	"slices"

	"ordeal/agent/wire"
)

// Merger adds the results of one run to a Summary; all it needs is the run.
type Merger struct {
	Run string // results of others are ignored
	// By is the label whose values the work is told apart by; empty for none.
	By string
	// Labels are those of an agent, asked when its first result arrives; nil for one
	// that is not known yet, and is asked for again. A nil func: no agent has any.
	Labels func(agent string) map[string]string

	summary Summary
	units   map[string]unit
	shares  map[string]*AgentShare
	groups  groups
}

// unit is what is known of one planned unit. There may be a million of them.
type unit struct {
	stage      *Stage
	operations int64  // planned, for what had to be reissued
	handed     uint32 // highest incarnation seen, 0 before any
	done       bool   // a result counted
}

// Planned is one unit a stage consists of.
type Planned struct {
	Unit       string
	Operations int64
}

// Stage opens a stage: the units it plans count as missing until their results
// arrive. Its numbers may be read after Took or Summary.
func (m *Merger) Stage(name, probe string, level int, units []Planned) *Stage {
	m.open()
	st := &Stage{Name: name, Probe: probe, Level: level, Planned: len(units)}
	for _, u := range units {
		m.units[u.Unit] = unit{stage: st, operations: u.Operations}
	}
	m.summary.Stages = append(m.summary.Stages, st)
	return st
}

func (m *Merger) open() {
	if m.units == nil {
		m.units, m.shares = map[string]unit{}, map[string]*AgentShare{}
	}
}

// Add counts a result if it is the first final one of a planned unit, and
// reports whether it did. Parts of an incarnation that never finished are
// dropped whole; repeated, late and stale results are counted as ignored.
func (m *Merger) Add(r *wire.Result) bool {
	u, planned := m.units[r.Unit]
	if r.Run != m.Run || !planned || u.stage.Name != r.Stage {
		m.summary.Ignored++
		return false
	}
	counts := r.Final && !u.done
	m.reissued(&u, r.Incarnation)
	u.done = u.done || r.Final
	m.units[r.Unit] = u
	if !counts {
		m.summary.Ignored++
		return false
	}
	m.share(r)
	m.summary.Calls += r.Calls
	u.stage.add(r)
	m.apart(u.stage, r)
	return true
}

// reissued counts what the target may have seen again: the unit's operations
// once for every incarnation beyond the first, whichever of them counted.
func (m *Merger) reissued(u *unit, incarnation uint64) {
	before := max(u.handed, 1)
	now := uint32(min(incarnation, math.MaxUint32))
	if now > before {
		m.summary.Reissued += u.operations * int64(now-before)
		u.handed = now
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

// lost is the class of the failure of a unit whose agent went away with it.
const lost = "lost"

func (m *Merger) share(r *wire.Result) {
	if r.Agent == "" {
		return // a unit nobody could work
	}
	s := m.agent(r.Agent)
	if r.Failure != nil && r.Failure.Class == lost {
		s.Lost = true
		return
	}
	s.Units++
	s.Operations += worked(r)
}

func (m *Merger) agent(id string) *AgentShare {
	m.open()
	s := m.shares[id]
	if s == nil {
		s = &AgentShare{ID: id}
		m.shares[id] = s
	}
	return s
}

// Ignore counts results that were put aside before they came here.
func (m *Merger) Ignore(n int64) { m.summary.Ignored += n }

// Lost notes an agent that went away while it had work of the run. What it had
// measured before counts.
func (m *Merger) Lost(agent string) { m.agent(agent).Lost = true }

// Summary returns what was added so far.
func (m *Merger) Summary() *Summary {
	m.summary.Fleet = m.summary.Fleet[:0]
	for _, s := range m.shares {
		m.summary.Fleet = append(m.summary.Fleet, *s)
	}
	slices.SortFunc(m.summary.Fleet, func(a, b AgentShare) int { return cmp.Compare(a.ID, b.ID) })
	m.summary.By = m.By
	for _, st := range m.summary.Stages {
		st.settle()
	}
	return &m.summary
}
