package report

import (
	"math"
	"strconv"
	"strings"
)

// drawing is an SVG of fixed size: its marks by layer, in the order of painting. All
// text in it is plain; the template escapes it. Classes are this package's own words.
type drawing struct {
	W, H   int
	Areas  []shape
	Grid   []shape
	Lines  []shape
	Dots   []shape
	Texts  []caption
	Hovers []hover
}

// shape is a path.
type shape struct{ Class, D, Title string }

// caption is a piece of text at a point; Class says size, weight and anchor.
type caption struct{ X, Y, Class, Text string }

// hover is an invisible rectangle that tells what is under the pointer.
type hover struct{ X, Y, W, H, Title string }

// px writes a length in pixels, to a tenth.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(finite(v)*10)/10, 'f', -1, 64)
}

// plot is the inside of a chart, in pixels of its drawing.
type plot struct {
	*drawing
	left, right, top, bottom float64
}

// edges around a plot: room for the numbers of its axes.
const (
	edgeLeft   = 58
	edgeRight  = 14
	edgeTop    = 22
	edgeBottom = 40
)

func newPlot(w, h int) plot {
	return plot{&drawing{W: w, H: h}, edgeLeft, float64(w - edgeRight), edgeTop, float64(h - edgeBottom)}
}

func (p plot) text(x, y float64, class, text string) {
	p.Texts = append(p.Texts, caption{px(x), px(y), class, text})
}

func (p plot) hover(x, y, w, h float64, title string) {
	p.Hovers = append(p.Hovers, hover{px(x), px(y), px(w), px(h), title})
}

// yAxis draws gridlines with their numbers, and what they count above them.
func (p plot) yAxis(y axis, ticks []tick, about string) {
	for _, t := range ticks {
		at := y.at(t.at)
		p.Grid = append(p.Grid, shape{Class: "grid", D: "M" + px(p.left) + " " + px(at) + "H" + px(p.right)})
		p.text(p.left-7, at+4, "tick end", t.text)
	}
	p.text(2, p.top-9, "unit", about)
}

// xAxis draws the marks below the plot, and what they count.
func (p plot) xAxis(x axis, ticks []tick, about string) {
	p.Grid = append(p.Grid, shape{Class: "base", D: "M" + px(p.left) + " " + px(p.bottom) + "H" + px(p.right)})
	for _, t := range ticks {
		at := x.at(t.at)
		p.Grid = append(p.Grid, shape{Class: "base", D: "M" + px(at) + " " + px(p.bottom) + "v4"})
		class := "tick mid"
		if at > p.right-12 {
			class = "tick end"
			at = p.right + 6
		}
		p.text(at, p.bottom+17, class, t.text)
	}
	p.text((p.left+p.right)/2, p.bottom+34, "unit mid", about)
}

// pen collects a path.
type pen struct {
	strings.Builder
	down bool
}

// to draws a line to a point, or begins one there; NaN lifts the pen.
func (p *pen) to(x, y float64) {
	if math.IsNaN(x) || math.IsNaN(y) {
		p.down = false
		return
	}
	op := "M"
	if p.down {
		op = "L"
	}
	p.down = true
	p.WriteString(op + px(x) + " " + px(y))
}

// box adds a filled rectangle.
func (p *pen) box(x, y, w, h float64) {
	p.WriteString("M" + px(x) + " " + px(y) + "h" + px(w) + "v" + px(h) + "h" + px(-w) + "z")
}

// circle and cross are marks of a point.
func (p *pen) circle(x, y, r float64) {
	p.WriteString("M" + px(x-r) + " " + px(y) + "a" + px(r) + " " + px(r) + " 0 1 0 " + px(2*r) + " 0a" + px(r) + " " + px(r) + " 0 1 0 " + px(-2*r) + " 0z")
}

func (p *pen) cross(x, y, r float64) {
	p.WriteString("M" + px(x-r) + " " + px(y-r) + "l" + px(2*r) + " " + px(2*r) + "M" + px(x-r) + " " + px(y+r) + "l" + px(2*r) + " " + px(-2*r))
}
