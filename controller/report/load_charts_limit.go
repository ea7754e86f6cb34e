package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ordeal/controller/result"
)

// curve is a distribution with its name and its line.
type curve struct {
	name, class string
	spread
}

func (c *canvas) curves() []curve {
	first := "latency"
	if c.open() {
		first = "from due"
	}
	all := []curve{{first, "line s1", c.response}, {"first token", "line s3", c.stored("ttft")}}
	if c.open() { // in a closed loop both are the same
		all = append(all, curve{"from sent", "line s2 dash", c.stored("service")})
	}
	return slices.DeleteFunc(all, func(x curve) bool { return x.n == 0 })
}

func (c *canvas) spectrumFigure() (figure, bool) {
	curves := c.curves()
	if c.response.n == 0 {
		return figure{}, false
	}
	s := c.response
	f := figure{Title: "Percentile spectrum", Half: true, Wide: c.spectrum(halfWidth, 380, curves), Narrow: c.spectrum(narrowWidth, 280, curves),
		About: "Latency by the share of calls that took no longer, of " + successes(s.n) + " in the measured part; each step to the right leaves a tenth of the calls." + c.notTheTargets(),
		Label: fmt.Sprintf("Percentile spectrum of %s: p50 %s, p90 %s, p99 %s, p99.9 %s, max %s.", successes(s.n), timed(s.at(0.5)), timed(s.at(0.9)), timed(s.at(0.99)), timed(s.at(0.999)), timed(s.at(1)))}
	for _, x := range curves {
		f.Legend = append(f.Legend, legendItem{x.class, x.name})
	}
	return f, true
}

// spectrumPoints is how many points make a curve.
const spectrumPoints = 160

func (c *canvas) spectrum(w, h int, curves []curve) *drawing {
	p := newPlot(w, h)
	lo, hi, n := math.Inf(1), 0.0, int64(10)
	for _, x := range curves {
		lo, hi, n = min(lo, x.at(0)), max(hi, x.at(1)), max(n, x.n)
	}
	y := logSeconds(max(lo, 1e-6), hi, p.bottom, p.top)
	p.yAxis(y, y.secondTicks(), "latency")
	x := axis{lo: 0, hi: math.Log10(float64(n)), a: p.left, b: p.right}
	p.xAxis(x, shareTicks(x.hi), "percentile")
	for _, k := range curves {
		var b pen
		for i := range spectrumPoints + 1 {
			at := x.hi * float64(i) / spectrumPoints
			if at > math.Log10(float64(k.n)) {
				break
			}
			b.to(x.at(at), y.at(k.at(1-math.Pow(10, -at))))
		}
		b.to(x.at(math.Log10(float64(k.n))), y.at(k.at(1)))
		p.Lines = append(p.Lines, shape{Class: k.class, D: b.String()})
	}
	const bands = 24
	for i := range bands {
		at := x.hi * (float64(i) + 0.5) / bands
		share := 1 - math.Pow(10, -at)
		title := fmt.Sprintf("p%.5g:", 100*share)
		for _, k := range curves {
			title += " " + k.name + " " + timed(k.at(share)) + ","
		}
		p.hover(x.a+(x.b-x.a)*float64(i)/bands, p.top, (x.b-x.a)/bands, p.bottom-p.top, title[:len(title)-1])
	}
	return p.drawing
}

// shareTicks mark percentiles by log10 of 1/(1-p).
func shareTicks(hi float64) []tick {
	out := []tick{{0, "0"}}
	for _, s := range []struct {
		share float64
		text  string
	}{{0.5, "50"}, {0.9, "90"}, {0.99, "99"}, {0.999, "99.9"}, {0.9999, "99.99"}, {0.99999, "99.999"}, {0.999999, "99.9999"}} {
		if at := -math.Log10(1 - s.share); at <= hi {
			out = append(out, tick{at, s.text})
		}
	}
	return out
}

// point is a load that was tried, or a period of a course that changes it.
type point struct {
	asked, achieved, p50, p95 float64 // calls/s or callers, calls/s, seconds; NaN unknown
	met                       *bool
	level                     bool
	title                     string
}

// points are the levels, or with one level the measured periods of a load that
// rises or falls.
func (c *canvas) points() []point {
	var out []point
	if len(c.load.Levels) > 1 {
		for _, lv := range c.load.Levels {
			out = append(out, c.levelPoint(lv))
		}
	} else if c.changes() {
		for i := range c.load.Periods {
			if p := &c.load.Periods[i]; p.Measured && c.load.PeriodS > 0 {
				out = append(out, c.periodPoint(p))
			}
		}
	}
	out = slices.DeleteFunc(out, func(p point) bool {
		return !(p.asked > 0) || math.IsInf(p.asked, 0) || math.IsNaN(p.achieved) || math.IsInf(p.achieved, 0)
	})
	slices.SortStableFunc(out, func(a, b point) int { return cmp.Compare(a.asked, b.asked) })
	return out
}

// changes reports a load whose profile is more than one constant stretch.
func (c *canvas) changes() bool {
	for _, r := range c.load.Profile {
		if r.From != r.To || r.From != c.load.Profile[0].From {
			return true
		}
	}
	return false
}

func (c *canvas) levelPoint(lv result.LoadLevel) point {
	number := func(v float64, ok bool) float64 {
		if !ok {
			return math.NaN()
		}
		return v
	}
	p := point{asked: lv.Asked, achieved: number(lv.Achieved.Number()), p50: number(lv.P50.Number()), p95: number(lv.P95.Number()), met: lv.Met, level: true}
	p.title = fmt.Sprintf("asked %s: achieved %s calls/s, p95 %s, errors %s of %s; SLO met: %s", c.asked(lv.Asked), callRate(p.achieved), shown(lv.P95, "s"),
		shown(lv.ErrorRate, "rate"), times(lv.ErrorRate.N, "call"), metWord(lv.Met))
	return p
}

func (c *canvas) periodPoint(p *result.LoadPeriod) point {
	out := point{asked: p.Asked, achieved: float64(p.Succeeded) / c.load.PeriodS, p50: orNaN(p.P50S), p95: orNaN(p.P95S)}
	out.title = fmt.Sprintf("at %s, asked %s: achieved %s calls/s, p95 %s", lasting(p.FromS), c.asked(p.Asked), callRate(out.achieved), optional(p.P95S, timed))
	return out
}

func (c *canvas) kneeFigure() (figure, bool) {
	points := c.points()
	if len(points) < 2 {
		return figure{}, false
	}
	f := figure{Title: "Throughput and latency by load", Half: true, Wide: c.knee(halfWidth, 380, points), Narrow: c.knee(narrowWidth, 380, points),
		About: "What was achieved for what was asked, and the latency that it cost.", Label: fmt.Sprintf("Throughput and latency by load: %d points from %s to %s. %s",
			len(points), c.asked(points[0].asked), c.asked(points[len(points)-1].asked), c.kneeText()),
		Legend: []legendItem{{"line s1", "achieved"}}}
	if c.open() {
		f.Legend = append(f.Legend, legendItem{"line s0 dash", "as asked"})
	}
	f.Legend = append(f.Legend, legendItem{"line s2", "p95"}, legendItem{"line s3 dash", "p50"})
	if points[0].level {
		f.Legend = append(f.Legend, legendItem{"dot yes", "SLO met"}, legendItem{"dot no", "not met"}, legendItem{"dot open", "not judged"})
	} else {
		f.About = "A point is a measured period of the course: what was achieved for what was asked, and the latency that it cost."
	}
	if k := c.load.Knee; k != nil && k.Rate != nil {
		f.Legend = append(f.Legend, legendItem{"line knee", "knee " + callRate(*k.Rate) + " calls/s"})
	}
	return f, true
}

// knee draws what was achieved above, and the latency below.
func (c *canvas) knee(w, h int, points []point) *drawing {
	below := newPlot(w, h)
	above := below
	split := below.top + (below.bottom-below.top)*0.52
	above.bottom, below.top = split-14, split+18
	x := c.loadAxis(below, points)
	var achieved, times []float64
	for _, p := range points {
		achieved, times = append(achieved, p.achieved), append(times, p.p50, p.p95)
	}
	y := linear(most(achieved), above.bottom, above.top)
	above.yAxis(y, y.ticks(), "achieved, calls/s")
	c.kneeMark(plot{below.drawing, below.left, below.right, above.top, below.bottom}, x)
	if c.open() {
		c.diagonal(above, x, y)
	}
	above.through(points, x, y, "s1", func(p point) float64 { return p.achieved })
	if lo, hi := least(times), most(times); hi > 0 {
		yTime := logSeconds(max(lo, 1e-6), hi, below.bottom, below.top)
		below.yAxis(yTime, yTime.secondTicks(), "latency")
		below.through(points, x, yTime, "s3 dash", func(p point) float64 { return p.p50 })
		below.through(points, x, yTime, "s2", func(p point) float64 { return p.p95 })
	}
	above.pointHovers(points, x, below.bottom)
	return below.drawing
}

// loadAxis is the load that was asked for: by its logarithm where it spans decades.
func (c *canvas) loadAxis(p plot, points []point) axis {
	about := "callers"
	if c.open() {
		about = "asked, calls/s"
	}
	lo, hi := points[0].asked, points[len(points)-1].asked
	if lo > 0 && hi/lo >= 50 && points[0].level {
		x := axis{lo: lo / 1.15, hi: hi * 1.15, a: p.left, b: p.right, log: true}
		p.xAxis(x, x.decades(), about)
		return x
	}
	x := linear(hi, p.left, p.right)
	p.xAxis(x, x.ticks(), about)
	return x
}

// decades mark 1, 2 and 5 of each power of ten.
func (x axis) decades() []tick {
	var out []tick
	for e := -3; e <= 9; e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, float64(e)); v >= x.lo && v <= x.hi {
				out = append(out, tick{v, tickText(v)})
			}
		}
	}
	return out
}

// diagonal is where everything asked for is achieved.
func (c *canvas) diagonal(p plot, x, y axis) {
	var b pen
	for i := range 41 {
		v := x.lo + (min(x.hi, y.hi)-x.lo)*float64(i)/40
		if v <= y.hi {
			b.to(x.at(max(v, x.lo)), y.at(v))
		}
	}
	p.Lines = append(p.Lines, shape{Class: "line s0 dash", D: b.String()})
}

// kneeMark draws the knee, and the interval it lies in.
func (c *canvas) kneeMark(p plot, x axis) {
	k := c.load.Knee
	if k == nil {
		return
	}
	if k.Lo != nil && k.Hi != nil && *k.Hi > *k.Lo {
		var b pen
		b.box(x.at(*k.Lo), p.top, x.at(*k.Hi)-x.at(*k.Lo), p.bottom-p.top)
		p.Areas = append(p.Areas, shape{Class: "interval", D: b.String(), Title: "the knee lies between " + callRate(*k.Lo) + " and " + callRate(*k.Hi) + " calls/s"})
	}
	if k.Rate != nil {
		p.Lines = append(p.Lines, shape{Class: "line knee", D: "M" + px(x.at(*k.Rate)) + " " + px(p.top) + "V" + px(p.bottom)})
	}
}

// through draws levels as marks on a line, periods as dots alone.
func (p plot) through(points []point, x, y axis, class string, of func(point) float64) {
	var line pen
	marks := map[string]*pen{"yes": {}, "no": {}, "open": {}, "period": {}}
	for _, pt := range points {
		v := of(pt)
		if math.IsNaN(v) {
			line.to(math.NaN(), 0)
			continue
		}
		px, py := x.at(pt.asked), y.at(v)
		switch {
		case !pt.level:
			marks["period"].circle(px, py, 2.2)
			continue
		case pt.met == nil:
			marks["open"].circle(px, py, 3.6)
		case *pt.met:
			marks["yes"].circle(px, py, 3.6)
		default:
			marks["no"].cross(px, py, 3.8)
		}
		line.to(px, py)
	}
	if line.Len() > 0 {
		p.Lines = append(p.Lines, shape{Class: "line " + class, D: line.String()})
	}
	for _, kind := range []string{"period", "yes", "no", "open"} {
		if marks[kind].Len() > 0 {
			p.Dots = append(p.Dots, shape{Class: "dot " + kind + " " + class, D: marks[kind].String()})
		}
	}
}

// maxPointHovers bounds what can be pointed at.
const maxPointHovers = 120

func (p plot) pointHovers(points []point, x axis, bottom float64) {
	for i, pt := range points {
		if i < maxPointHovers {
			p.hover(x.at(pt.asked)-4, p.top, 8, bottom-p.top, pt.title)
		}
	}
}

func least(values []float64) float64 {
	low := math.NaN()
	for _, v := range values {
		if v > 0 && (math.IsNaN(low) || v < low) {
			low = v
		}
	}
	return low
}
