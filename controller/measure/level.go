package measure

import (
	"cmp"
	"fmt"
	"time"

	"ordeal/controller/merge"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// steadyWaves is how many calls each caller must have completed while all
// callers had work; below it the level measures its own start and end.
const steadyWaves = 3

// Level is one step of a ramp. Nil: not measured at this level.
type Level struct {
	Concurrency int   `json:"concurrency"`
	Achieved    *int  `json:"callers_achieved,omitempty"` // with a part of the gang lost; the level is not measured then
	Requests    int64 `json:"requests"`                   // attempts that say something about the target
	Successes   int64 `json:"successes"`
	Failures    int64 `json:"failures"`
	RateLimited int64 `json:"rate_limited"`

	ErrorRate    *float64          `json:"error_rate"` // without rate-limited attempts when a quota was seen
	ErrorRateRaw *float64          `json:"error_rate_raw"`
	Interval     *metrics.Interval `json:"error_rate_interval"`
	Fitted       *float64          `json:"error_rate_fitted"` // non-decreasing over the levels

	P50S  *float64 `json:"p50_s"`
	P95S  *float64 `json:"p95_s"`
	MeanS *float64 `json:"mean_s"`
	WallS float64  `json:"wall_s"` // the longest caller on a virtual clock, else the controller's

	ThroughputRPS *float64 `json:"throughput_rps"`  // successes completed per second of the steady window
	LittlesLawRPS *float64 `json:"littles_law_rps"` // level / mean latency * success rate, a cross-check
	PerCaller     float64  `json:"completions_per_caller"`
	Steady        bool     `json:"steady"`
	Note          string   `json:"note,omitempty"`

	failed, total int64 // of ErrorRate
	overdriven    bool  // our own side was the limit
	short         bool  // not all callers took part
	degraded      bool  // a part of the gang was lost, also when repeated
}

// wall is how long a level took: on a virtual clock as long as its longest
// caller, else by the controller's clock.
func wall(st *merge.Stage, virtual bool) time.Duration {
	if virtual {
		var w metrics.Window
		if st.Tally != nil {
			w = st.Tally.Window
		}
		return time.Duration(cmp.Or(w.LongestUS, w.BusyUS)) * time.Microsecond // one caller has no longest
	}
	return st.Elapsed
}

// levelOf measures one stage of the ramp; false when it observed nothing.
func levelOf(st *merge.Stage, quota, virtual bool) (Level, bool) {
	if st.Tally == nil || st.Tally.Measured() == 0 {
		return Level{}, false
	}
	r := requests{st.Tally, quota}
	l := counted(st, r, virtual)
	l.ErrorRateRaw = ptr(float64(r.Failures()) / float64(r.Measured()))
	l.failed, l.total = r.failed(), r.total()
	if l.total > 0 {
		l.ErrorRate = ptr(float64(l.failed) / float64(l.total))
		l.Interval = closed(stat.Wilson(l.failed, l.total, confidence))
	}
	l.latencies(r)
	l.goodput(st)
	return l, true
}

// counted is a level with nothing but how much there was of it.
func counted(st *merge.Stage, r requests, virtual bool) Level {
	return Level{Concurrency: st.Level, Requests: r.Measured(), Successes: r.Successes(), Failures: r.Failures(),
		RateLimited: r.limited(), WallS: wall(st, virtual).Seconds()}
}

// degradedLevel shows what a level achieved that lost a part of its gang. It has no
// rates and no times: those of a smaller load would pass for those of the level.
func degradedLevel(st *merge.Stage, virtual bool) Level {
	r := requests{Tally: st.Tally}
	if r.Tally == nil {
		r.Tally = metrics.NewTally()
	}
	l := counted(st, r, virtual)
	if w := r.Window; w.Workers > 0 {
		l.PerCaller = float64(w.Completed) / float64(w.Workers)
	}
	l.Achieved, l.degraded = &st.Gang.Achieved, true
	l.Note = tookPart(st.Gang) + ", lost twice" + whoIsLost(st.Gang) + "; left out"
	return l
}

// degradedText names the degraded levels and what they achieved.
func degradedText(all []Level) []string {
	var out []string
	for _, l := range all {
		if l.degraded {
			out = append(out, fmt.Sprintf("%s (%d took part)", callers(l.Concurrency), *l.Achieved))
		}
	}
	return out
}

func (l *Level) latencies(r requests) {
	d := &r.Latency
	if d.N() == 0 {
		return
	}
	l.P50S = ptr(float64(d.Quantile(500)) / 1e6)
	l.P95S = ptr(float64(d.Quantile(950)) / 1e6)
	l.MeanS = ptr(d.Mean() / 1e6)
	if d.Sum() > 0 {
		l.LittlesLawRPS = ptr(float64(l.Concurrency) / *l.MeanS * float64(l.Successes) / float64(l.Requests))
	}
}

// goodput counts what was completed while every caller was busy. BusyUS adds up
// over the callers, so successes per busy microsecond is one caller's rate.
func (l *Level) goodput(st *merge.Stage) {
	w := st.Tally.Window
	switch {
	case st.Generator.Saturated:
		l.overdriven = true
		l.Note = "the generator was saturated: " + st.Generator.Reason
		l.P50S, l.P95S, l.MeanS, l.LittlesLawRPS = nil, nil, nil, nil
		return
	case w.Workers == 0 || w.BusyUS <= 0:
		l.Note = "no steady window was recorded"
		return
	}
	l.PerCaller = float64(w.Completed) / float64(w.Workers)
	if w.Completed < steadyWaves*w.Workers {
		l.Note = fmt.Sprintf("%.1f completions per caller, %d are needed for a steady state", l.PerCaller, steadyWaves)
		return
	}
	l.Steady = true
	l.ThroughputRPS = ptr(float64(w.Workers) * float64(w.Succeeded) * 1e6 / float64(w.BusyUS))
	if int(w.Workers) < st.Level {
		l.short = true
		l.Note = fmt.Sprintf("%d of %d callers took part", w.Workers, st.Level)
	}
}

// fit smooths the error rates to the closest sequence that does not fall with
// load, so that luck at one level does not name a saturation point.
func fit(levels []Level) {
	var rates, weights []float64
	var at []int
	for i, l := range levels {
		if l.ErrorRate != nil {
			rates, weights, at = append(rates, *l.ErrorRate), append(weights, float64(l.total)), append(at, i)
		}
	}
	for i, v := range stat.PAVA(rates, weights) {
		levels[at[i]].Fitted = ptr(v)
	}
}

func ptr(v float64) *float64 { return &v }
