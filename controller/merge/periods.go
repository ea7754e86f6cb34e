package merge

import (
	"cmp"
	"slices"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Course is what happened over time, and to whom: the periods of a load, its
// steps and its sessions.
type Course struct {
	Period   time.Duration // length of each of Periods
	Periods  []metrics.Period
	Steps    []wire.StepTally // by scenario and step
	Sessions wire.Sessions
}

// Course merges what the results of a stage say. The times of agents that were
// the limit themselves are left out while others had room, as in Tally.
func (s *Stage) Course() *Course {
	var c Course
	c.merge(&s.clean, true)
	c.merge(&s.aside, s.Generator.Saturated)
	return &c
}

func (c *Course) merge(o *Course, timed bool) {
	r := wire.Result{Sessions: o.Sessions, Periods: o.Periods, Period: o.Period, Steps: o.Steps}
	c.add(&r, timed)
}

// addCourse keeps what was measured beside a saturated generator apart until it is
// known whether anyone had room.
func (s *Stage) addCourse(r *wire.Result) {
	if r.Generator.Saturated {
		s.aside.add(r, true)
		return
	}
	s.clean.add(r, true)
}

// add merges what a result says. The times of a generator that was its own limit
// stay out where timed is false; its outcomes do not.
func (c *Course) add(r *wire.Result, timed bool) {
	c.Sessions.Opened += r.Sessions.Opened
	c.Sessions.Reopened += r.Sessions.Reopened
	c.addPeriods(r.Periods, r.Period, timed)
	for i := range r.Steps {
		c.addStep(&r.Steps[i], timed)
	}
}

// addPeriods lengthens the shorter ones of two results first: lengths are one
// length, doubled.
func (c *Course) addPeriods(periods []metrics.Period, length time.Duration, timed bool) {
	if len(periods) == 0 || length <= 0 {
		return
	}
	if len(c.Periods) == 0 {
		c.Period = length
	}
	for c.Period < length {
		c.Periods, c.Period = doubled(c.Periods), 2*c.Period
	}
	for length < c.Period {
		periods, length = doubled(periods), 2*length
	}
	for len(c.Periods) < len(periods) {
		c.Periods = append(c.Periods, metrics.Period{})
	}
	for i := range periods {
		p := periods[i]
		if !timed {
			p.Latency, p.TTFT = metrics.Dist{}, metrics.Dist{}
		}
		c.Periods[i].Merge(&p) // which may share its distributions with a result: they are only read
	}
}

// doubled are the same periods, each two of them as one.
func doubled(periods []metrics.Period) []metrics.Period {
	out := make([]metrics.Period, (len(periods)+1)/2)
	for i := range periods {
		p := &out[i/2]
		inFlight, callers := max(p.InFlight, periods[i].InFlight), max(p.Callers, periods[i].Callers)
		p.Merge(&periods[i])
		p.InFlight, p.Callers = inFlight, callers // of the same agents, at different times
	}
	return out
}

func (c *Course) addStep(s *wire.StepTally, timed bool) {
	i, known := slices.BinarySearchFunc(c.Steps, s, func(have wire.StepTally, s *wire.StepTally) int {
		return cmp.Or(cmp.Compare(have.Scenario, s.Scenario), cmp.Compare(have.Step, s.Step))
	})
	if !known {
		c.Steps = slices.Insert(c.Steps, i, wire.StepTally{Scenario: s.Scenario, Step: s.Step, Outcomes: metrics.Counts{}})
	}
	into := &c.Steps[i]
	for o, n := range s.Outcomes {
		into.Outcomes[o] += n
	}
	if timed {
		into.Latency.Merge(&s.Latency)
	}
}
