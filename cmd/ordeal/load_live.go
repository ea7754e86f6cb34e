package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"ordeal/controller"
	"ordeal/controller/report"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// watch shows how a load goes: as lines of JSON where asked for, as a table on a
// terminal, and not at all else.
func (f *loadFlags) watch(opt *controller.Options, streams Streams) (end func()) {
	switch {
	case f.jsonLines:
		opt.Live = jsonLines(streams.Out, &opt.Spec, opt.By)
		return func() {}
	case f.quiet || f.json:
		return func() {}
	}
	table := newLiveTable(streams.Err, time.Now)
	show := table.observer()
	if show == nil {
		opt.Level = func(l result.LoadLevel) { fmt.Fprintln(streams.Err, levelLine(&l)) }
		return func() {}
	}
	opt.Live = func(l controller.Live) { show(stateOf(&l, &opt.Spec, opt.By)) }
	opt.Level = func(l result.LoadLevel) { table.above(levelLine(&l)) }
	opt.Warnings = func(text string) { table.above("warning: " + text) }
	return table.done
}

// levelLine tells what became of a level of a search.
func levelLine(l *result.LoadLevel) string {
	word := "not judged"
	switch {
	case l.Met != nil && *l.Met && l.Confirms:
		word = "confirmed"
	case l.Met != nil && *l.Met:
		word = "met"
	case l.Met != nil:
		word = "missed"
	}
	return fmt.Sprintf("%.4g/s %s: %s", l.Asked, word, l.Why)
}

func modelOf(s *spec.Spec) string {
	if s.Load.Open {
		return "open"
	}
	return "closed"
}

// stateOf is the table's view of the news.
func stateOf(l *controller.Live, s *spec.Spec, by string) LiveState {
	state := LiveState{Target: s.TargetText, Stage: l.Stage, Model: modelOf(s), Elapsed: l.Elapsed, Total: l.Total, Asked: l.Asked, By: by}
	for i := range l.Rows {
		r := &l.Rows[i]
		row := LiveRow{Name: r.Name, Achieved: perSecond(r.Outcomes[metrics.OK], l.Span), InFlight: r.InFlight, Outcomes: r.Outcomes.Named(), Dropped: r.Dropped}
		if r.Latency.N() > 0 {
			row.P50, row.P95, row.P99 = micro(r.Latency.Quantile(500)), micro(r.Latency.Quantile(950)), micro(r.Latency.Quantile(990))
		}
		state.Rows = append(state.Rows, row)
	}
	return state
}

func micro(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func perSecond(n int64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return float64(n) / span.Seconds()
}

// jsonLines writes a line for every piece of news. An error of w ends the stream,
// not the load.
func jsonLines(w io.Writer, s *spec.Spec, by string) func(controller.Live) {
	var mu sync.Mutex
	return func(l controller.Live) {
		mu.Lock()
		defer mu.Unlock()
		line := report.LiveLine{T: l.Elapsed.Seconds(), Span: l.Span.Seconds(), Stage: l.Stage, Model: modelOf(s), Asked: l.Asked, LiveNumbers: numbersOf(&l.Rows[0], l.Span)}
		for i := range l.Rows[1:] {
			line.By = by
			line.Rows = append(line.Rows, report.LivePart{Name: l.Rows[i+1].Name, LiveNumbers: numbersOf(&l.Rows[i+1], l.Span)})
		}
		_ = report.LiveJSON(w, line)
	}
}

func numbersOf(r *controller.LiveRow, span time.Duration) report.LiveNumbers {
	n := report.LiveNumbers{Achieved: perSecond(r.Outcomes[metrics.OK], span), InFlight: r.InFlight, Outcomes: r.Outcomes.Named(), Dropped: r.Dropped}
	if r.Latency.N() > 0 {
		ms := func(permille int64) *float64 { v := float64(r.Latency.Quantile(permille)) / 1e3; return &v }
		n.P50, n.P95, n.P99 = ms(500), ms(950), ms(990)
	}
	return n
}

// lastLine ends the stream.
func lastLine(w io.Writer, doc *result.Document) error {
	return json.NewEncoder(w).Encode(map[string]any{"run": doc.Run.ID, "verdict": report.Verdict(doc), "passed": doc.Verdict.Passed,
		"reasons": doc.Verdict.Reasons, "partial": doc.Run.Partial})
}
