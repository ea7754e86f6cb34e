package measure

import (
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
	var all metrics.Tally
	all.Outcomes = metrics.Counts{}
	for _, st := range stages {
		all.Merge(st.Tally)
	}
	r := reliabilityOf(&all)
	var levels []Level
	for _, st := range stages {
		if s.level(st); st.Tally == nil {
			continue
		}
		if l, ok := levelOf(st, r.quota, in.Survey.Virtual); ok {
			levels = append(levels, l)
		}
	}
	if len(levels) == 0 {
		s.notRun("no level of the ramp observed the target", []string{"max_sustained_concurrency"})
		return
	}
	fit(levels)
	s.requests(r)
	s.ramp(in, levels)
	s.throughput(levels)
	s.levelCaveats(levels)
	if sustained(levels) == 0 && in.payloadRejected() && r.Successes() == 0 {
		s.probe.Applicable = false
		s.probe.Summary = "not measured: the target rejected the arguments of the scan"
		s.caveat(payloadRejected(in, []string{"max_sustained_concurrency", "saturation_point", "error_rate"}))
		return
	}
	s.quota(r, "error_rate", "max_sustained_concurrency", "saturation_point", "peak_throughput_rps")
	s.concurrencyFindings(levels)
}

// level notes how the stage of a level went.
func (s *sheet) level(st *merge.Stage) {
	s.probe.DurationS += st.Elapsed.Seconds()
	s.whole(st)
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
