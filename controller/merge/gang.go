package merge

import (
	"slices"
	"time"

	"ordeal/agent/wire"
)

// Gang is what became of a stage that several agents carry out together.
type Gang struct {
	Name     string // of the attempt that counts
	Attempts int
	// Planned and Achieved are the callers that were to work and those that did;
	// with Arrivals they are thousandths of the arrivals, planned and sent.
	Planned, Achieved int
	Arrivals          bool
	Agents            []GangMember
	Lost              []string // members lost, in any attempt
	// Degraded: even the repetition lost a member, and the stage went on with
	// less load than planned.
	Degraded bool
	// Repeated are operations of an abandoned attempt: the target may have seen
	// them, and sees others in their place.
	Repeated int64
}

// GangMember is one agent of a gang.
type GangMember struct {
	ID      string
	Workers int
	Offset  time.Duration // its clock minus the controller's
	Bound   time.Duration // Offset is wrong by at most this; 0 = never measured
	Start   *wire.Start   // on its own clock; nil for one that never started
}

// Gang records what became of the gang of a stage: the last one opened by that
// name. One that is unknown is left out.
func (m *Merger) Gang(stage string, g Gang) {
	m.summary.Reissued += g.Repeated
	for _, id := range g.Lost {
		m.Lost(id)
	}
	for _, a := range g.Agents {
		if a.Bound > 0 {
			s := m.agent(a.ID)
			s.Offset, s.Bound = a.Offset, a.Bound
		}
	}
	for _, st := range slices.Backward(m.summary.Stages) {
		if st.Name == stage {
			st.Gang = &g
			return
		}
	}
}

// Skew is how far apart the members began, on the controller's clock, and by how
// much that may be wrong: the two largest bounds together, since the first and
// the last member may each be off by their own. ok is false with less than two
// members of which both start and clock are known.
func (g *Gang) Skew() (skew, bound time.Duration, ok bool) {
	var starts []int64
	var bounds []time.Duration
	for _, a := range g.Agents {
		if a.Start != nil && a.Bound > 0 {
			starts = append(starts, a.Start.At-int64(a.Offset))
			bounds = append(bounds, a.Bound)
		}
	}
	if len(starts) < 2 {
		return 0, 0, false
	}
	slices.Sort(bounds)
	n := len(bounds)
	return time.Duration(slices.Max(starts) - slices.Min(starts)), bounds[n-1] + bounds[n-2], true
}

// Late is by how much the latest member missed the start it was given, below 0
// when all were early; ok is false when no start is known.
func (g *Gang) Late() (late time.Duration, ok bool) {
	for _, a := range g.Agents {
		if a.Start == nil {
			continue
		}
		if d := time.Duration(a.Start.At - a.Start.Due); !ok || d > late {
			late, ok = d, true
		}
	}
	return late, ok
}
