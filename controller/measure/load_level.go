package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/slo"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// sustain says whether the arrivals that were asked for were sent, and answered as
// fast as they came: the calls in flight must not pile up over the second half by
// more than sustainedSlack of its arrivals, or what chance does to their number.
//
// Of a script of several calls an arrival is not a call, and only dropped ones tell.
func sustain(lv *result.LoadLevel, s *spec.Spec, st *merge.Stage, f flow) []result.Check {
	if !s.Load.Open || !f.known || f.scheduled == 0 || st.Partial || scripted(s.Load.Workload) && f.dropped == 0 {
		return nil
	}
	growth := float64(f.end - f.middle)
	allowed := max(sustainedCalls, sustainedSlack*float64(f.half), 3*math.Sqrt(float64(max(f.middle, 1))))
	sustained := f.dropped == 0 && growth <= allowed
	lv.Sustained = &sustained
	offered, _ := lv.Offered.Number()
	answered := float64(f.completed) / f.span.Seconds()
	c := result.Check{Key: "rate_sustained", Metric: "load.throughput_rps", Direction: "min", Limit: offered, Unit: "/s", Observed: &answered,
		N: f.scheduled, Status: result.Pass, LimitSource: "load"}
	c.Reason = fmt.Sprintf("%s of %s calls/s were answered, none of %d arrivals was dropped", digits(answered, 4), digits(offered, 4), f.scheduled)
	if !sustained {
		c.Status = result.Fail
		c.Reason = fmt.Sprintf("rate not sustained: %s of %s calls/s", digits(answered, 4), digits(offered, 4))
		if f.dropped > 0 {
			c.Reason += fmt.Sprintf("; %d of %d arrivals were dropped at the limit of %d calls in flight", f.dropped, f.scheduled, s.MaxInFlight)
		} else {
			c.Reason += fmt.Sprintf("; calls in flight grew from %d to %d in the second half", f.middle, f.end)
		}
	}
	return []result.Check{c}
}

// scripted reports scenarios of several calls.
func scripted(w *wire.Workload) bool {
	return w != nil && slices.ContainsFunc(w.Scenarios, func(sc wire.Scenario) bool { return len(sc.Steps) > 1 })
}

// decide says whether a level met what was asked of it, and what decided.
func decide(lv *result.LoadLevel, st *merge.Stage, checks []result.Check) {
	switch {
	case st.Degraded():
		lv.Why = "a part of the fleet was lost: " + tookPart(st.Gang)
		return
	case lv.Generator.Saturated && metAnyway(lv, checks):
		met := true
		lv.Met, lv.Why = &met, "every objective met, our own lateness included: "+lv.Generator.Reason
		return
	case lv.Generator.Saturated:
		lv.Why = "generator-limited, target not judged: " + lv.Generator.Reason
		withhold(&lv.P50, &lv.P95, &lv.P99)
		return
	case len(checks) == 0, onlySustained(checks):
		return
	}
	var missed, unmeasured []string
	for _, c := range checks {
		switch c.Status {
		case result.NA:
			unmeasured = append(unmeasured, c.Reason)
		case result.Fail, result.Undecided:
			missed = append(missed, c.Reason)
		}
	}
	if met, ok := slo.Met(checks); ok {
		lv.Met = &met
	} else if len(missed) > 0 {
		no := false
		lv.Met = &no
	}
	switch {
	case len(missed) > 0:
		lv.Why = strings.Join(missed, "; ")
	case len(unmeasured) > 0:
		lv.Why = strings.Join(unmeasured, "; ")
	default:
		lv.Why = "every objective met"
	}
}

// onlySustained reports that a rate was asked for and sustained, and nothing else was
// asked: an answer to that is none about the target's answers.
func onlySustained(checks []result.Check) bool {
	return len(checks) == 1 && checks[0].LimitSource == "load" && checks[0].Status == result.Pass
}

// metAnyway reports that the target met its objectives for certain although our own
// side was in a hurry: every arrival was sent, and latency counts from the moment it
// was due, so that lateness can only have added to it. A closed loop in a hurry asks
// less of the target than it was told to, and proves nothing.
func metAnyway(lv *result.LoadLevel, checks []result.Check) bool {
	if lv.Sustained == nil || !*lv.Sustained || len(checks) < 2 { // the rate alone is no objective
		return false
	}
	met, ok := slo.Met(checks)
	return met && ok
}

func withhold(times ...*metrics.Measured) {
	for _, m := range times {
		m.Value, m.Interval = nil, nil
	}
}

func loadGenerator(st *merge.Stage) result.LoadGenerator {
	g := &st.Generator
	out := result.LoadGenerator{Saturated: g.Saturated, Reason: g.Reason, CPU: float64(g.CPUMilli) / 1000, GCPauseS: float64(g.GCPauseUS) / 1e6}
	if g.Saturated && g.Short > 1 {
		agents := max(len(st.Agents), 1)
		out.MoreAgents = int(math.Ceil(g.Short*float64(agents))) - agents
	}
	if g.Lag.N() > 0 {
		out.LateP50, out.LateP99 = ptr(float64(g.Lag.Quantile(500))/1e6), ptr(float64(g.Lag.Quantile(990))/1e6)
	}
	return out
}

// loadCourse fills in what happened over time in the last level.
func loadCourse(load *result.Load, s *spec.Spec, st *merge.Stage, level plan.Level) {
	c := st.Course()
	w := windowOf(s, st, c, level)
	load.PeriodS, load.WarmupS, load.MeasuredS = c.Period.Seconds(), w.from.Seconds(), max(0, (w.to-w.from).Seconds())
	length := s.Load.Length()
	if level.Duration > 0 {
		length = level.Duration
	}
	if w.exact {
		length = w.to
	}
	if !st.Partial {
		load.DrainS = max(0, (time.Duration(len(c.Periods))*c.Period - length).Seconds())
	}
	load.Sessions = result.LoadSessions{Opened: c.Sessions.Opened, Reopened: c.Sessions.Reopened}
	load.Profile = ramps(s, level, length)
	for i := range c.Periods {
		at := time.Duration(i) * c.Period
		load.Periods = append(load.Periods, period(&c.Periods[i], at, w.holds(at, c.Period), askedAt(load.Profile, at, c.Period)))
	}
	for i := range c.Steps {
		load.Steps = append(load.Steps, loadStep(&c.Steps[i]))
	}
}

func loadSpanOf(st *merge.Stage) time.Duration {
	if st.Tally == nil {
		return 0
	}
	return loadSpan(st)
}

// ramps are the profile in callers or arrivals per second; a constant load is one.
func ramps(s *spec.Spec, level plan.Level, length time.Duration) []result.LoadRamp {
	out := []result.LoadRamp{}
	if len(s.Load.Profile) == 0 {
		v := asked(s, level)
		return append(out, result.LoadRamp{ForS: length.Seconds(), From: v, To: v})
	}
	unit := 1.0
	if s.Load.Open {
		unit = 1000
	}
	for _, r := range s.Load.Profile {
		out = append(out, result.LoadRamp{ForS: r.For.Seconds(), From: float64(r.From) / unit, To: float64(r.To) / unit})
	}
	return out
}

// askedAt is the mean of a profile over a period.
func askedAt(profile []result.LoadRamp, at, length time.Duration) float64 {
	from, to := at.Seconds(), (at + length).Seconds()
	begin, area := 0.0, 0.0
	for _, r := range profile {
		a, b := max(from, begin), min(to, begin+r.ForS)
		if b > a && r.ForS > 0 {
			slope := (r.To - r.From) / r.ForS
			area += (b - a) * (r.From + slope*((a+b)/2-begin))
		}
		begin += r.ForS
	}
	return area / length.Seconds()
}

func period(p *metrics.Period, at time.Duration, measured bool, asked float64) result.LoadPeriod {
	out := result.LoadPeriod{FromS: at.Seconds(), Measured: measured, Asked: asked, Scheduled: p.Scheduled, Sent: p.Sent, Dropped: p.Dropped,
		Completed: p.Completed, Succeeded: p.Succeeded, InFlight: p.InFlight, Callers: p.Callers, Outcomes: p.Outcomes.Named()}
	if p.Late.N() > 0 {
		out.LateP99S = ptr(float64(p.Late.Quantile(990)) / 1e6)
	}
	if p.Latency.N() == 0 {
		return out
	}
	out.Histogram = histogram(&p.Latency)
	quantile := func(permille int64) *float64 { return ptr(float64(p.Latency.Quantile(permille)) / 1e6) }
	out.P50S, out.P95S, out.P99S, out.MaxS = quantile(500), quantile(950), quantile(990), ptr(float64(p.Latency.Max())/1e6)
	return out
}

// histogram is nil without a value, and for one beyond the geometry, which is in the
// counts only.
func histogram(d *metrics.Dist) *result.Histogram {
	if d.N() == 0 {
		return nil
	}
	data, err := d.HDR()
	if err != nil {
		return nil
	}
	return &result.Histogram{Encoding: "hdr-v2-base64", Unit: "us", Data: data}
}

func loadStep(t *wire.StepTally) result.LoadStep {
	s := newSheet("load")
	s.percentile("p50", &t.Latency, 0.5)
	s.percentile("p95", &t.Latency, 0.95)
	s.percentile("p99", &t.Latency, 0.99)
	n := t.Outcomes.Total()
	s.rate("error_rate", n-t.Outcomes[metrics.OK], n)
	m := s.probe.Metrics
	return result.LoadStep{Scenario: t.Scenario, Step: t.Step, Outcomes: t.Outcomes.Named(), P50: m["p50"], P95: m["p95"], P99: m["p99"], ErrorRate: m["error_rate"],
		Histogram: histogram(&t.Latency)}
}
