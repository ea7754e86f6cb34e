package measure

import (
	"maps"
	"math"
	"slices"

	"ordeal/controller/merge"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// worth is how many requests an agent has, and how many independent ones those of
// the rest are worth once they are weighted to the agent's mix of stages:
// (Σw)²/Σw² (Kish, Survey Sampling, 1965).
func worth(strata []stratum) (n, rest int64) {
	squares := 0.0
	for _, s := range strata {
		n += s.n
		squares += float64(s.n) * float64(s.n) / float64(s.restN)
	}
	if n == 0 {
		return 0, 0
	}
	return n, int64(math.Round(float64(n) * float64(n) / squares))
}

// failureShares are the error rates of the agent and of the rest, the latter over
// the agent's mix of stages (indirect standardization: what the agent would have
// seen at the rates of the rest).
func failureShares(strata []stratum) (own, rest metrics.Measured) {
	n, others := worth(strata)
	k, share := int64(0), 0.0
	for _, s := range strata {
		k += s.k
		share += float64(s.n) * float64(s.restK) / float64(s.restN) / float64(n)
	}
	own = metrics.Measured{Value: float64(k) / float64(n), Unit: "rate", N: n, Interval: closed(stat.Wilson(k, n, confidence))}
	iv := stat.Wilson(int64(math.Round(share*float64(others))), others, confidence)
	rest = metrics.Measured{Value: share, Unit: "rate", N: others, Interval: closed(stat.Interval{Lo: min(iv.Lo, share), Hi: max(iv.Hi, share)})}
	return own, rest
}

// percentiles are those of the agent and of the rest, the latter over the agent's
// mix of stages as in failureShares. Both are read from the cells of a Spread.
func (e *everybody) percentiles(c *crowd, name string, q float64) (own, rest metrics.Measured) {
	mine, theirs := map[int]float64{}, map[int]float64{}
	var strata []stratum
	for i := range c.stages {
		a := c.stages[i].of(name)
		if a == nil || a.Latency.N() == 0 || e.latency[i].N() == a.Latency.N() {
			continue
		}
		for cell, k := range a.Latency.Cells {
			mine[cell] += float64(k)
		}
		s := stratum{n: a.Latency.N(), restN: e.latency[i].N() - a.Latency.N()}
		strata = append(strata, s)
		weight := float64(s.n) / float64(s.restN)
		for cell, k := range e.latency[i].Cells {
			theirs[cell] += weight * float64(k)
		}
		for cell, k := range a.Latency.Cells {
			theirs[cell] -= weight * float64(k)
		}
	}
	n, others := worth(strata)
	return weighted(mine, q, n), weighted(theirs, q, others)
}

// weighted is a quantile of weighted cells that are worth n requests, with its
// order-statistic interval.
func weighted(cells map[int]float64, q float64, n int64) metrics.Measured {
	order := slices.Sorted(maps.Keys(cells))
	total := 0.0
	for _, cell := range order {
		total += cells[cell]
	}
	at := func(rank int64) float64 {
		cell := cellAt(func(yield func(int, float64) bool) {
			for _, cell := range order {
				if !yield(cell, cells[cell]) {
					return
				}
			}
		}, total*float64(rank)/float64(n))
		return float64(merge.CellHigh(cell)) / 1e6
	}
	iv := stat.Interval{Lo: 0, Hi: math.Inf(1)}
	lo, hi, _ := stat.QuantileRanks(n, q, confidence)
	if lo > 0 {
		iv.Lo = at(lo)
	}
	if hi > 0 {
		iv.Hi = at(hi)
	}
	return metrics.Measured{Value: at(stat.NearestRank(n, q)), Unit: "s", N: n, Interval: closed(iv)}
}

// slack lets a sum of weights meet in floating point what it equals in algebra.
const slack = 1e-9

// cellAt is the first cell up to which at least as much has been counted.
func cellAt[N int64 | float64](cells func(func(int, N) bool), want float64) int {
	seen, last := 0.0, 0
	for cell, n := range cells {
		if n > 0 {
			last = cell
		}
		if seen += float64(n); seen >= want*(1-slack) {
			break
		}
	}
	return last
}
