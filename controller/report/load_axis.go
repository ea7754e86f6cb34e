package report

import (
	"math"
	"strconv"
)

// axis maps values to pixels, evenly or by their logarithm.
type axis struct {
	lo, hi float64 // of the values
	a, b   float64 // their pixels
	log    bool
}

// at is the pixel of a value, which is brought into the axis.
func (x axis) at(v float64) float64 {
	v = min(max(v, x.lo), x.hi)
	lo, hi := x.lo, x.hi
	if x.log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(v)
	}
	if hi <= lo {
		return x.a
	}
	return x.a + (x.b-x.a)*(v-lo)/(hi-lo)
}

// tick is a mark of an axis.
type tick struct {
	at   float64
	text string
}

// linear is an axis from zero to a round number at or above most.
func linear(most, a, b float64) axis {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	step := niceStep(most / 4)
	return axis{lo: 0, hi: step * math.Ceil(most/step-1e-9), a: a, b: b}
}

// niceStep is the smallest of 1, 2, 5 times a power of ten at or above v.
func niceStep(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= v*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// ticks of a linear axis from zero.
func (x axis) ticks() []tick {
	step := niceStep(x.hi / 4)
	var out []tick
	for i := 0; i <= 12; i++ {
		v := float64(i) * step
		if v > x.hi*(1+1e-9) {
			break
		}
		out = append(out, tick{v, tickText(v)})
	}
	return out
}

func tickText(v float64) string {
	switch {
	case v >= 1e12:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M"
	case v >= 10_000:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// logSeconds is a logarithmic axis of times, at least fourfold so that a single value
// has one too.
func logSeconds(lo, hi, a, b float64) axis {
	if !(lo > 0) || math.IsInf(lo, 0) {
		lo = 1e-6
	}
	if !(hi > 0) || math.IsInf(hi, 0) {
		hi = lo
	}
	lo, hi = lo/1.1, hi*1.1
	if hi/lo < 4 {
		mid := math.Sqrt(lo * hi)
		lo, hi = mid/2, mid*2
	}
	return axis{lo: lo, hi: hi, a: a, b: b, log: true}
}

// secondTicks are the powers of ten of a logarithmic axis, and the fewer these are
// the more between them.
func (x axis) secondTicks() []tick {
	steps := []float64{1}
	switch wide := x.hi / x.lo; {
	case wide < 8:
		steps = []float64{1, 1.5, 2, 3, 4, 5, 7}
	case wide < 30:
		steps = []float64{1, 2, 5}
	case wide < 1500:
		steps = []float64{1, 3}
	}
	var out []tick
	for e := -7; e <= 5; e++ {
		for _, m := range steps {
			if v := m * math.Pow(10, float64(e)); v >= x.lo && v <= x.hi {
				out = append(out, tick{v, durationText(v)})
			}
		}
	}
	return out
}

// durationText is a round length of time.
func durationText(s float64) string {
	show := func(v float64, unit string) string {
		return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
	}
	switch {
	case s >= 0.9995:
		return strconv.FormatFloat(math.Round(s*100)/100, 'f', -1, 64) + " s"
	case s >= 0.9995e-3:
		return show(s*1e3, "ms")
	}
	return show(s*1e6, "µs")
}

// timeTicks mark an axis of time at round moments, at most n of them.
func (x axis) timeTicks(n int) []tick {
	steps := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 345600, 604800}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (x.hi-x.lo)/s <= float64(n) {
			step = s
			break
		}
	}
	var out []tick
	for i := 0; i <= n+1; i++ {
		v := math.Ceil(x.lo/step)*step + float64(i)*step
		if v > x.hi+step/1e6 {
			break
		}
		out = append(out, tick{v, momentText(v, step)})
	}
	return out
}

func momentText(v, step float64) string {
	switch {
	case step >= 3600:
		return strconv.FormatFloat(v/3600, 'f', -1, 64) + " h"
	case step >= 60:
		return strconv.FormatFloat(v/60, 'f', -1, 64) + " min"
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + " s"
}
