package report

import (
	"cmp"
	"fmt"
	"slices"

	"ordeal/controller/result"
)

// droppedKind names dropped arrivals among the outcomes of a chart.
const droppedKind = "dropped, not sent"

// errorKinds are what went wrong at the target over the whole course, most frequent first; what
// is beyond maxErrorKinds is one.
const maxErrorKinds = 5

func (c *canvas) errorKinds() (kinds []string, total int64) {
	sum := map[string]int64{}
	for i := range c.load.Periods {
		p := &c.load.Periods[i]
		for k, n := range p.Outcomes {
			if k != "ok" && n > 0 && judges(k) {
				sum[k] += n
				total += n
			}
		}
	}
	for k := range sum {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b)) })
	return kinds, total
}

func (c *canvas) errorFigure() (figure, bool) {
	kinds, failed := c.errorKinds()
	var dropped int64
	for i := range c.load.Periods {
		dropped += c.load.Periods[i].Dropped
	}
	if !c.overTime() || failed+dropped == 0 {
		return figure{}, false
	}
	series := c.errorSeries(kinds, dropped > 0)
	f := figure{Title: "Errors over time", Wide: c.errors(wholeWidth, 260, 150, series), Narrow: c.errors(narrowWidth, 260, 60, series),
		About: "Calls that were not answered well, stacked by what became of them, at the moment they " + map[bool]string{true: "were due.", false: "began."}[c.open()],
		Label: "Errors over " + lasting(c.end()) + ": " + times(failed, "failed call") + " and " + times(dropped, "dropped arrival") + "."}
	for _, s := range series {
		f.Legend = append(f.Legend, legendItem{s.class, s.name})
	}
	f.Legend = append(f.Legend, legendItem{"cut", "cut off: warm-up, drain"})
	return f, true
}

// errorSeries is one layer of the stack.
type errorSeries struct {
	name, class string
	of          func(*result.LoadPeriod) int64
}

func (c *canvas) errorSeries(kinds []string, dropped bool) []errorSeries {
	var out []errorSeries
	shownKinds := kinds[:min(len(kinds), maxErrorKinds)]
	for i, k := range shownKinds {
		out = append(out, errorSeries{fit(clean(k), maxID), fmt.Sprintf("area e%d", i), func(p *result.LoadPeriod) int64 { return max(p.Outcomes[k], 0) }})
	}
	if rest := kinds[len(shownKinds):]; len(rest) > 0 {
		out = append(out, errorSeries{"other outcomes", "area e5", func(p *result.LoadPeriod) (n int64) {
			for _, k := range rest {
				n += max(p.Outcomes[k], 0)
			}
			return n
		}})
	}
	if dropped {
		out = append(out, errorSeries{droppedKind, "area e6", func(p *result.LoadPeriod) int64 { return max(p.Dropped, 0) }})
	}
	return out
}

func (c *canvas) errors(w, h, n int, series []errorSeries) *drawing {
	p := newPlot(w, h)
	x := c.timeAxis(p)
	cols := c.columns(n, x)
	rates := make([][]float64, len(cols))
	top := 0.0
	for i, col := range cols {
		all := 0.0
		for _, s := range series {
			v := c.sum(col.stretch, s.of) / c.length(col.stretch)
			rates[i] = append(rates[i], v)
			all += v
		}
		top = max(top, all)
	}
	y := linear(top, p.bottom, p.top)
	p.yAxis(y, y.ticks(), "calls/s")
	pens := make([]pen, len(series))
	for i, col := range cols {
		below, title := 0.0, c.when(col.stretch)+":"
		for k, v := range rates[i] {
			if v > 0 {
				from, to := y.at(below), y.at(below+v)
				pens[k].box(col.x0, to, col.x1-col.x0, from-to)
				title += " " + callRate(v) + "/s " + series[k].name + ","
			}
			below += v
		}
		if below == 0 {
			title += " none,"
		}
		p.hover(col.x0, p.top, col.x1-col.x0, p.bottom-p.top, title[:len(title)-1])
	}
	for k, s := range series {
		p.Areas = append(p.Areas, shape{Class: s.class, D: pens[k].String()})
	}
	return p.drawing
}
