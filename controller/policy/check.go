package policy

import (
	"math"
	"slices"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// Need is what it would take to settle a check whose evidence reaches to both
// sides of its limit: what a run that samples until it is decided asks for.
type Need struct {
	Key      string
	Status   result.Status // undecided or unproven
	Counted  string        // what N and Want count, e.g. "disrupted operations"
	N        int64         // measured
	Want     int64         // estimate of the total that settles it; 0 = no estimate
	Requests int64         // the same in requests of the spec; 0 = no estimate, or requests do not help
}

// judged is a check with what the later steps ask about it.
type judged struct {
	result.Check
	t    threshold
	need *Need
}

func (j judged) measured() bool { return j.Observed != nil }

func (j judged) missed() bool { return j.Status == result.Fail || j.Status == result.Undecided }

// court holds one evaluation: the rules, the evidence and where to find it.
type court struct {
	*Policy
	in     Input
	probes map[string]*result.Probe
}

// judge decides one threshold.
func (c *court) judge(t threshold) judged {
	limit, source := c.limit(t)
	j := judged{t: t, Check: result.Check{Key: t.key, Metric: t.probe + "." + t.metric, Direction: t.direction(),
		Limit: limit, LimitSource: source, Unit: t.unit, Status: result.NA}}
	m, raw, ok := c.metric(t.probe, t.metric)
	if !ok {
		j.Reason = c.unmeasured(t)
		return j
	}
	observed := raw * t.scale
	score := t.score(observed, limit)
	j.Observed, j.Score, j.N = &observed, &score, m.N
	iv, known := interval(t, m, raw)
	iv = stat.Interval{Lo: iv.Lo * t.scale, Hi: iv.Hi * t.scale}
	if c.Decision == ByPoint || t.exact(limit) {
		known = false
	}
	if known {
		j.Interval = shownInterval(iv)
	}
	j.Status = decide(t, limit, observed, m.N, iv, known)
	if c.Decision == ByPoint && j.Status == result.Unproven {
		j.Status = result.Pass // a point asks for no evidence
	}
	j.Reason = sentence(j, iv, known)
	if reached, ok := c.reachable(t, m); ok && j.Status == result.Unproven && reached.proves {
		j.Status = result.Pass
		j.Reason = reached.sentence(j)
	}
	if j.Status == result.Undecided || j.Status == result.Unproven {
		j.need = c.need(j, iv)
	}
	return j
}

func shownInterval(iv stat.Interval) *metrics.Interval {
	return &metrics.Interval{Lo: iv.Lo, Hi: iv.Hi}
}

// limit returns what a threshold is held against and where that came from.
//
// What recovers is bounded by the injector before it is by the target: with
// fault rate p and r retries nobody gets above 1-p^r on average (the floor), and
// on the faults that were really drawn nobody gets above the ideal. The lower
// of the two is the limit, so that the luck of the draw is not charged.
func (c *court) limit(t threshold) (limit float64, source string) {
	limit, source = c.Thresholds[t.key], "policy"
	if t.floor == "" {
		return limit, source
	}
	if _, floor, ok := c.metric(t.probe, t.floor); ok {
		limit, source = floor, t.floor
	}
	if _, ideal, ok := c.metric(t.probe, t.ideal); ok && c.Decision == ByInterval && ideal < limit {
		limit, source = ideal, t.ideal
	}
	return limit, source
}

// recoverable is how the target did on the operations an ideal caller would
// have got back.
type recoverable struct {
	k, n    int64
	iv      stat.Interval
	literal float64
	proves  bool
}

// reachable compares recovery with the ideal on the same schedule. A flawless
// target sits exactly on its derived limit, so its rate alone can never prove
// it; recovering so many of the recoverable operations that their share is
// proven to keep the policy's own limit does.
func (c *court) reachable(t threshold, m metrics.Measured) (recoverable, bool) {
	if t.ideal == "" || c.Decision == ByPoint {
		return recoverable{}, false
	}
	ideal, share, ok := c.metric(t.probe, t.ideal)
	rate, _ := m.Number()
	n, whole := successes(share, ideal.N)
	k, wholeToo := successes(rate, m.N)
	if !ok || !whole || !wholeToo || ideal.N != m.N || n == 0 {
		return recoverable{}, false
	}
	k = min(k, n) // a target that retries by itself can beat the ideal caller
	r := recoverable{k: k, n: n, iv: stat.ClopperPearson(k, n, confidence), literal: c.Thresholds[t.key]}
	r.proves = r.iv.Lo >= r.literal
	return r, true
}

func (c *court) need(j judged, iv stat.Interval) *Need {
	need := &Need{Key: j.Key, Status: j.Status, Counted: j.t.counted, N: j.N}
	switch reached, ok := c.reachable(j.t, metrics.Measured{Value: *j.Observed, N: j.N}); {
	case ok && j.Status == result.Unproven:
		share := float64(reached.k) / float64(reached.n)
		need.Want = scaled(wanted(j.t, reached.literal, share, reached.n, reached.iv), reached.n, j.N)
	case !j.t.exact(j.Limit):
		need.Want = wanted(j.t, j.Limit, *j.Observed, j.N, iv)
	}
	if j.t.scales {
		need.Requests = scaled(need.Want, j.N, c.in.Requests)
	}
	return need
}

// scaled converts want of what was counted n times into units of which there
// were total.
func scaled(want, n, total int64) int64 {
	if want == 0 || n == 0 || total == 0 {
		return 0
	}
	return roundUp(float64(want) / float64(n) * float64(total))
}

// metric returns a finite number a probe measured.
func (c *court) metric(probe, name string) (metrics.Measured, float64, bool) {
	p := c.probes[probe]
	if p == nil || !p.Applicable {
		return metrics.Measured{}, 0, false
	}
	m := p.Metrics[name]
	v, ok := m.Number()
	return m, v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// unmeasured says why a threshold could not be evaluated.
func (c *court) unmeasured(t threshold) string {
	p := c.probes[t.probe]
	if p == nil {
		return "not measured: " + notScoredNote[c.absent(t.probe)]
	}
	if why := c.withheld(p, t.metric); why != "" {
		return "not measured: " + why
	}
	switch {
	case p.Error != "":
		return "not measured: the " + t.probe + " probe ended early: " + oneLineOf(p.Error)
	case !p.Applicable:
		return "not measured: " + notScoredNote["not_applicable"]
	}
	return "not measured: the " + t.probe + " probe reported no " + t.label
}

// withheld finds the caveat that took a metric away, by its own list first.
func (c *court) withheld(p *result.Probe, metric string) string {
	own := p.Metrics[metric].Caveats
	for _, byID := range []bool{true, false} {
		for _, cv := range c.in.Caveats {
			if cv.Probe != p.Name || cv.Effect == metrics.Annotate || slices.Contains(own, cv.ID) != byID {
				continue
			}
			if byID || cv.Scope == metrics.ScopeProbe || slices.Contains(cv.Metrics, metric) {
				return withRemedy(cv)
			}
		}
	}
	return ""
}
