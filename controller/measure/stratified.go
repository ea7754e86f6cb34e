package measure

import "math"

// stratum is one stage's comparison of an agent with the rest: how many of its
// requests were so, and how many of the others'.
type stratum struct{ k, n, restK, restN int64 }

func (s stratum) total() (k, n int64) { return s.k + s.restK, s.n + s.restN }

// moments of the agent's count in one stratum if it were like the rest: those of
// the hypergeometric distribution, n drawn without replacement from all requests
// of the stage.
func (s stratum) moments() (mean, variance float64) {
	allK, allN := s.total()
	n, k, rest, all := float64(s.n), float64(allK), float64(s.restN), float64(allN)
	mean = n * k / all
	if allN > 1 {
		variance = n * rest * k * (all - k) / (all * all * (all - 1))
	}
	return mean, variance
}

// maxExact is the variance up to which a p-value is summed exactly: beyond it the
// count has a standard deviation of 10 and the normal curve will do.
const maxExact = 100

// differs is the two-sided p-value of the hypothesis that in each stage the agent's
// requests are a draw from those of everybody: Fisher's exact test (Fisher 1935),
// over several stages the exact conditional test of Mantel and Haenszel (1959), as
// in Agresti, Categorical Data Analysis, 6.3. The total of the agent's counts is a
// sum of independent hypergeometric ones; its smaller tail is doubled. Beyond
// maxExact it is their chi-squared with continuity correction.
func differs(strata []stratum) float64 {
	mean, variance, count := 0.0, 0.0, int64(0)
	for _, s := range strata {
		m, v := s.moments()
		mean, variance, count = mean+m, variance+v, count+s.k
	}
	switch {
	case variance == 0:
		return 1
	case variance > maxExact:
		z := max(0, math.Abs(float64(count)-mean)-0.5) / math.Sqrt(variance)
		return max(leastChance, math.Erfc(z/math.Sqrt2))
	}
	sum := chances{p: []float64{1}}
	for _, s := range strata {
		sum = sum.plus(hypergeometric(s))
	}
	below, above := sum.tails(count)
	return min(1, max(leastChance, 2*min(below, above)))
}

// leastChance is where a sum of chances has no accuracy left: a p-value below it is
// not told from it.
const leastChance = 1e-16

// unremarkable spares the sum of chances where the agent's count lies so close to
// what is expected that no level of an outlier is met: within 1.5 standard
// deviations the chance is above 2.5 %, the largest level there is.
func unremarkable(strata []stratum) bool {
	off, variance := 0.0, 0.0
	for _, s := range strata {
		m, v := s.moments()
		off, variance = off+float64(s.k)-m, variance+v
	}
	return off*off < 1.5*1.5*variance
}

// chances are the probabilities of the counts first, first+1, ...
type chances struct {
	first int64
	p     []float64
}

// negligible ends a distribution on either side: what lies beyond it is below
// leastChance.
const negligible = 1e-18

// hypergeometric is the distribution of the agent's count in one stratum, from its
// mode outwards by the ratio of neighbours.
func hypergeometric(s stratum) chances {
	allK, allN := s.total()
	lo, hi := max(0, s.n-(allN-allK)), min(s.n, allK)
	// up is p(x+1)/p(x).
	up := func(x int64) float64 {
		return float64(allK-x) * float64(s.n-x) / (float64(x+1) * float64(allN-allK-s.n+x+1))
	}
	mode := int64(float64(s.n+1) * float64(allK+1) / float64(allN+2))
	mode = min(max(mode, lo), hi)
	var left []float64
	for x, p := mode, 1.0; x > lo; x-- {
		if p /= up(x - 1); p < negligible {
			break
		}
		left = append(left, p)
	}
	out := chances{first: mode - int64(len(left))}
	for i := range left {
		out.p = append(out.p, left[len(left)-1-i])
	}
	out.p = append(out.p, 1)
	for x, p := mode, 1.0; x < hi; x++ {
		if p *= up(x); p < negligible {
			break
		}
		out.p = append(out.p, p)
	}
	sum := 0.0
	for _, p := range out.p {
		sum += p
	}
	for i := range out.p {
		out.p[i] /= sum
	}
	return out
}

// plus is the distribution of the sum of two independent counts.
func (c chances) plus(o chances) chances {
	out := chances{first: c.first + o.first, p: make([]float64, len(c.p)+len(o.p)-1)}
	for i, p := range c.p {
		for j, q := range o.p {
			out.p[i+j] += p * q
		}
	}
	return out
}

// tails are the chances of at most and of at least a count.
func (c chances) tails(count int64) (below, above float64) {
	for i, p := range c.p {
		x := c.first + int64(i)
		if x <= count {
			below += p
		}
		if x >= count {
			above += p
		}
	}
	return below, above
}
