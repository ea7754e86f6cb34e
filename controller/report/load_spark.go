package report

import (
	"math"
	"strings"

	"ordeal/controller/result"
)

// sparkColumns is the most columns a course over time takes in a scorecard.
const sparkColumns = 60

// sparkBlocks draw eighths; a value above zero is never drawn as nothing.
var sparkBlocks = []rune("▁▂▃▄▅▆▇█")

// spark draws values between zero and their largest; NaN, nothing known, is blank.
func spark(values []float64) string {
	most := 0.0
	for _, v := range values {
		if v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case most == 0 || v <= 0:
			b.WriteRune(sparkBlocks[0])
		default:
			i := int(math.Ceil(min(v/most, 1)*float64(len(sparkBlocks)))) - 1
			b.WriteRune(sparkBlocks[max(i, 0)])
		}
	}
	return b.String()
}

// course is a value of every period, thinned to columns.
type course struct {
	name, most string
	values     []float64
}

// courses are what happened over time, each of at most n columns.
func (v *loading) courses(n int) []course {
	periods := v.load.Periods
	if len(periods) == 0 || v.load.PeriodS <= 0 {
		return nil
	}
	rateOf := func(p result.LoadPeriod) float64 { return float64(p.Succeeded) / v.load.PeriodS }
	p95 := func(p result.LoadPeriod) float64 { return orNaN(p.P95S) }
	flight := func(p result.LoadPeriod) float64 { return float64(p.InFlight) }
	return []course{
		thin("throughput", periods, n, rateOf, mean, func(x float64) string { return callRate(x) + " calls/s" }),
		thin("p95", periods, n, p95, most, seconds),
		thin("in flight", periods, n, flight, most, func(x float64) string { return count(math.Round(x)) }),
	}
}

func thin(name string, periods []result.LoadPeriod, n int, of func(result.LoadPeriod) float64, join func([]float64) float64, show func(float64) string) course {
	c := course{name: name, most: absent}
	for _, group := range grouped(len(periods), n) {
		var values []float64
		for _, p := range periods[group.from:group.to] {
			if x := of(p); !math.IsNaN(x) && !math.IsInf(x, 0) {
				values = append(values, x)
			}
		}
		c.values = append(c.values, join(values))
	}
	if top := most(c.values); !math.IsNaN(top) {
		c.most = show(top)
	}
	return c
}

// cutOff marks the columns of the warm-up and the drain; empty without any.
func (v *loading) cutOff(n int) string {
	var b strings.Builder
	for _, group := range grouped(len(v.load.Periods), n) {
		mark := byte('x')
		for _, p := range v.load.Periods[group.from:group.to] {
			if p.Measured {
				mark = ' '
			}
		}
		b.WriteByte(mark)
	}
	return strings.TrimRight(b.String(), " ")
}

// stretch is a half-open range of periods.
type stretch struct{ from, to int }

// grouped divides n periods into at most columns groups of the same size, the last
// one perhaps smaller.
func grouped(n, columns int) []stretch {
	if n <= 0 || columns <= 0 {
		return nil
	}
	size := (n + columns - 1) / columns
	var out []stretch
	for from := 0; from < n; from += size {
		out = append(out, stretch{from, min(from+size, n)})
	}
	return out
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// most is the largest number of a list, NaN without one.
func most(values []float64) float64 {
	top := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) && (math.IsNaN(top) || v > top) {
			top = v
		}
	}
	return top
}

func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
