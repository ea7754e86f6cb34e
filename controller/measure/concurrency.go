package measure

import (
	"slices"
	"strings"

	"ordeal/controller/merge"
	"ordeal/metrics"
)

const (
	saturationRate = 0.05 // an error rate above it is saturation
	kneeMultiple   = 3.0  // of the p95 of the first level
)

// concurrency measures a ramp of callers.
func concurrency(in *Input, s *sheet) {
	stages := in.Summary.OfProbe("concurrency")
	if len(stages) == 0 {
		s.ran(nil, "max_sustained_concurrency")
		return
	}
	r := reliabilityOf(allCalls(stages))
	all := s.levels(stages, r.quota, in.Survey.Virtual)
	fit(all)
	levels := measuredOf(all)
	if len(levels) == 0 {
		s.noLevel(stages, all)
		return
	}
	s.requests(r)
	s.ramp(in, all, levels)
	s.throughput(levels)
	s.levelCaveats(levels)
	s.stageCaveats(stages)
	if sustained(levels) == 0 && in.payloadRejected() && r.Successes() == 0 {
		s.probe.Applicable = false
		s.probe.Summary = "not measured: the target rejected the arguments of the scan"
		s.caveat(payloadRejected(in, []string{"max_sustained_concurrency", "saturation_point", "error_rate"}))
		return
	}
	s.quota(r, "error_rate", "max_sustained_concurrency", "saturation_point", "peak_throughput_rps")
	s.concurrencyFindings(all, levels)
}

// allCalls adds up the calls of the levels that were carried out as planned.
func allCalls(stages []*merge.Stage) *metrics.Tally {
	all := metrics.NewTally()
	for _, st := range stages {
		if !st.Degraded() {
			all.Merge(st.Tally)
		}
	}
	return all
}

// levels measures the stages of a ramp, degraded ones for show.
func (s *sheet) levels(stages []*merge.Stage, quota, virtual bool) []Level {
	var all []Level
	for _, st := range stages {
		s.level(st)
		if st.Degraded() {
			all = append(all, degradedLevel(st, virtual))
		} else if l, ok := levelOf(st, quota, virtual); ok {
			all = append(all, l)
		}
	}
	return all
}

// measuredOf leaves out what is for show only.
func measuredOf(all []Level) []Level {
	var levels []Level
	for i := range all {
		if !all[i].degraded {
			levels = append(levels, all[i])
		}
	}
	return levels
}

// noLevel ends a ramp of which nothing says how the target takes its load.
func (s *sheet) noLevel(stages []*merge.Stage, all []Level) {
	const needed = "max_sustained_concurrency"
	if len(all) == 0 {
		s.notRun("no level of the ramp observed the target", []string{needed})
		return
	}
	s.fact("levels", all, int64(len(all)))
	i := slices.IndexFunc(stages, (*merge.Stage).Degraded)
	s.unmeasured("an agent was lost twice at "+strings.Join(degradedText(all), ", "),
		wide(degraded(stages[i], needed, "saturation_point", "peak_throughput_rps")))
}

// stageCaveats are about how the gangs of the measured levels went.
func (s *sheet) stageCaveats(stages []*merge.Stage) {
	var apart []string
	var withheld []*merge.Stage
	for _, st := range stages {
		if st.Degraded() {
			continue
		}
		if text, is := skewed(st); is {
			apart = append(apart, text)
		}
		if len(st.Withheld) > 0 {
			withheld = append(withheld, st)
		}
	}
	if len(apart) > 0 {
		s.caveat(startSkewed(apart, "levels", "peak_throughput_rps"))
	}
	if len(withheld) > 0 {
		s.caveat(generatorWithheld(withheld, "levels", "latency_knee_at", "peak_throughput_rps"))
	}
}

// saturates reports a level whose error rate is above the limit beyond doubt:
// the whole interval lies above it and so does the fit over all levels.
func (l *Level) saturates() bool {
	return l.Interval != nil && l.Interval.Lo > saturationRate && *l.Fitted > saturationRate
}

// clean reports an observed error rate within the limit.
func (l *Level) clean() bool { return l.ErrorRate != nil && *l.ErrorRate <= saturationRate }

// full reports at least one request for each caller: with fewer the level was
// never reached.
func (l *Level) full() bool { return l.Requests >= int64(l.Concurrency) }

// saturation is the first saturating level; 0 when there is none.
func saturation(levels []Level) int {
	for i := range levels {
		if levels[i].saturates() {
			return levels[i].Concurrency
		}
	}
	return 0
}

// sustained is the highest clean level below saturation at which there were as
// many requests as callers; 0 when there is none.
func sustained(levels []Level) int {
	held, limit := 0, saturation(levels)
	for i := range levels {
		if c := levels[i].Concurrency; levels[i].clean() && levels[i].full() && (limit == 0 || c < limit) {
			held = max(held, c)
		}
	}
	return held
}
