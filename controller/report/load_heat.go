package report

import (
	"fmt"
	"math"
	"slices"
)

// heatShades is the number of steps of the heat map's scale.
const heatShades = 8

func (c *canvas) heatFigure() (figure, bool) {
	all := joined(c.periods)
	if !c.overTime() || all.n == 0 {
		return figure{}, false
	}
	wide, most := c.heat(wholeWidth, 380, 150)
	narrow, _ := c.heat(narrowWidth, 300, 48)
	f := figure{Title: "Latency over time", Wide: wide, Narrow: narrow,
		About: "Each cell counts the successes that took that long, on a logarithmic scale of colour. " + c.bookedWhen() + c.notTheTargets(),
		Label: fmt.Sprintf("Heat map of latency over %s: %s, from %s to %s; median %s, 99th percentile %s of the measured part.", lasting(c.end()),
			successes(all.n), timed(all.at(0)), timed(all.at(1)), timed(c.response.at(0.5)), timed(c.response.at(0.99)))}
	for i := range heatShades {
		text := ""
		switch i {
		case 0:
			text = "1 call"
		case heatShades - 1:
			text = times(int64(most), "call") + " in a cell"
		}
		f.Legend = append(f.Legend, legendItem{fmt.Sprintf("h%d", i), text})
	}
	f.Legend = append(f.Legend, legendItem{"line ink", "p50"}, legendItem{"line s2 dash", "p99"}, legendItem{"cut", "cut off: warm-up, drain"})
	return f, true
}

// successes is times for a word that takes another ending.
func successes(n int64) string {
	if n == 1 {
		return "1 success"
	}
	return count(float64(n)) + " successes"
}

func (c *canvas) bookedWhen() string {
	if c.open() {
		return "A call is placed at the moment it was due, and its latency counts from there."
	}
	return "A call is placed at the moment it began."
}

// notTheTargets is what a reader of times has to know where our own side was the limit.
func (c *canvas) notTheTargets() string {
	if !c.last.Generator.Saturated {
		return ""
	}
	return " The agents were the limit: these times are theirs as much as the target's."
}

// heat draws the map, and returns the most calls in a cell.
func (c *canvas) heat(w, h, most int) (*drawing, float64) {
	p := newPlot(w, h)
	x := c.timeAxis(p)
	lo, hi := math.Inf(1), 0.0
	for _, s := range c.periods {
		if s.n > 0 {
			lo, hi = min(lo, s.at(0)), max(hi, s.at(1))
		}
	}
	y := logSeconds(max(lo, 1e-6), hi, p.bottom, p.top)
	p.yAxis(y, y.secondTicks(), "latency")
	rows := int(p.bottom-p.top) / 9
	height := (p.bottom - p.top) / float64(rows)
	cols := c.columns(most, x)
	cells, fullest := c.cells(cols, rows, y, p)
	pens := make([]pen, heatShades)
	for k, col := range cells {
		for row, n := range col {
			if n > 0 {
				pens[heatShade(n, fullest)].box(cols[k].x0, p.bottom-float64(row+1)*height, cols[k].x1-cols[k].x0, height)
			}
		}
	}
	for i := range pens {
		if pens[i].Len() > 0 {
			p.Areas = append(p.Areas, shape{Class: fmt.Sprintf("h%d", i), D: pens[i].String()})
		}
	}
	c.heatLines(p, cols, y)
	return p.drawing, fullest
}

// cells counts the calls of each column and row.
func (c *canvas) cells(cols []column, rows int, y axis, p plot) (cells [][]float64, fullest float64) {
	for _, col := range cols {
		cell := make([]float64, rows)
		for _, s := range c.periods[col.from:col.to] {
			for _, b := range s.bars {
				at := (p.bottom - y.at(max(b.us/1e6, 1e-6))) / (p.bottom - p.top) * float64(rows)
				cell[min(max(int(at), 0), rows-1)] += float64(b.n)
			}
		}
		cells = append(cells, cell)
		fullest = max(fullest, slices.Max(cell))
	}
	return cells, fullest
}

// heatShade is the step of the scale for a count: 0 for one call, the last for the most.
func heatShade(n, most float64) int {
	if most <= 1 {
		return heatShades - 1
	}
	return min(int(math.Log(n)/math.Log(most)*(heatShades-1)+0.5), heatShades-1)
}

// heatLines draws the median and the 99th percentile of each column, and says its
// numbers under the pointer.
func (c *canvas) heatLines(p plot, cols []column, y axis) {
	var p50, p99 pen
	for _, col := range cols {
		s := joined(c.periods[col.from:col.to])
		mid := (col.x0 + col.x1) / 2
		title := c.when(col.stretch) + ": no success"
		if s.n == 0 {
			p50.to(math.NaN(), 0)
			p99.to(math.NaN(), 0)
		} else {
			p50.to(mid, y.at(s.at(0.5)))
			p99.to(mid, y.at(s.at(0.99)))
			title = fmt.Sprintf("%s: %s, p50 %s, p95 %s, p99 %s, max %s", c.when(col.stretch), successes(s.n), timed(s.at(0.5)), timed(s.at(0.95)), timed(s.at(0.99)), timed(s.at(1)))
		}
		p.hover(col.x0, p.top, col.x1-col.x0, p.bottom-p.top, title)
	}
	p.Lines = append(p.Lines, shape{Class: "halo", D: p50.String()}, shape{Class: "halo", D: p99.String()},
		shape{Class: "line ink", D: p50.String()}, shape{Class: "line s2 dash", D: p99.String()})
}
