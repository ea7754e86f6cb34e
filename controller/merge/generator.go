package merge

import (
	"cmp"
	"slices"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// An agent that was itself the limit (no CPU left, woken late) measured its own
// queue along with the target. Its times must not be mixed with those of agents
// that had room, so they are set aside until it is known who had:
//
//	no result was saturated        all times count
//	some agents, but not all       the times of saturated results are withheld
//	every agent, now and then      all times count, and the stage as a whole is
//	                               marked: whoever measures it withholds them
//
// Outcomes are what they are, whoever was in a hurry: they always count. So does
// the window, which tells how much load there was.

// times keeps the distributions of a stage apart. It exists once a result was
// saturated; before that they are in the stage's tally.
type times struct {
	clean, aside metrics.Tally
	settled      bool
}

// addGenerator keeps the worst of the agents.
func (s *Stage) addGenerator(g *wire.Generator) {
	into := &s.Generator
	into.CPUMilli = max(into.CPUMilli, g.CPUMilli)
	into.GCPauseUS = max(into.GCPauseUS, g.GCPauseUS)
	into.Short = max(into.Short, g.Short)
	into.Lag.Merge(&g.Lag)
}

// addTally adds what a result measured. Agents that measured nothing have no
// say in whether the others stand alone.
func (s *Stage) addTally(r *wire.Result) {
	s.noteGenerator(r)
	if r.Tally == nil {
		return
	}
	if s.Tally == nil {
		s.Tally = metrics.NewTally()
	}
	if s.times == nil && !r.Generator.Saturated {
		s.Tally.Merge(r.Tally)
		return
	}
	if s.times == nil {
		s.times = &times{}
		moveTimes(&s.times.clean, s.Tally)
	}
	counted, measured := *r.Tally, metrics.Tally{}
	moveTimes(&measured, &counted)
	s.Tally.Merge(&counted)
	if r.Generator.Saturated {
		s.times.aside.Merge(&measured)
	} else {
		s.times.clean.Merge(&measured)
	}
	s.times.settled = false
}

// noteGenerator keeps per agent whether it was ever saturated in this stage.
func (s *Stage) noteGenerator(r *wire.Result) {
	if r.Tally == nil && !r.Generator.Saturated {
		return
	}
	if s.generators == nil {
		s.generators = map[string]*Withheld{}
	}
	w := s.generators[r.Agent]
	if w == nil {
		w = &Withheld{Agent: r.Agent}
		s.generators[r.Agent] = w
	}
	if !r.Generator.Saturated {
		return
	}
	if s.times != nil {
		s.times.settled = false
	}
	if !w.saturated || r.Generator.Reason < w.Reason {
		w.saturated, w.Reason = true, r.Generator.Reason
	}
	if r.Tally != nil {
		w.Requests += r.Tally.Measured()
	}
}

// settle decides whose times count, as far as results have come in.
func (s *Stage) settle() {
	s.Withheld = nil
	s.Generator.Saturated, s.Generator.Reason = false, ""
	room := false
	for _, w := range s.generators {
		if w.saturated {
			s.Withheld = append(s.Withheld, Withheld{Agent: w.Agent, Reason: w.Reason, Requests: w.Requests})
		}
		room = room || !w.saturated
	}
	slices.SortFunc(s.Withheld, func(a, b Withheld) int { return cmp.Compare(a.Agent, b.Agent) })
	if len(s.Withheld) > 0 && !room {
		s.Generator.Saturated = true
		s.Generator.Reason = slices.MinFunc(s.Withheld, func(a, b Withheld) int { return cmp.Compare(a.Reason, b.Reason) }).Reason
		s.Withheld = nil
	}
	s.settleTimes()
}

// settleTimes fills the distributions of the tally anew: what was set aside may
// have to leave it again once an agent with room reports.
func (s *Stage) settleTimes() {
	t := s.times
	if t == nil || t.settled {
		return
	}
	fresh := metrics.Tally{}
	fresh.Merge(&t.clean)
	if s.Generator.Saturated {
		fresh.Merge(&t.aside)
	}
	for i, d := range timesOf(s.Tally) {
		*d = *timesOf(&fresh)[i]
	}
	t.settled = true
}

// moveTimes takes the distributions of times from a tally.
func moveTimes(to, from *metrics.Tally) {
	for i, d := range timesOf(from) {
		*timesOf(to)[i], *d = *d, metrics.Dist{}
	}
}

// timesOf are the distributions an agent reads off its own clock, and the one the
// server reports beside them: they are compared with each other.
func timesOf(t *metrics.Tally) [9]*metrics.Dist {
	return [9]*metrics.Dist{&t.Latency, &t.Service, &t.Failed, &t.TimedOut, &t.Late, &t.TTFT, &t.Gap, &t.ServerTime, &t.ClientTime}
}
