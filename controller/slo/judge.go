package slo

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

const confidence = 0.95

// Judge holds a tally against the objectives, in their order. Failures have no
// latency, so a percentile is one of the calls that were answered well: an
// error_rate belongs beside it.
func Judge(objectives []Objective, t *metrics.Tally) []result.Check {
	checks := make([]result.Check, len(objectives))
	for i, o := range objectives {
		checks[i] = o.judge(t)
	}
	return checks
}

func (o Objective) judge(t *metrics.Tally) result.Check {
	c := result.Check{Key: o.Metric, Metric: "load." + strings.ReplaceAll(o.Metric, ".", "_"), Direction: "max", Limit: o.Limit, Unit: "rate", Status: result.NA, LimitSource: "slo"}
	observed, n, iv := o.rateOf(t)
	if o.Quantile > 0 {
		c.Unit = "ms"
		c.Limit *= 1e3
		observed, n, iv = o.percentileOf(t)
	}
	if c.N = n; n == 0 {
		c.Reason = "not measured: no call says anything about " + o.Metric
		return c
	}
	c.Observed, c.Interval = &observed, &metrics.Interval{Lo: iv.Lo, Hi: iv.Hi}
	switch met := observed <= c.Limit; {
	case met && iv.Hi <= c.Limit:
		c.Status = result.Pass
	case met:
		c.Status = result.Unproven
	case iv.Lo > c.Limit:
		c.Status = result.Fail
	default:
		c.Status = result.Undecided
	}
	c.Reason = fmt.Sprintf("%s is %s of %d calls, the limit %s", o.Metric, o.show(observed), n, o.show(c.Limit))
	return c
}

// show writes a value of the check in its unit.
func (o Objective) show(v float64) string {
	if o.Quantile > 0 {
		return time.Duration(v * 1e6).Round(time.Microsecond).String()
	}
	return fmt.Sprintf("%.3g%%", 100*v)
}

// percentileOf is a nearest-rank percentile in ms with its order-statistic
// interval, which has no upper end where the sample is too small for one.
func (o Objective) percentileOf(t *metrics.Tally) (v float64, n int64, iv stat.Interval) {
	dist, _, _ := o.source()
	d := dist(t)
	if n = d.N(); n == 0 {
		return 0, 0, iv
	}
	iv = stat.Interval{Lo: 0, Hi: math.Inf(1)}
	lo, hi, _ := stat.QuantileRanks(n, o.Quantile, confidence)
	if lo > 0 {
		iv.Lo = float64(d.Rank(lo)) / 1e3
	}
	if hi > 0 {
		iv.Hi = float64(d.Rank(hi)) / 1e3
	}
	return float64(d.Rank(stat.NearestRank(n, o.Quantile))) / 1e3, n, iv
}

// rateOf is a share with its exact interval. Dropped arrivals were never sent:
// they are of the arrivals that were due, errors of the calls that were made.
func (o Objective) rateOf(t *metrics.Tally) (v float64, n int64, iv stat.Interval) {
	k := t.Failures()
	n = t.Measured()
	if o.Metric == droppedRate {
		k, n = t.Window.Dropped, t.Window.Scheduled
	}
	if n == 0 {
		return 0, 0, iv
	}
	return float64(k) / float64(n), n, stat.ClopperPearson(k, n, confidence)
}

// Met reports whether every observed value meets its limit; ok is false when one
// was not measured.
func Met(checks []result.Check) (met, ok bool) {
	met = true
	for _, c := range checks {
		if c.Status == result.NA {
			return false, false
		}
		met = met && (c.Status == result.Pass || c.Status == result.Unproven)
	}
	return met, true
}
