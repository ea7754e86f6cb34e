package measure

import (
	"math"
	"slices"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// confidence of every interval.
const confidence = 0.95

// sheet is one probe's result while it is filled in.
type sheet struct {
	probe   result.Probe
	caveats []metrics.Caveat
	longest int64 // µs, above which there is no success; 0 = no limit
}

func newSheet(probe string) *sheet {
	return &sheet{probe: result.Probe{
		Name: probe, Phase: spec.PhaseOf(probe), Applicable: true,
		Metrics: map[string]metrics.Measured{}, Findings: []result.Finding{},
	}}
}

// put records a number; a float that is not finite is missing.
func (s *sheet) put(name, unit string, v any, n int64) {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		v = nil
	}
	s.probe.Metrics[name] = metrics.Measured{Value: v, Unit: unit, N: n}
}

// missing records that there is no number.
func (s *sheet) missing(unit string, n int64, names ...string) {
	for _, name := range names {
		s.put(name, unit, nil, n)
	}
}

// count records how many of n.
func (s *sheet) count(name string, v, n int64) { s.put(name, "count", v, n) }

// fact records a text, truth value, list or map.
func (s *sheet) fact(name string, v any, n int64) { s.put(name, "", v, n) }

// seconds records microseconds as seconds; missing when n is 0.
func (s *sheet) seconds(name string, us float64, n int64) {
	if n == 0 {
		s.missing("s", 0, name)
		return
	}
	s.put(name, "s", us/1e6, n)
}

// rate records the proportion k/n with its Wilson interval; missing when n is 0.
func (s *sheet) rate(name string, k, n int64) {
	if n == 0 {
		s.missing("rate", 0, name)
		return
	}
	s.put(name, "rate", float64(k)/float64(n), n)
	s.bound(name, stat.Wilson(k, n, confidence))
}

// bound adds an interval unless one of its ends is open.
func (s *sheet) bound(name string, iv stat.Interval) {
	m := s.probe.Metrics[name]
	m.Interval = closed(iv)
	s.probe.Metrics[name] = m
}

// decided is the interval a policy decides a rate of k/n on: the exact one, no
// narrower than the one shown. Texts quote it, so that a page has one interval.
func decided(k, n int64) stat.Interval {
	exact, shown := stat.ClopperPearson(k, n, confidence), stat.Wilson(k, n, confidence)
	return stat.Interval{Lo: min(exact.Lo, shown.Lo), Hi: max(exact.Hi, shown.Hi)}
}

func closed(iv stat.Interval) *metrics.Interval {
	if math.IsNaN(iv.Lo) || math.IsNaN(iv.Hi) {
		return nil
	}
	return &metrics.Interval{Lo: iv.Lo, Hi: iv.Hi}
}

// percentile records a nearest-rank percentile of times in microseconds with
// its order-statistic interval. Where the sample carries no upper rank bounded is
// false, and the interval ends at the longest success there can be, or has no
// end where nothing limits it; without a lower rank it begins at 0.
func (s *sheet) percentile(name string, d *metrics.Dist, q float64) (bounded bool) {
	n := d.N()
	s.seconds(name, float64(d.Rank(stat.NearestRank(n, q))), n)
	if n == 0 {
		return true
	}
	lo, hi, _ := stat.QuantileRanks(n, q, confidence)
	iv := stat.Interval{Lo: 0, Hi: math.Inf(1)}
	if s.longest > 0 {
		iv.Hi = float64(max(s.longest, d.Max())) / 1e6
	}
	if lo > 0 {
		iv.Lo = float64(d.Rank(lo)) / 1e6
	}
	if hi > 0 {
		iv.Hi = float64(d.Rank(hi)) / 1e6
	}
	s.bound(name, iv)
	return hi > 0
}

// mean records the mean of a count-like distribution with Student's interval.
func (s *sheet) mean(name, unit string, d *metrics.Dist) {
	s.put(name, unit, d.Mean(), d.N())
	if d.N() > 1 {
		s.bound(name, stat.MeanInterval(d.N(), d.Mean(), d.Stdev(), confidence))
	}
}

// number is a metric that is there and that no caveat withholds.
func (s *sheet) number(name string) (float64, bool) {
	for _, c := range s.caveats {
		if c.Effect != metrics.Annotate && slices.Contains(c.Metrics, name) {
			return 0, false
		}
	}
	return s.probe.Metrics[name].Number()
}

func (s *sheet) has(name string) bool { return s.probe.Metrics[name].Value != nil }

// caveat takes a caveat as this probe's own.
func (s *sheet) caveat(c metrics.Caveat) {
	c.Probe = s.probe.Name
	c.ID = s.probe.Name + "." + c.ID
	s.caveats = append(s.caveats, c)
}

func (s *sheet) finding(id string, sev result.Severity, message, evidence string) {
	s.probe.Findings = append(s.probe.Findings,
		result.Finding{ID: s.probe.Name + "." + id, Severity: sev, Message: message, Evidence: evidence})
}

// ran notes how a stage went and reports whether it observed anything of the
// target. What it did not observe is withheld under the probe's own names.
func (s *sheet) ran(st *merge.Stage, needed ...string) bool {
	if st == nil {
		s.notRun("no stage of this probe was run", needed)
		return false
	}
	s.level(st)
	if st.Degraded() {
		s.unmeasured("an agent was lost twice in stage "+stageName(st.Name)+": "+tookPart(st.Gang), wide(degraded(st, needed...)))
		return false
	}
	observed := st.Tally != nil && st.Tally.Measured() > 0 ||
		st.Behavior != nil && st.Behavior.Operations > 0 || st.Contract != nil
	if !observed {
		reason := "stage " + st.Name + " observed no answer and no failure of the target"
		if len(st.Failures) > 0 {
			reason = st.Failures[0].Message
		}
		s.notRun(reason, needed)
	}
	return observed
}

// level notes how a stage went: how long it took, and that units are missing or
// were cut short. What a degraded one lacks is said by its own caveat.
func (s *sheet) level(st *merge.Stage) {
	s.probe.DurationS += st.Elapsed.Seconds()
	if (st.Done < st.Planned || st.Partial) && !st.Degraded() {
		s.caveat(partial(st))
	}
}

// trajectories returns what a recovery stage observed, nil when that is nothing.
func (s *sheet) trajectories(st *merge.Stage, needed ...string) *metrics.Behavior {
	if st != nil && !st.Degraded() && (st.Behavior == nil || st.Behavior.Operations == 0) {
		st = &merge.Stage{Name: st.Name, Planned: st.Planned, Done: st.Done, Partial: st.Partial, Elapsed: st.Elapsed, Failures: st.Failures, Released: st.Released, Gang: st.Gang}
	}
	if !s.ran(st, needed...) {
		return nil
	}
	return st.Behavior
}

func (s *sheet) notRun(reason string, needed []string) {
	s.unmeasured(reason, didNotRun(reason, needed))
}

// unmeasured ends a probe that has nothing to show; why says so of each metric.
func (s *sheet) unmeasured(reason string, why metrics.Caveat) {
	s.probe.Error = reason
	s.probe.Summary = "not measured: " + reason
	s.caveat(why)
}

// finish applies the caveats to the metrics they name.
func (s *sheet) finish() result.Probe {
	for _, c := range s.caveats {
		for _, name := range c.Metrics {
			m := s.probe.Metrics[name]
			if c.Effect != metrics.Annotate {
				m.Value, m.Interval = nil, nil
			}
			if !slices.Contains(m.Caveats, c.ID) {
				m.Caveats = append(m.Caveats, c.ID)
			}
			s.probe.Metrics[name] = m
		}
	}
	return s.probe
}
