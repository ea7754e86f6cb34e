package measure

import (
	"fmt"
	"slices"
	"strings"

	"ordeal/controller/plan"
	"ordeal/controller/result"
)

// ramp records where the target saturates. Absent points are nil: they lie
// beyond what was tested. Of all levels those are measured that kept their gang.
func (s *sheet) ramp(in *Input, all, levels []Level) {
	n := int64(len(levels))
	planned := plan.Levels(in.Spec.Concurrency)
	tested := make([]int, n)
	worst := 0.0
	for i, l := range levels {
		tested[i] = l.Concurrency
		worst = max(worst, *l.ErrorRateRaw)
	}
	s.fact("levels", all, int64(len(all)))
	s.fact("levels_tested", tested, n)
	s.fact("levels_planned", planned, int64(len(planned)))
	s.put("saturation_threshold", "rate", saturationRate, n)
	s.put("max_error_rate", "rate", worst, n)
	s.put("max_sustained_concurrency", "count", int64(sustained(levels)), n)
	s.point("saturation_point", saturation(levels), n)
	s.point("point_saturation", first(levels, func(l *Level) bool { return l.ErrorRate != nil && *l.ErrorRate > saturationRate }), n)
	s.missing("s", levels[0].Successes, "baseline_p95_s")
	s.missing("count", n, "latency_knee_at")
	if !all[0].degraded { // else the first level left is not the unloaded target
		s.knee(levels)
	}
	s.untested(all, levels, slices.Max(planned))
}

// untested says what lies beyond the measured levels: above them where the ramp
// ended, and between them where a level is for show only.
func (s *sheet) untested(all, levels []Level, top int) {
	switch last := &all[len(all)-1]; {
	case last.Concurrency < top:
		s.caveat(stoppedEarly(last.Concurrency))
	case saturation(levels) == 0 && !last.degraded:
		s.caveat(ceiling(last.Concurrency))
	}
	lost := degradedText(all)
	if len(lost) == 0 {
		return
	}
	s.caveat(degradedLevels(lost))
	if sustained(levels) == 0 && unknownBelow(all, saturation(levels)) {
		s.caveat(nothingSustained(lost))
	}
}

// unknownBelow reports a level for show only below a limit, 0 being none.
func unknownBelow(all []Level, limit int) bool {
	return slices.ContainsFunc(all, func(l Level) bool { return l.degraded && (limit == 0 || l.Concurrency < limit) })
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
		case l.short:
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

func (s *sheet) concurrencyFindings(all, levels []Level) {
	limit := saturation(levels)
	s.rampSummary(all, levels)
	if limit > 0 && s.saturationFinding(all, levels) {
		return
	}
	base, known := s.number("baseline_p95_s")
	if i := slices.IndexFunc(levels, func(l Level) bool { return l.slower(&base) && *l.P95S >= noticeable }); known && i >= 0 {
		s.finding("latency_knee", result.Warning, fmt.Sprintf(
			"At %s p95 is %s, more than three times the %s at %s: calls queue up behind each other.",
			callers(levels[i].Concurrency), secs(*levels[i].P95S), secs(base), callers(levels[0].Concurrency)), "")
	}
	if peak, ok := s.probe.Metrics["peak_throughput_rps"].Number(); ok {
		at, _ := s.probe.Metrics["peak_throughput_at"].Number()
		s.finding("peak_goodput", result.Info, fmt.Sprintf("The best goodput is %s successes/s at %s.", digits(peak, 3), callers(int(at))), "")
	}
}

func (s *sheet) rampSummary(all, levels []Level) {
	top, limit := levels[len(levels)-1], saturation(levels)
	held := "unknown how many callers are sustained"
	if v, ok := s.number("max_sustained_concurrency"); ok {
		held = callers(int(v)) + " sustained"
	}
	switch {
	case limit > 0:
		s.probe.Summary = fmt.Sprintf("%s, saturation at %d", held, limit)
	case !top.full():
		s.probe.Summary = fmt.Sprintf("%s; %d requests are too few for %d callers", held, top.Requests, top.Concurrency)
	default:
		s.probe.Summary = fmt.Sprintf("%s, no saturation up to %d", held, top.Concurrency)
	}
	if lost := degradedText(all); len(lost) > 0 {
		s.probe.Summary += "; left out for lost agents: " + strings.Join(lost, ", ")
	}
}

// saturationFinding reports where the target saturates, and whether that was with
// the first level already.
func (s *sheet) saturationFinding(all, levels []Level) (atOnce bool) {
	held, limit := sustained(levels), saturation(levels)
	l := levels[slices.IndexFunc(levels, func(l Level) bool { return l.Concurrency == limit })]
	evidence := fmt.Sprintf("%d of %d failed, 95%% interval %.1f%%-%.1f%%", l.failed, l.total, 100*l.Interval.Lo, 100*l.Interval.Hi)
	switch {
	case limit == all[0].Concurrency:
		s.finding("broken_at_once", result.Critical, fmt.Sprintf(
			"More than 5%% of the calls fail with %s already, so the cause is not the load.", callers(limit)), evidence)
		return true
	case held == 0 && unknownBelow(all, limit):
		s.finding("saturation", result.Warning, fmt.Sprintf(
			"From %s on more than 5%% of the calls fail; no level below was measured that held.", callers(limit)), evidence)
	default:
		s.finding("saturation", result.Warning, fmt.Sprintf(
			"From %s on more than 5%% of the calls fail; %d is the highest level that held.", callers(limit), held), evidence)
	}
	return false
}
