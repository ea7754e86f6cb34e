package report

import (
	"encoding/json"
	"io"
	"math"
)

// LiveLine is a window of a load while it runs, one JSON object per line: a preview
// for other tools, made of what the agents have said so far.
type LiveLine struct {
	T     float64 `json:"t_s"`      // seconds since the level began, at the end of the window
	Span  float64 `json:"window_s"` // that the counts are about
	Stage string  `json:"stage"`
	Model string  `json:"model"` // closed, open
	// Asked is in callers in a closed loop, in arrivals per second in an open one.
	Asked float64 `json:"asked"`
	LiveNumbers
	By   string     `json:"by,omitempty"` // the label whose values the parts are
	Rows []LivePart `json:"parts,omitempty"`
}

// LivePart is what the agents with one value of a label observed.
type LivePart struct {
	Name string `json:"name"`
	LiveNumbers
}

// LiveNumbers are what was observed in a window. Percentiles are those of its
// successes in milliseconds, null without one.
type LiveNumbers struct {
	Achieved float64          `json:"achieved"` // calls/s answered well
	InFlight int64            `json:"in_flight"`
	P50      *float64         `json:"p50_ms"`
	P95      *float64         `json:"p95_ms"`
	P99      *float64         `json:"p99_ms"`
	Outcomes map[string]int64 `json:"outcomes"`
	Dropped  int64            `json:"dropped"`
}

// LiveJSON writes the line in one piece, so that lines of several writers never mix
// inside. A number that is none is null, or 0 where there is always one. The error
// is w's.
func LiveJSON(w io.Writer, line LiveLine) error {
	line.T, line.Span, line.Asked = finite(line.T), finite(line.Span), finite(line.Asked)
	line.LiveNumbers = line.sound()
	rows := make([]LivePart, len(line.Rows))
	for i, r := range line.Rows {
		rows[i] = LivePart{r.Name, r.sound()}
	}
	line.Rows = rows
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// sound has a JSON form for each number.
func (n LiveNumbers) sound() LiveNumbers {
	n.Achieved = finite(n.Achieved)
	for _, p := range []**float64{&n.P50, &n.P95, &n.P99} {
		if *p != nil && (math.IsNaN(**p) || math.IsInf(**p, 0)) {
			*p = nil
		}
	}
	if n.Outcomes == nil {
		n.Outcomes = map[string]int64{}
	}
	return n
}
