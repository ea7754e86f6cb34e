package merge

import (
	"cmp"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Bounds of what is kept beside the merged stage: of the agents and values that
// come first. The rest is counted under Other.
const (
	MaxAgents = 2000 // of a run, with a tally of their own
	MaxGroups = 64   // values of the label

	Other = "(other)"
	None  = "(none)" // agents without the label
)

// Share is what the agents of one value of the label observed in a stage.
type Share struct {
	Agents     map[string]bool
	Operations int64
	Outcomes   metrics.Counts
	Latency    metrics.Dist // successes, µs, without those measured by a saturated generator
}

// AgentTally is what one agent observed in a stage.
type AgentTally struct {
	Units    int64
	Outcomes metrics.Counts
	Latency  Spread // as in Share
}

// groups knows who belongs where.
type groups struct {
	of     map[string]string // agent → value of the label
	values map[string]bool
	named  map[string]bool // agents with a tally of their own
}

// apart adds a result to the shares of its stage that are kept apart. It must not
// be held against an agent that its units met injected faults, so stages of the
// fault probe have none.
func (m *Merger) apart(st *Stage, r *wire.Result) {
	if r.Tally == nil || r.Agent == "" || st.Probe == "fault" {
		return
	}
	if m.By != "" {
		st.group(m.groupOf(r.Agent)).add(r)
	}
	st.agent(m.nameOf(r.Agent)).add(r)
}

// groupOf is the value of the label that an agent counts under.
func (m *Merger) groupOf(agent string) string {
	g := &m.groups
	if g.of == nil {
		g.of, g.values = map[string]string{}, map[string]bool{}
	}
	value, known := g.of[agent]
	if known {
		return value
	}
	var labels map[string]string
	if m.Labels != nil {
		labels = m.Labels(agent)
	}
	if value = cmp.Or(labels[m.By], None); !g.values[value] && len(g.values) >= MaxGroups {
		value = Other
	}
	g.values[value] = true
	if labels != nil {
		g.of[agent] = value
	}
	return value
}

// nameOf is the name that an agent's tally is kept under.
func (m *Merger) nameOf(agent string) string {
	g := &m.groups
	if g.named == nil {
		g.named = map[string]bool{}
	}
	if !g.named[agent] && len(g.named) >= MaxAgents {
		return Other
	}
	g.named[agent] = true
	return agent
}

func (s *Stage) group(value string) *Share {
	if s.Groups == nil {
		s.Groups = map[string]*Share{}
	}
	if s.Groups[value] == nil {
		s.Groups[value] = &Share{Agents: map[string]bool{}, Outcomes: metrics.Counts{}}
	}
	return s.Groups[value]
}

func (s *Stage) agent(name string) *AgentTally {
	if s.Agents == nil {
		s.Agents = map[string]*AgentTally{}
	}
	if s.Agents[name] == nil {
		s.Agents[name] = &AgentTally{Outcomes: metrics.Counts{}}
	}
	return s.Agents[name]
}

func (sh *Share) add(r *wire.Result) {
	sh.Agents[r.Agent] = true
	sh.Operations += worked(r)
	addOutcomes(sh.Outcomes, r.Tally.Outcomes)
	if !r.Generator.Saturated {
		sh.Latency.Merge(&r.Tally.Latency)
	}
}

func (a *AgentTally) add(r *wire.Result) {
	a.Units++
	addOutcomes(a.Outcomes, r.Tally.Outcomes)
	if !r.Generator.Saturated {
		r.Tally.Latency.Each(a.Latency.Record)
	}
}

func addOutcomes(to, from metrics.Counts) {
	for o, n := range from {
		to[o] += n
	}
}
