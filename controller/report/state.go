package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// stateVersion of the block at the end of AGENTS.md.
const stateVersion = 1

// maxState bounds the block that is read back, in bytes.
const maxState = 64 << 10

// The marks a state block begins with: ours, and the one of RateMyAgent, whose
// version 1 holds a subset of the same fields.
const (
	ownMark     = "<!-- ordeal-state"
	foreignMark = "<!-- ratemyagent-state"
	endMark     = "-->"
)

// state is what AGENTS.md remembers of a run, so that the next one can say
// what moved.
type state struct {
	Version     int                 `json:"version"`
	GeneratedAt string              `json:"generated_at"`
	Target      string              `json:"target"`
	Tool        string              `json:"tool,omitempty"`
	Args        json.RawMessage     `json:"args,omitempty"`
	Policy      string              `json:"policy"`
	Score       *float64            `json:"score"`
	Passed      *bool               `json:"passed"`
	Metrics     map[string]*float64 `json:"metrics"`
	Intervals   map[string]span     `json:"intervals,omitempty"`
	N           map[string]int64    `json:"n,omitempty"`

	Comparability string            `json:"comparability,omitempty"`
	Fields        map[string]string `json:"fields,omitempty"` // comparability field → short digest of its value

	foreign bool // written by RateMyAgent
}

// span is an interval as [lo, hi].
type span [2]float64

// MarshalJSON writes an open end as null.
func (s span) MarshalJSON() ([]byte, error) {
	var ends [2]*float64
	for i, v := range s {
		if !math.IsInf(v, 0) {
			ends[i] = &v
		}
	}
	return json.Marshal(ends)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *span) UnmarshalJSON(data []byte) error {
	var ends [2]*float64
	if err := json.Unmarshal(data, &ends); err != nil {
		return err
	}
	for i, v := range ends {
		if v == nil {
			s[i] = math.Inf(2*i - 1)
			continue
		}
		s[i] = *v
	}
	return nil
}

// trackedMetric is a number whose movement between scans is worth a line.
type trackedMetric struct {
	key, label    string // in the block, for a reader
	probe, metric string
	unit          string
	higherBetter  bool
	exact         bool   // a count of what happened to the calls sent; no sampling noise
	check         string // its check, whose interval serves when the metric has none
}

var tracked = []trackedMetric{
	{key: "duplicate_mutations", label: "duplicate mutations", probe: "behavior", metric: "duplicate_mutations", unit: "count", exact: true},
	{key: "crashes", label: "crashes on malformed input", probe: "contract", metric: "crashes", unit: "count", exact: true},
	{key: "accepted_invalid", label: "invalid inputs accepted", probe: "contract", metric: "accepted_invalid", unit: "count", exact: true},
	{key: "recovery_rate", label: "recovery rate", probe: "behavior", metric: "recovery_rate", unit: "rate", higherBetter: true, check: "recovery_rate_min"},
	{key: "error_rate", label: "error rate", probe: "latency", metric: "error_rate", unit: "rate", check: "error_rate_max"},
	{key: "p95_s", label: "p95 latency", probe: "latency", metric: "p95_s", unit: "s", check: "p95_latency_ms"},
	{key: "p99_s", label: "p99 latency", probe: "latency", metric: "p99_s", unit: "s", check: "p99_latency_ms"},
	{key: "cost_per_request", label: "cost per request", probe: "cost", metric: "cost_per_request", unit: "$", check: "cost_per_request_max"},
	{key: "max_sustained_concurrency", label: "sustained concurrency", probe: "concurrency", metric: "max_sustained_concurrency", unit: "count", higherBetter: true},
	{key: "retry_amplification", label: "retry amplification", probe: "behavior", metric: "retry_amplification", unit: "x", check: "retry_amplification_max"},
}

// stateOf collects the state of a run. Metrics that were withheld are left out.
func stateOf(r *reading, now time.Time) *state {
	s := &state{
		Version: stateVersion, GeneratedAt: now.UTC().Format(time.RFC3339),
		Target: r.Target.Name, Tool: r.Target.Tool, Args: r.Target.ToolArgs,
		Policy: r.Verdict.Policy, Score: r.Verdict.Score, Passed: r.Verdict.Passed,
		Metrics: map[string]*float64{}, Intervals: map[string]span{}, N: map[string]int64{},
		Comparability: r.Run.Comparability.Hash, Fields: map[string]string{},
	}
	for _, t := range tracked {
		m := r.metric(t.probe, t.metric)
		v, ok := m.Number()
		if !ok {
			continue
		}
		s.Metrics[t.key] = &v
		if m.N > 0 {
			s.N[t.key] = m.N
		}
		if iv := r.intervalOf(t, m); iv != nil {
			s.Intervals[t.key] = span{iv.Lo, iv.Hi}
		}
	}
	for k, v := range r.Run.Comparability.Fields {
		s.Fields[k] = digest(v)
	}
	return s
}

// intervalOf is the metric's interval, else that of its check in the unit of
// the metric.
func (r *reading) intervalOf(t trackedMetric, m metrics.Measured) *metrics.Interval {
	c := r.check(t.check)
	switch {
	case t.exact:
		return nil
	case m.Interval != nil:
		return m.Interval
	case c == nil || c.Interval == nil || c.Status == result.NA:
		return nil
	case c.Unit == "ms":
		return &metrics.Interval{Lo: c.Interval.Lo / 1e3, Hi: c.Interval.Hi / 1e3}
	}
	return c.Interval
}

// digest is short: it has to tell two values apart, not to withstand an attack.
func digest(v string) string {
	sum := sha256.Sum256([]byte(v))
	return hex.EncodeToString(sum[:4])
}

// block writes the state as an HTML comment, one line per member.
// encoding/json escapes < and >, so nothing inside can end the comment.
func (s *state) block() (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("agents guide: state: %w", err)
	}
	return ownMark + "\n" + onePerLine(raw) + "\n" + endMark + "\n", nil
}

// onePerLine breaks a compact JSON object between its members, not inside them.
func onePerLine(raw []byte) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i, c := range raw {
		switch {
		case quoted:
			quoted = c != '"' || raw[i-1] == '\\' && !endsEscape(raw[:i])
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if !quoted && depth == 0 && c == '}' {
			b.WriteByte('\n')
		}
		b.WriteByte(c)
		if !quoted && depth == 1 && (c == ',' || i == 0) {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// endsEscape reports whether the backslashes at the end escape each other.
func endsEscape(raw []byte) bool {
	return (len(raw)-len(bytes.TrimRight(raw, `\`)))%2 == 0
}

// readState finds the last state block of a guide. found reports whether there
// was one at all; s is nil when it could not be read.
func readState(guide []byte) (s *state, found bool) {
	own, foreign := bytes.LastIndex(guide, []byte(ownMark)), bytes.LastIndex(guide, []byte(foreignMark))
	at, mark := own, ownMark
	if foreign > own {
		at, mark = foreign, foreignMark
	}
	if at < 0 {
		return nil, false
	}
	body := guide[at+len(mark):]
	end := bytes.Index(body, []byte(endMark))
	if end < 0 || end > maxState {
		return nil, true
	}
	s = &state{foreign: mark == foreignMark}
	if err := json.Unmarshal(body[:end], s); err != nil || s.Version != stateVersion {
		return nil, true
	}
	return s, true
}

// sameJSON compares two values of JSON by content; absent equals null and {}.
func sameJSON(a, b json.RawMessage) bool { return canonical(a) == canonical(b) }

func canonical(raw json.RawMessage) string {
	v := decode[any](raw)
	if m, ok := v.(map[string]any); v == nil || ok && len(m) == 0 {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return strings.TrimSpace(string(raw))
	}
	return string(out)
}
