package measure

import (
	"cmp"
	"maps"

	"ordeal/controller/merge"
	"ordeal/controller/result"
)

// An agent stands out when its error rate, its median or its 95th percentile is
// not that of the rest of the fleet. Three things must come together:
//
//   - The difference is no accident: an exact test over the stages both worked on
//     (differs in stratified.go), at 5 % for the whole fleet by Holm's (1979)
//     step-down over agents and measures. For a percentile the test counts the
//     requests above that percentile of everybody, stage by stage: Mood's (1950)
//     median test, which holds for any quantile and any distribution, ties
//     included.
//   - It matters: a ratio above 1.5, and a percentile outside the 95 % interval of
//     the rest's.
//   - There is enough of it: 50 requests of the agent and of the rest, and in a
//     stage of a pool three units of the agent, since one unit meets one moment of
//     the target. A gang meets every moment together.
//
// Stages are strata: an agent that happened to do more of a busy stage is not
// slow. The test takes requests as independent draws. They are not quite, and
// the ratio keeps the small differences that come of it from being named.
//
// An agent that is named leaves the fleet, and what is left is compared anew, so
// that one bad agent does not make the others look good. That goes on for at
// most a minority: there is no rest to differ from when half of the fleet does.
// What is shown of each is its difference from those that nobody named.
const (
	outlierLevel  = 0.05 // chance to name anybody in a fleet of equals
	outlierRatio  = 1.5
	outlierSample = 50
	outlierUnits  = 3
	maxOutliers   = 10 // agents; the labels tell what more of them have in common
)

// measureNames are the measures an agent is compared by, the median before the tail.
var measureNames = []string{"p50_s", "p95_s", "error_rate"}

var measureQuantiles = map[string]float64{"p50_s": 0.5, "p95_s": 0.95}

// outliers names the agents that stand out, and says how many were compared.
func outliers(stages []*merge.Stage, who func(string) (string, map[string]string)) (compared int, found []result.Outlier) {
	found = []result.Outlier{}
	c := &crowd{}
	for _, st := range stages {
		if len(st.Agents) > 1 && !st.Degraded() {
			c.stages = append(c.stages, crowdStage{maps.Clone(st.Agents), st.Gang == nil})
		}
	}
	compared = len(c.tests())
	most := min(maxOutliers, max(1, (compared-1)/2))
	var named []*suspect
	for len(named) < most && compared > 1 {
		s := c.standing()
		if s == nil {
			break
		}
		named = append(named, s)
		c.remove(s)
	}
	for _, s := range named {
		_, labels := who(s.agent)
		for _, t := range c.differences(s) {
			found = append(found, result.Outlier{Agent: t.agent, Labels: labels, What: t.what(), Evidence: t.OutlierEvidence})
		}
	}
	return compared, found
}

// suspect is an agent that is named, at a level, with what it observed by stage.
type suspect struct {
	agent  string
	level  float64
	shares []*merge.AgentTally // as the stages of the crowd; nil where it had none
}

// comparison is one agent set against the rest by one measure.
type comparison struct {
	agent string
	result.OutlierEvidence
}

func (t comparison) ratio() float64 {
	own, _ := t.Own.Number()
	rest, _ := t.Rest.Number()
	return own / rest // infinite against none
}

// matters reports a difference large enough to act on.
func (t comparison) matters() bool {
	r := t.ratio()
	if !(r > outlierRatio || r < 1/outlierRatio) {
		return false
	}
	own, _ := t.Own.Number()
	return t.Metric == "error_rate" || own < t.Rest.Interval.Lo || own > t.Rest.Interval.Hi
}

func (t comparison) what() string {
	words := map[string][2]string{"p50_s": {result.Slower, result.Faster}, "p95_s": {result.SlowerTail, result.FasterTail},
		"error_rate": {result.MoreErrors, result.FewerErrors}}[t.Metric]
	if t.ratio() > 1 {
		return words[0]
	}
	return words[1]
}

// standing is the agent that stands out most, nil when nobody does: the one with
// the least likely difference, and of equals, such as two agents that differ
// from each other, the worse.
func (c *crowd) standing() *suspect {
	tests := c.tests()
	hypotheses := 0
	for _, of := range tests {
		hypotheses += len(of)
	}
	level := outlierLevel / float64(hypotheses)
	var best *comparison
	for _, of := range tests {
		for _, t := range of {
			if t.P <= level && t.matters() && (best == nil || cmp.Or(cmp.Compare(t.P, best.P), cmp.Compare(best.ratio(), t.ratio())) < 0) {
				best = &t
			}
		}
	}
	if best == nil {
		return nil
	}
	return &suspect{agent: best.agent, level: level}
}

// differences are those of a suspect from all who were not named, at the level it
// was named at. A percentile that moved along with the median is none of its own.
func (c *crowd) differences(s *suspect) []comparison {
	c.put(s)
	defer c.remove(s)
	var out []comparison
	median := false
	for _, t := range c.everybody().compare(c, s.agent) {
		t.Level = s.level
		if t.P > s.level || !t.matters() || t.Metric == "p95_s" && median {
			continue
		}
		median = median || t.Metric == "p50_s"
		out = append(out, t)
	}
	return out
}
