package slo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordeal/metrics"
)

// Objective is an upper limit on one metric.
type Objective struct {
	Metric   string  // as written: p95, ttft_p50, error_rate, ...
	Quantile float64 // of a percentile, 0 to 1
	Limit    float64 // seconds, or a share
}

const example = "want for example p95<500ms,error_rate<1%"

// Parse reads a comma list of objectives, at least one, each metric once.
func Parse(text string) ([]Objective, error) {
	var all []Objective
	var problems []error
	for part := range strings.SplitSeq(text, ",") {
		o, err := parse(strings.TrimSpace(part))
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("objective %.60q: %w; %s", part, err, example))
		case slices.ContainsFunc(all, func(b Objective) bool { return b.Metric == o.Metric }):
			problems = append(problems, fmt.Errorf("objective %.60q: %s has a limit already", part, o.Metric))
		default:
			all = append(all, o)
		}
	}
	return all, errors.Join(problems...)
}

func parse(text string) (Objective, error) {
	metric, limit, found := strings.Cut(text, "<")
	if !found {
		return Objective{}, errors.New("has no <")
	}
	o := Objective{Metric: strings.TrimSpace(metric)}
	limit = strings.TrimSpace(strings.TrimPrefix(limit, "="))
	if o.Metric == errorRate || o.Metric == droppedRate {
		return o.rate(limit)
	}
	_, level, ok := o.source()
	if !ok {
		return o, fmt.Errorf("unknown metric %.40q: want a percentile (p95, ttft_p95, gap_p95), %s or %s", o.Metric, errorRate, droppedRate)
	}
	p, err := strconv.ParseFloat(level, 64)
	if err != nil || !(p >= 1 && p <= 99.999) {
		return o, fmt.Errorf("percentile %.20q: want 1 to 99.999", level)
	}
	o.Quantile = p / 100
	return o.duration(limit)
}

const (
	errorRate   = "error_rate"
	droppedRate = "dropped_rate"
)

// source is the distribution a percentile is of, and the text of its level.
func (o Objective) source() (dist func(*metrics.Tally) *metrics.Dist, level string, ok bool) {
	for _, s := range []struct {
		prefix string
		dist   func(*metrics.Tally) *metrics.Dist
	}{
		{"ttft_p", func(t *metrics.Tally) *metrics.Dist { return &t.TTFT }},
		{"gap_p", func(t *metrics.Tally) *metrics.Dist { return &t.Gap }},
		{"p", func(t *metrics.Tally) *metrics.Dist { return &t.Latency }},
	} {
		if level, ok = strings.CutPrefix(o.Metric, s.prefix); ok && level != "" && level[0] >= '0' && level[0] <= '9' {
			return s.dist, level, true
		}
	}
	return nil, "", false
}

func (o Objective) rate(limit string) (Objective, error) {
	number, percent := strings.CutSuffix(limit, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return o, fmt.Errorf("limit %.40q is no share: want 1%% or 0.01, at most 100%%", limit)
	}
	o.Limit = v
	return o, nil
}

func (o Objective) duration(limit string) (Objective, error) {
	d, err := time.ParseDuration(limit)
	if err != nil || d <= 0 || d > metrics.MaxValue*time.Microsecond {
		return o, fmt.Errorf("limit %.40q is no duration from 1µs to 1h", limit)
	}
	o.Limit = d.Seconds()
	return o, nil
}

// String is the objective as Parse reads it.
func (o Objective) String() string {
	if o.Quantile > 0 {
		return o.Metric + "<" + time.Duration(o.Limit*float64(time.Second)+0.5).Round(time.Microsecond).String()
	}
	return o.Metric + "<" + strconv.FormatFloat(o.Limit*100, 'g', -1, 64) + "%"
}
