package report

import (
	"fmt"
	"math"

	"ordeal/controller/result"
)

// figure is a chart in two sizes, of which the page shows the one that fits.
type figure struct {
	Title, About, Label string // Label is what it shows, for who does not see it
	Wide, Narrow        *drawing
	Legend              []legendItem
	Half                bool // stands beside another on a wide page
}

// legendItem explains a mark; Class is that of its swatch.
type legendItem struct{ Class, Text string }

// Sizes of a drawing in pixels: a whole row of a wide page, half of one, and a phone.
const (
	wholeWidth  = 1120
	halfWidth   = 548
	narrowWidth = 350
)

// canvas is a load test prepared for its charts.
type canvas struct {
	*loading
	periods  []spread // latencies of each period
	response spread   // of the measured part
}

func (v *loading) canvas() *canvas {
	periods := v.perPeriod()
	return &canvas{v, periods, v.response(periods)}
}

// figures are the charts that the document has anything for.
func (c *canvas) figures() []figure {
	var out []figure
	for _, make := range []func() (figure, bool){c.heatFigure, c.flowFigure, c.errorFigure, c.spectrumFigure, c.kneeFigure, c.lateFigure} {
		if f, ok := make(); ok {
			out = append(out, f)
		}
	}
	return out
}

// end is when the last period ends, in seconds.
func (c *canvas) end() float64 {
	n := len(c.load.Periods)
	if n == 0 {
		return 0
	}
	return finite(c.load.Periods[n-1].FromS) + finite(c.load.PeriodS)
}

// overTime reports whether there is a course to draw.
func (c *canvas) overTime() bool { return len(c.load.Periods) > 0 && c.load.PeriodS > 0 && c.end() > 0 }

// timeAxis draws the time axis of a plot and shades what was cut off.
func (c *canvas) timeAxis(p plot) axis {
	x := axis{lo: 0, hi: c.end(), a: p.left, b: p.right}
	p.xAxis(x, x.timeTicks(max(2, int(p.right-p.left)/90)), "time since the start of the load")
	c.shade(p, x)
	return x
}

// shade marks the periods that no number is about.
func (c *canvas) shade(p plot, x axis) {
	periods := c.load.Periods
	for i := 0; i < len(periods); {
		j := i
		for j < len(periods) && periods[j].Measured == periods[i].Measured {
			j++
		}
		if !periods[i].Measured {
			from, to := x.at(periods[i].FromS), x.at(periods[j-1].FromS+c.load.PeriodS)
			var b pen
			b.box(from, p.top, to-from, p.bottom-p.top)
			p.Areas = append(p.Areas, shape{Class: "cut", D: b.String()})
		}
		i = j
	}
}

// columns are the periods in at most n groups, each with its pixels.
type column struct {
	stretch
	x0, x1 float64
}

func (c *canvas) columns(n int, x axis) []column {
	var out []column
	for _, g := range grouped(len(c.load.Periods), n) {
		from := c.load.Periods[g.from].FromS
		out = append(out, column{g, x.at(from), x.at(c.load.Periods[g.to-1].FromS + c.load.PeriodS)})
	}
	return out
}

func (c *canvas) when(g stretch) string {
	from := c.load.Periods[g.from].FromS
	return lasting(from) + " to " + lasting(c.load.Periods[g.to-1].FromS+c.load.PeriodS)
}

// seconds of a group of periods.
func (c *canvas) length(g stretch) float64 { return float64(g.to-g.from) * c.load.PeriodS }

// sum adds a count over a group of periods.
func (c *canvas) sum(g stretch, of func(*result.LoadPeriod) int64) float64 {
	n := 0.0
	for i := g.from; i < g.to; i++ {
		n += float64(of(&c.load.Periods[i]))
	}
	return n
}

func (c *canvas) flowFigure() (figure, bool) {
	if !c.overTime() {
		return figure{}, false
	}
	f := figure{Title: "Throughput over time", Wide: c.flow(wholeWidth, 330, 150), Narrow: c.flow(narrowWidth, 330, 60),
		About: "Above, the calls answered well in each moment, whenever they were due; below, the most calls in flight at once.",
		Label: c.flowLabel()}
	f.Legend = []legendItem{{"line s1", "achieved"}}
	if c.open() {
		f.Legend = append(f.Legend, legendItem{"line s0 dash", "asked"})
	}
	f.Legend = append(f.Legend, legendItem{"area s3", "in flight"})
	if !c.open() {
		f.Legend = append(f.Legend, legendItem{"line s0 dash", "callers asked"})
	}
	f.Legend = append(f.Legend, legendItem{"cut", "cut off: warm-up, drain"})
	return f, true
}

func (c *canvas) flowLabel() string {
	text := "Throughput over " + lasting(c.end())
	if v, ok := c.last.Achieved.Number(); ok {
		text += ": " + callRate(v) + " calls/s achieved, asked " + c.asked(c.last.Asked)
	}
	return text + "; most calls in flight " + count(most(c.eachPeriod(func(p *result.LoadPeriod) float64 { return float64(p.InFlight) }))) + "."
}

func (c *canvas) eachPeriod(of func(*result.LoadPeriod) float64) []float64 {
	out := make([]float64, len(c.load.Periods))
	for i := range c.load.Periods {
		out[i] = of(&c.load.Periods[i])
	}
	return out
}

// flow draws achieved and asked above, and the calls in flight below.
func (c *canvas) flow(w, h, n int) *drawing {
	below := newPlot(w, h)
	x := c.timeAxis(plot{below.drawing, below.left, below.right, edgeTop, below.bottom})
	above := below
	split := below.bottom - (below.bottom-below.top)*0.36
	above.bottom, below.top = split-16, split+16
	cols := c.columns(n, x)
	achieved, asked, flight := make([]float64, len(cols)), make([]float64, len(cols)), make([]float64, len(cols))
	for i, col := range cols {
		achieved[i] = c.sum(col.stretch, func(p *result.LoadPeriod) int64 { return p.Succeeded }) / c.length(col.stretch)
		for _, p := range c.load.Periods[col.from:col.to] {
			asked[i] += finite(p.Asked) / float64(col.to-col.from)
			flight[i] = max(flight[i], float64(p.InFlight))
		}
	}
	top, low := most(achieved), most(flight)
	if c.open() {
		top = max(top, most(asked))
	} else {
		low = max(low, most(asked))
	}
	y, yFlight := linear(top, above.bottom, above.top), linear(low, below.bottom, below.top)
	above.yAxis(y, y.ticks(), "calls/s")
	below.yAxis(yFlight, thinned(yFlight.ticks(), 3), "in flight")
	below.steps(cols, flight, yFlight, "area s3")
	if c.open() {
		above.course(cols, asked, y, "line s0 dash")
	} else {
		below.course(cols, asked, yFlight, "line s0 dash")
	}
	above.course(cols, achieved, y, "line s1")
	for i, col := range cols {
		above.hover(col.x0, above.top, col.x1-col.x0, below.bottom-above.top, fmt.Sprintf("%s: achieved %s calls/s, asked %s, at most %s in flight",
			c.when(col.stretch), callRate(achieved[i]), c.asked(asked[i]), count(flight[i])))
	}
	return below.drawing
}

// thinned keeps every second tick until there are at most n.
func thinned(ticks []tick, n int) []tick {
	for len(ticks) > n {
		var kept []tick
		for i := 0; i < len(ticks); i += 2 {
			kept = append(kept, ticks[i])
		}
		ticks = kept
	}
	return ticks
}

// course draws a line through the middle of each column.
func (p plot) course(cols []column, values []float64, y axis, class string) {
	var b pen
	for i, col := range cols {
		if math.IsNaN(values[i]) {
			b.to(math.NaN(), 0)
			continue
		}
		b.to((col.x0+col.x1)/2, y.at(values[i]))
	}
	p.Lines = append(p.Lines, shape{Class: class, D: b.String()})
}

// steps fills each column up to its value.
func (p plot) steps(cols []column, values []float64, y axis, class string) {
	var b pen
	for i, col := range cols {
		if at := y.at(values[i]); values[i] > 0 {
			b.box(col.x0, at, col.x1-col.x0, p.bottom-at)
		}
	}
	p.Areas = append(p.Areas, shape{Class: class, D: b.String()})
}

func (c *canvas) lateFigure() (figure, bool) {
	late := c.eachPeriod(func(p *result.LoadPeriod) float64 { return orNaN(p.LateP99S) })
	if top := most(late); !c.overTime() || math.IsNaN(top) {
		return figure{}, false
	}
	return figure{Title: "Lateness of the generator", Half: true, Wide: c.late(halfWidth, 380, 100), Narrow: c.late(narrowWidth, 240, 60),
		About: "How long after a due time our own side woke, 99th percentile. It is part of every latency from the due moment.",
		Label: "Lateness of the generator over " + lasting(c.end()) + ": p99 of a period at most " + timed(most(late)) + ".", Legend: []legendItem{{"line s4", "p99 behind due"}}}, true
}

func (c *canvas) late(w, h, n int) *drawing {
	p := newPlot(w, h)
	x := c.timeAxis(p)
	cols := c.columns(n, x)
	values := make([]float64, len(cols))
	lo := math.Inf(1)
	for i, col := range cols {
		var late []float64
		for _, period := range c.load.Periods[col.from:col.to] {
			late = append(late, orNaN(period.LateP99S))
		}
		if values[i] = most(late); values[i] > 0 {
			lo = min(lo, values[i])
		}
	}
	y := logSeconds(max(lo, 1e-6), most(values), p.bottom, p.top)
	p.yAxis(y, y.secondTicks(), "behind due")
	for i, col := range cols {
		p.hover(col.x0, p.top, col.x1-col.x0, p.bottom-p.top, c.when(col.stretch)+": p99 "+optional(&values[i], timed))
		if values[i] == 0 {
			values[i] = y.lo
		}
	}
	p.course(cols, values, y, "line s4")
	return p.drawing
}

// timed is a length of time, "-" where there is none.
func timed(v float64) string { return quantity(v, "s") }
