package measure

import (
	"fmt"
	"math"
	"time"

	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/slo"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// LoadInput is everything a load test is measured from.
type LoadInput struct {
	Input
	Levels []plan.Level // in the order they were tried; the last one is what the probe and the course are about
	Stages []string     // of these
	Knee   *result.Knee
}

// Load measures a load test: its levels, its course over time, and the probe
// "load" about its last level. The checks are those of the SLO at that level, and
// in an open loop whether the rate was sustained.
func Load(in LoadInput) (load *result.Load, probe result.Probe, checks []result.Check, caveats []metrics.Caveat) {
	l := in.Spec.Load
	load = &result.Load{Model: "closed", SLO: l.SLO, Knee: in.Knee, Levels: []result.LoadLevel{}, Periods: []result.LoadPeriod{}, Profile: []result.LoadRamp{}}
	if l.Open {
		load.Model, load.Arrivals = "open", "constant"
		if l.Poisson {
			load.Arrivals = "poisson"
		}
	}
	for i, level := range in.Levels {
		if st := in.Summary.Stage(in.Stages[i]); st != nil {
			lv, _ := LoadLevel(in.Spec, st, level)
			load.Levels = append(load.Levels, lv)
		}
	}
	s := newSheet("load")
	if len(load.Levels) == 0 {
		s.notRun("no load was sent", nil)
		return load, s.finish(), []result.Check{}, append([]metrics.Caveat{}, s.caveats...)
	}
	last := in.Levels[len(in.Levels)-1]
	st := in.Summary.Stage(in.Stages[len(in.Stages)-1])
	checks = loadProbe(&in, s, st, last)
	loadCourse(load, in.Spec, st, last)
	return load, s.finish(), checks, append([]metrics.Caveat{}, s.caveats...)
}

// loadProbe fills the sheet about one level and judges it.
func loadProbe(in *LoadInput, s *sheet, st *merge.Stage, level plan.Level) []result.Check {
	if !s.ran(st, "p95_s", "p99_s", "error_rate") {
		return []result.Check{}
	}
	if !in.Spec.Load.Open && !in.Survey.Virtual {
		s.longest = in.Spec.Timeout.Microseconds() // a longer call is no success
	}
	r := requests{Tally: st.Tally} // a refused call is an error of the load that was asked for, quota or not
	s.requests(r)
	s.latencies(r)
	s.inclTimeouts(st.Tally, in.Spec.Timeout.Microseconds())
	s.streams(st.Tally)
	s.overhead(st.Tally)
	s.seconds("startup_s", float64(in.Survey.StartupUS), min(in.Survey.StartupUS, 1))
	lv, checks := LoadLevel(in.Spec, st, level)
	s.probe.Metrics["throughput_rps"] = lv.Achieved
	s.tokenRates(st, lv)
	s.goodput(in.Spec.Load, st, lv)
	if in.Spec.Load.Open {
		s.arrivals(st, lv)
	}
	s.generator(st, latencyPercentiles...)
	s.latencyFindings(r)
	s.latencySummary(r)
	return checks
}

// arrivals records how the arrivals of an open loop were met; see openLoop.
func (s *sheet) arrivals(st *merge.Stage, lv result.LoadLevel) {
	t, w := st.Tally, st.Tally.Window
	s.percentile("service_p50_s", &t.Service, 0.5)
	s.percentile("service_p95_s", &t.Service, 0.95)
	s.percentile("service_p99_s", &t.Service, 0.99)
	s.probe.Metrics["offered_rps"] = lv.Offered
	s.count("dropped", w.Dropped, w.Scheduled)
	s.rate("dropped_rate", w.Dropped, w.Scheduled)
	if lv.Sustained != nil && !*lv.Sustained {
		s.finding("rate_not_sustained", result.Warning, lv.Why, "")
	}
}

// tokenRates records the rate of tokens where answers report them.
func (s *sheet) tokenRates(st *merge.Stage, lv result.LoadLevel) {
	t := st.Tally
	span, ok := measuredSpan(lv)
	if t.Usage == 0 || !ok {
		return
	}
	s.put("tokens_out_per_s", "/s", float64(t.TokensOut.Sum())/span, t.Usage)
	s.put("tokens_in_per_s", "/s", float64(t.TokensIn.Sum())/span, t.Usage)
	if in := t.TokensIn.Sum(); in > 0 {
		s.put("cached_input_share", "rate", float64(t.CachedIn)/float64(in), t.Usage)
	}
}

// measuredSpan is how many seconds the level was measured, from its own rate.
func measuredSpan(lv result.LoadLevel) (float64, bool) {
	rate, ok := lv.Achieved.Number()
	if !ok || rate <= 0 || lv.Achieved.N == 0 {
		return 0, false
	}
	return float64(lv.Achieved.N) / rate, true
}

// goodput is the rate of calls answered well within every limit of the SLO on the
// latency of a call: what of the throughput is of use. Limits on first tokens and
// gaps cannot be told per call from distributions and are left out.
func (s *sheet) goodput(l *spec.Load, st *merge.Stage, lv result.LoadLevel) {
	limit := math.Inf(1)
	for _, o := range l.Objectives() {
		if o.Quantile > 0 && o.Metric[0] == 'p' {
			limit = min(limit, o.Limit)
		}
	}
	span, ok := measuredSpan(lv)
	if math.IsInf(limit, 1) || !ok || st.Generator.Saturated {
		return
	}
	good := int64(0)
	st.Tally.Latency.Each(func(us, n int64) {
		if float64(us) <= limit*1e6 {
			good += n
		}
	})
	s.put("goodput_rps", "/s", float64(good)/span, st.Tally.Measured())
	s.rate("good_share", good, st.Tally.Measured())
}

// sustainedSlack is the share of the arrivals by which the calls in flight may
// grow over the second half of a load that is sustained; a few calls are always
// allowed.
const (
	sustainedSlack = 0.01
	sustainedCalls = 2
)

// LoadLevel is what became of one level.
func LoadLevel(s *spec.Spec, st *merge.Stage, level plan.Level) (result.LoadLevel, []result.Check) {
	lv := result.LoadLevel{Stage: st.Name, Asked: asked(s, level), Confirms: level.Confirms, Outcomes: map[string]int64{}, Generator: loadGenerator(st)}
	checks := []result.Check{}
	if st.Tally == nil || st.Tally.Calls() == 0 && st.Tally.Window.Scheduled == 0 {
		lv.Why = "nothing was observed"
		if n := callsOf(st.Course()); n > 0 {
			lv.Why = fmt.Sprintf("no call began in the measured part: %d that began before it kept every caller waiting; cut off less, with --warmup-time 0s", n)
		}
		if len(st.Failures) > 0 {
			lv.Why = st.Failures[0].Message
		}
		return lv, checks
	}
	t := st.Tally
	lv.Outcomes = t.Outcomes.Named()
	sh := newSheet("load")
	sh.percentile("p50", &t.Latency, 0.5)
	sh.percentile("p95", &t.Latency, 0.95)
	sh.percentile("p99", &t.Latency, 0.99)
	sh.rate("error_rate", t.Failures(), t.Measured())
	lv.P50, lv.P95, lv.P99, lv.ErrorRate = sh.probe.Metrics["p50"], sh.probe.Metrics["p95"], sh.probe.Metrics["p99"], sh.probe.Metrics["error_rate"]
	lv.Scheduled, lv.Sent, lv.Dropped = t.Window.Scheduled, t.Window.Sent, t.Window.Dropped
	lv.Achieved = metrics.Measured{Unit: "/s"}
	f := flowOf(s, st, level)
	if f.span > 0 {
		lv.Achieved = metrics.Measured{Value: float64(f.succeeded) / f.span.Seconds(), Unit: "/s", N: f.succeeded}
	}
	if s.Load.Open {
		lv.Offered = metrics.Measured{Unit: "/s", N: f.scheduled}
		if f.span > 0 {
			lv.Offered.Value = float64(f.scheduled) / f.span.Seconds()
		}
	}
	checks = slo.Judge(s.Load.Objectives(), t)
	checks = append(checks, sustain(&lv, s, st, f)...)
	decide(&lv, st, checks)
	return lv, checks
}

// callsOf counts the calls of all periods.
func callsOf(c *merge.Course) (n int64) {
	for i := range c.Periods {
		n += c.Periods[i].Outcomes.Total()
	}
	return n
}

func asked(s *spec.Spec, level plan.Level) float64 {
	switch {
	case level.Rate > 0:
		return level.Rate
	case s.Load.Open:
		return float64(s.Load.Peak()) / 1000
	}
	return float64(s.Load.Peak())
}

// flow counts the calls of the measured part by the moment they were due, begun or
// answered.
type flow struct {
	span                     time.Duration
	scheduled, sent, dropped int64
	completed, succeeded     int64
	middle, end              int64 // calls in flight: halfway, and when the arrivals ended
	half                     int64 // arrivals of the second half
	known                    bool
}

// window is the measured part of a level: what was planned, or how far it came.
type window struct {
	from, to time.Duration
	exact    bool // to is no end of a period: the load ended by count
}

func windowOf(s *spec.Spec, st *merge.Stage, c *merge.Course, level plan.Level) window {
	w := window{from: s.Load.WarmupTime, to: s.Load.Length()}
	if level.Duration > 0 {
		w.to = level.Duration
	}
	switch active := activeFor(c); {
	case s.Load.Requests > 0 && s.Load.Open && st.Tally != nil:
		w.to, w.exact = time.Duration(st.Tally.Window.SpanUS)*time.Microsecond, true
	case s.Load.Requests > 0:
		w.to, w.exact = loadSpanOf(st), true
	case st.Partial && active < w.to:
		w.to = max(active-c.Period, w.from) // the period in which it was cut is not whole
	}
	return w
}

// activeFor is how long calls were sent, in whole periods.
func activeFor(c *merge.Course) time.Duration {
	for i := len(c.Periods) - 1; i >= 0; i-- {
		if c.Periods[i].Scheduled > 0 || c.Periods[i].Sent > 0 {
			return time.Duration(i+1) * c.Period
		}
	}
	return 0
}

// holds reports whether the period that begins at a time is one of the measured part.
func (w window) holds(at, length time.Duration) bool {
	if w.exact {
		return at >= w.from && at < w.to
	}
	return at >= w.from && at+length <= w.to+length/100
}

// flowOf reads the periods that lie within the measured part.
func flowOf(s *spec.Spec, st *merge.Stage, level plan.Level) flow {
	c := st.Course()
	w := windowOf(s, st, c, level)
	var f flow
	first, last := -1, -1
	for i := range c.Periods {
		if w.holds(time.Duration(i)*c.Period, c.Period) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return f
	}
	open := int64(0) // in flight at the start of a period
	middle := (first + last + 1) / 2
	for i := range c.Periods[:last+1] {
		p := &c.Periods[i]
		if i == middle {
			f.middle = open
		}
		open += p.Sent - p.Completed
		if i < first {
			continue
		}
		f.scheduled, f.sent, f.dropped = f.scheduled+p.Scheduled, f.sent+p.Sent, f.dropped+p.Dropped
		f.completed, f.succeeded = f.completed+p.Completed, f.succeeded+p.Succeeded
		if i >= middle {
			f.half += p.Scheduled
		}
	}
	f.end, f.known = open, true
	f.span = time.Duration(last-first+1) * c.Period
	if w.exact {
		f.span = w.to - w.from
	}
	return f
}

// loadSpan is how long a load by count lasted: its longest caller.
func loadSpan(st *merge.Stage) time.Duration {
	w := st.Tally.Window
	us := max(w.LongestUS, w.BusyUS/max(w.Workers, 1))
	return max(time.Duration(us)*time.Microsecond, time.Millisecond)
}
