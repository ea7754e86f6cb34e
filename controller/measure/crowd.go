package measure

import (
	"maps"
	"math"
	"slices"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// crowd is the fleet while agents are taken out of it.
type crowd struct {
	stages []crowdStage
}

type crowdStage struct {
	agents map[string]*merge.AgentTally
	pool   bool
}

// of is what an agent observed in the stage, nil when that is too little to hold
// against it.
func (s *crowdStage) of(agent string) *merge.AgentTally {
	if a := s.agents[agent]; a != nil && (!s.pool || a.Units >= outlierUnits) {
		return a
	}
	return nil
}

// remove takes an agent out, put brings it back.
func (c *crowd) remove(s *suspect) {
	s.shares = s.shares[:0]
	for _, st := range c.stages {
		s.shares = append(s.shares, st.agents[s.agent])
		delete(st.agents, s.agent)
	}
}

func (c *crowd) put(s *suspect) {
	for i, st := range c.stages {
		if s.shares[i] != nil {
			st.agents[s.agent] = s.shares[i]
		}
	}
}

// tests compares every agent that has enough of its own with the rest, in the
// order of their ids.
func (c *crowd) tests() [][]comparison {
	names := map[string]bool{}
	for _, s := range c.stages {
		for name := range s.agents {
			names[name] = true
		}
	}
	delete(names, merge.Other)
	all := c.everybody()
	var out [][]comparison
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if of := all.compare(c, name); len(of) > 0 {
			out = append(out, of)
		}
	}
	return out
}

// everybody is the whole of the crowd, stage by stage.
type everybody struct {
	latency  []merge.Spread
	cuts     []map[string]int // measure → cell of its quantile
	failures []stratum        // restK of restN
}

func (c *crowd) everybody() *everybody {
	e := &everybody{}
	for _, s := range c.stages {
		var all merge.Spread
		var failed stratum
		for _, a := range s.agents {
			all.Merge(&a.Latency)
			n := a.Outcomes.Total()
			failed.restK, failed.restN = failed.restK+n-a.Outcomes[metrics.OK], failed.restN+n
		}
		cuts := map[string]int{}
		for name, q := range measureQuantiles {
			cuts[name] = cutOf(&all, q)
		}
		e.latency, e.cuts, e.failures = append(e.latency, all), append(e.cuts, cuts), append(e.failures, failed)
	}
	return e
}

// compare sets one agent against the others by every measure it has enough of.
func (e *everybody) compare(c *crowd, name string) []comparison {
	var out []comparison
	for _, measure := range measureNames {
		var strata []stratum
		for i := range c.stages {
			if a := c.stages[i].of(name); a != nil {
				if s := e.stratum(i, a, measure); s.n > 0 && s.restN > 0 {
					strata = append(strata, s)
				}
			}
		}
		if n, rest := worth(strata); n < outlierSample || rest < outlierSample {
			continue
		}
		t := comparison{agent: name, OutlierEvidence: result.OutlierEvidence{Metric: measure, P: 1}}
		if !unremarkable(strata) {
			t.P = differs(strata)
		}
		switch {
		case t.P > outlierLevel: // no outlier, whatever the values
		case measure == "error_rate":
			t.Own, t.Rest = failureShares(strata)
		default:
			t.Own, t.Rest = e.percentiles(c, name, measureQuantiles[measure])
		}
		out = append(out, t)
	}
	return out
}

// stratum counts what one stage says of an agent by one measure: failures, or times
// above the quantile of everybody.
func (e *everybody) stratum(stage int, a *merge.AgentTally, measure string) stratum {
	if measure == "error_rate" {
		n, all := a.Outcomes.Total(), e.failures[stage]
		k := n - a.Outcomes[metrics.OK]
		return stratum{k, n, all.restK - k, all.restN - n}
	}
	cut := e.cuts[stage][measure]
	k, all := above(&a.Latency, cut), above(&e.latency[stage], cut)
	return stratum{k, a.Latency.N(), all - k, e.latency[stage].N() - a.Latency.N()}
}

// cutOf is the cell whose upper end splits values closest to q: of many equal ones
// either all are above or none is.
func cutOf(all *merge.Spread, q float64) int {
	cell := cellAt(all.Cells, float64(stat.NearestRank(all.N(), q)))
	want := (1 - q) * float64(all.N())
	beyond, with := float64(above(all, cell)), float64(above(all, cell-1))
	if math.Abs(with-want) < math.Abs(beyond-want) {
		return cell - 1
	}
	return cell
}

// above counts the values in cells beyond a cut.
func above(s *merge.Spread, cut int) int64 {
	var k int64
	for cell, n := range s.Cells {
		if cell > cut {
			k += n
		}
	}
	return k
}
