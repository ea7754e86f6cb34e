package measure

import (
	"fmt"
	"slices"

	"ordeal/controller/plan"
	"ordeal/controller/result"
)

// ramp records where the target saturates. Absent points are nil: they lie
// beyond what was tested.
func (s *sheet) ramp(in *Input, levels []Level) {
	n := int64(len(levels))
	planned := plan.Levels(in.Spec.Concurrency)
	tested := make([]int, n)
	worst := 0.0
	for i, l := range levels {
		tested[i] = l.Concurrency
		worst = max(worst, l.ErrorRateRaw)
	}
	s.fact("levels", levels, n)
	s.fact("levels_tested", tested, n)
	s.fact("levels_planned", planned, int64(len(planned)))
	s.put("saturation_threshold", "rate", saturationRate, n)
	s.put("max_error_rate", "rate", worst, n)
	s.put("max_sustained_concurrency", "count", int64(sustained(levels)), n)
	s.point("saturation_point", saturation(levels), n)
	s.point("point_saturation", first(levels, func(l *Level) bool { return l.ErrorRate != nil && *l.ErrorRate > saturationRate }), n)
	s.knee(levels)
	switch top := tested[n-1]; {
	case top < slices.Max(planned):
		s.caveat(stoppedEarly(top))
	case saturation(levels) == 0:
		s.caveat(ceiling(top))
	}
}

// first is the concurrency of the first level that is so; 0 for none.
func first(levels []Level, is func(*Level) bool) int {
	if i := slices.IndexFunc(levels, func(l Level) bool { return is(&l) }); i >= 0 {
		return levels[i].Concurrency
	}
	return 0
}

func (s *sheet) point(name string, level int, n int64) {
	s.missing("count", n, name)
	if level > 0 {
		s.count(name, int64(level), n)
	}
}

// slower reports a p95 far above the base; nil is not measured.
func (l *Level) slower(base *float64) bool {
	return base != nil && l.P95S != nil && *l.P95S > kneeMultiple**base
}

// knee finds the first level that is much slower than the first one.
func (s *sheet) knee(levels []Level) {
	n := int64(len(levels))
	s.missing("s", levels[0].Successes, "baseline_p95_s")
	s.missing("count", n, "latency_knee_at")
	base := levels[0].P95S
	if base == nil {
		return
	}
	s.put("baseline_p95_s", "s", *base, levels[0].Successes)
	s.point("latency_knee_at", first(levels, func(l *Level) bool { return l.slower(base) }), n)
	if levels[0].Successes < thinSample {
		s.caveat(thinKnee(levels[0].Successes))
	}
}

// throughput records the best goodput over the steady levels.
func (s *sheet) throughput(levels []Level) {
	s.missing("/s", 0, "peak_throughput_rps", "peak_littles_law_rps")
	s.missing("count", 0, "peak_throughput_at")
	best, little := -1.0, -1.0
	for _, l := range levels {
		if l.ThroughputRPS != nil && *l.ThroughputRPS > best {
			best = *l.ThroughputRPS
			s.put("peak_throughput_rps", "/s", best, l.Requests)
			s.count("peak_throughput_at", int64(l.Concurrency), l.Requests)
		}
		if l.LittlesLawRPS != nil && *l.LittlesLawRPS > little {
			little = *l.LittlesLawRPS
			s.put("peak_littles_law_rps", "/s", little, l.Requests)
		}
	}
}

func (s *sheet) levelCaveats(levels []Level) {
	var unsteady, short, undecided, saturated []string
	for i := range levels {
		l := &levels[i]
		at := fmt.Sprint(l.Concurrency)
		switch {
		case l.overdriven:
			saturated = append(saturated, at)
		case !l.Steady:
			unsteady = append(unsteady, at)
		case l.Note != "":
			short = append(short, at)
		}
		if l.ErrorRate != nil && !l.clean() && !l.saturates() {
			undecided = append(undecided, at)
		}
	}
	if len(unsteady)+len(saturated) == len(levels) {
		s.caveat(neverSteady())
	} else if len(unsteady) > 0 {
		s.caveat(unsteadyLevels(unsteady))
	}
	if len(saturated) > 0 {
		s.caveat(saturatedLevels(saturated))
	}
	if len(short) > 0 {
		s.caveat(shortLevels(short))
	}
	if len(undecided) > 0 {
		s.caveat(undecidedLevels(undecided))
	}
}

func (s *sheet) concurrencyFindings(levels []Level) {
	held, limit := sustained(levels), saturation(levels)
	top := levels[len(levels)-1]
	s.probe.Summary = fmt.Sprintf("%s sustained, no saturation up to %d", callers(held), top.Concurrency)
	if !top.full() {
		s.probe.Summary = fmt.Sprintf("%s sustained; %d requests are too few for %d callers", callers(held), top.Requests, top.Concurrency)
	}
	if limit > 0 {
		s.probe.Summary = fmt.Sprintf("%s sustained, saturation at %d", callers(held), limit)
		l := levels[slices.IndexFunc(levels, func(l Level) bool { return l.Concurrency == limit })]
		evidence := fmt.Sprintf("%d of %d failed, 95%% interval %.1f%%-%.1f%%", l.failed, l.total, 100*l.Interval.Lo, 100*l.Interval.Hi)
		if limit == levels[0].Concurrency {
			s.finding("broken_at_once", result.Critical, fmt.Sprintf(
				"More than 5%% of the calls fail with %s already, so the cause is not the load.", callers(limit)), evidence)
			return
		}
		s.finding("saturation", result.Warning, fmt.Sprintf(
			"From %s on more than 5%% of the calls fail; %d is the highest level that held.", callers(limit), held), evidence)
	}
	base := levels[0].P95S
	if i := slices.IndexFunc(levels, func(l Level) bool { return l.slower(base) && *l.P95S >= noticeable }); i >= 0 {
		s.finding("latency_knee", result.Warning, fmt.Sprintf(
			"At %s p95 is %s, more than three times the %s at %s: calls queue up behind each other.",
			callers(levels[i].Concurrency), secs(*levels[i].P95S), secs(*base), callers(levels[0].Concurrency)), "")
	}
	if peak, ok := s.probe.Metrics["peak_throughput_rps"].Number(); ok {
		at, _ := s.probe.Metrics["peak_throughput_at"].Number()
		s.finding("peak_goodput", result.Info, fmt.Sprintf("The best goodput is %s successes/s at %s.", digits(peak, 3), callers(int(at))), "")
	}
}
