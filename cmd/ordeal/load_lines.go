package main

import (
	"encoding/json"
	"io"
	"math"
	"sync"

	"ordeal/controller"
	"ordeal/controller/report"
	"ordeal/controller/result"
)

// liveLine is one line of --json-lines: what the fleet observed since the line
// before. Percentiles are null without an answer.
type liveLine struct {
	Stage    string           `json:"stage"`
	TS       float64          `json:"t_s"` // since the stage was begun
	SpanS    float64          `json:"span_s"`
	Asked    float64          `json:"asked"`    // callers, or arrivals per second
	Achieved float64          `json:"achieved"` // answers per second, good and bad
	InFlight int64            `json:"in_flight"`
	P50MS    *float64         `json:"p50_ms"`
	P95MS    *float64         `json:"p95_ms"`
	P99MS    *float64         `json:"p99_ms"`
	Outcomes map[string]int64 `json:"outcomes"`
	Dropped  int64            `json:"dropped"`
	By       []liveLine       `json:"by,omitempty"`
	Name     string           `json:"name,omitempty"` // of a part: the value of the label of --by
}

// jsonLines writes a line for every piece of news. An error of w ends the stream,
// not the load.
func jsonLines(w io.Writer) func(controller.Live) {
	var mu sync.Mutex
	enc := json.NewEncoder(w)
	return func(l controller.Live) {
		mu.Lock()
		defer mu.Unlock()
		line := lineOf(&l, &l.Rows[0])
		for i := range l.Rows[1:] {
			line.By = append(line.By, lineOf(&l, &l.Rows[i+1]))
		}
		_ = enc.Encode(line)
	}
}

func lineOf(l *controller.Live, r *controller.LiveRow) liveLine {
	out := liveLine{Stage: l.Stage, TS: round3(l.Elapsed.Seconds()), SpanS: round3(l.Span.Seconds()), Asked: l.Asked, InFlight: r.InFlight,
		Outcomes: map[string]int64{}, Dropped: r.Dropped, Name: r.Name}
	if s := l.Span.Seconds(); s > 0 {
		out.Achieved = round3(float64(r.Outcomes.Total()) / s)
	}
	for o, n := range r.Outcomes {
		if n > 0 {
			out.Outcomes[o.String()] = n
		}
	}
	if r.Latency.N() > 0 {
		ms := func(permille int64) *float64 { v := float64(r.Latency.Quantile(permille)) / 1e3; return &v }
		out.P50MS, out.P95MS, out.P99MS = ms(500), ms(950), ms(990)
	}
	return out
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// lastLine ends the stream.
func lastLine(w io.Writer, doc *result.Document) error {
	return json.NewEncoder(w).Encode(map[string]any{"run": doc.Run.ID, "verdict": report.Verdict(doc), "passed": doc.Verdict.Passed,
		"reasons": doc.Verdict.Reasons, "partial": doc.Run.Partial})
}
