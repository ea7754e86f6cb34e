package report

import (
	"cmp"
	"slices"
	"strings"

	"ordeal/metrics"
)

// loadRow is a fact of a load: plain text, cleaned.
type loadRow struct {
	name, text string
	tone       tone
}

// throughput rows set what was asked for beside what was achieved.
func (v *loading) throughput() []loadRow {
	lv := v.last
	rows := []loadRow{{"asked", v.asked(lv.Asked), ""}}
	if offered, ok := lv.Offered.Number(); ok {
		rows = append(rows, loadRow{"offered", callRate(offered) + " calls/s, " + times(lv.Offered.N, "arrival") + " due", ""})
	}
	if achieved, ok := lv.Achieved.Number(); ok {
		rows = append(rows, loadRow{"achieved", callRate(achieved) + " calls/s, " + times(lv.Achieved.N, "call") + " answered well", strong})
	} else {
		rows = append(rows, loadRow{"achieved", "not measured", quiet})
	}
	if text := v.notSustained(); text != "" {
		rows = append(rows, loadRow{"", sentenceCase(text), bad})
	}
	if text := v.droppedText(); text != "" {
		rows = append(rows, loadRow{"dropped", text, map[bool]tone{true: caveat}[lv.Dropped > 0]})
	}
	if good, ok := v.number("load", "goodput_rps"); ok {
		m := v.metric("load", "good_share")
		text := callRate(good) + " calls/s answered well within the SLO's limits on latency"
		if share, ok := m.Number(); ok {
			text += ", " + rate(share) + " of " + times(m.N, "call")
		}
		rows = append(rows, loadRow{"goodput", text, ""})
	}
	return rows
}

// droppedText counts the arrivals of an open loop that were not sent, and says why.
func (v *loading) droppedText() string {
	lv := v.last
	if !v.open() {
		return ""
	}
	if lv.Dropped == 0 {
		return "none of " + times(lv.Scheduled, "arrival")
	}
	text := count(float64(lv.Dropped)) + " of " + times(lv.Scheduled, "arrival")
	if lv.Scheduled > 0 {
		text += " (" + rate(float64(lv.Dropped)/float64(lv.Scheduled)) + ")"
	}
	text += ": due while as many calls were in flight as allowed"
	if n, ok := v.setting("max_in_flight"); ok && n > 0 {
		text += " (" + count(n) + ")"
	}
	if lv.Outcomes["rate_limited"] > 0 {
		text += ", or in the pause of a quota"
	}
	return text
}

// outcomeRow is a kind of outcome with its share of the calls that say anything
// about the target; of is 0 for one that does not.
type outcomeRow struct {
	name  string
	n, of int64
}

func (o outcomeRow) share() string {
	if o.of <= 0 {
		return absent
	}
	return rate(float64(o.n) / float64(o.of))
}

// denominator of the share, in words.
func (o outcomeRow) denominator() string {
	if o.of <= 0 {
		return "in no rate: says nothing about the target"
	}
	return "of " + times(o.of, "call")
}

// judges reports whether an outcome is one of the target's, see metrics.Outcome;
// one of a later release is taken for that.
func judges(outcome string) bool {
	var o metrics.Outcome
	return o.UnmarshalText([]byte(outcome)) != nil || o.Measured()
}

// outcomesOf lists outcomes, ok first, then the most frequent.
func outcomesOf(counts map[string]int64) []outcomeRow {
	var rows []outcomeRow
	var all int64
	for name, n := range counts {
		if judges(name) {
			all += n
		}
		rows = append(rows, outcomeRow{name: name, n: n})
	}
	slices.SortFunc(rows, func(a, b outcomeRow) int {
		return cmp.Or(yes(b.name == "ok")-yes(a.name == "ok"), cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
	})
	for i := range rows {
		if judges(rows[i].name) {
			rows[i].of = all
		}
		rows[i].name = clean(rows[i].name)
	}
	return rows
}

// percentileRow is one percentile from the due moment, and from the sending.
type percentileRow struct {
	name              string
	response, service metrics.Measured
}

// percentiles of the last level; nil when no call was answered well.
func (v *loading) percentiles() []percentileRow {
	of := func(name string) metrics.Measured { return v.metric("load", name) }
	rows := []percentileRow{
		{"p50", v.last.P50, of("service_p50_s")}, {"p90", of("p90_s"), metrics.Measured{}},
		{"p95", v.last.P95, of("service_p95_s")}, {"p99", v.last.P99, of("service_p99_s")}, {"max", of("max_s"), metrics.Measured{}},
	}
	known := false
	for _, r := range rows {
		_, ok := r.response.Number()
		known = known || ok
	}
	if !known {
		return nil
	}
	return slices.DeleteFunc(rows, func(r percentileRow) bool {
		_, ok := r.response.Number()
		return !ok && (r.name == "p90" || r.name == "max")
	})
}

// hasService reports that the time from the sending is known beside the other.
func hasService(rows []percentileRow) bool {
	return slices.ContainsFunc(rows, func(r percentileRow) bool { _, ok := r.service.Number(); return ok })
}

// shown is a number in its unit, "-" without one.
func shown(m metrics.Measured, unit string) string {
	if v, ok := m.Number(); ok {
		return quantity(v, unit)
	}
	return absent
}

// streamMetrics are the rows about streamed answers, in order.
var streamMetrics = []struct{ metric, label, of string }{
	{"ttft_p50_s", "first token p50", "stream"}, {"ttft_p95_s", "first token p95", "stream"}, {"ttft_p99_s", "first token p99", "stream"},
	{"inter_token_gap_p50_s", "token gap p50", "stream"}, {"inter_token_gap_p95_s", "token gap p95", "stream"},
	{"tokens_out_per_s", "tokens out", "answer with usage"}, {"tokens_in_per_s", "tokens in", "answer with usage"},
	{"cached_input_share", "cached input", "answer with usage"}, {"truncated_streams", "truncated", "call"},
}

// streams are the rows about streamed answers; nil where nothing streamed and no
// tokens were reported.
func (v *loading) streams() []loadRow {
	_, tokens := v.number("load", "tokens_out_per_s")
	if _, first := v.number("load", "ttft_p50_s"); !first && !tokens {
		return nil
	}
	var rows []loadRow
	for _, s := range streamMetrics {
		m := v.metric("load", s.metric)
		value, ok := m.Number()
		if !ok {
			continue
		}
		text := quantity(value, unitOf(s.metric, m.Unit))
		if strings.HasPrefix(s.metric, "tokens_") {
			text = callRate(value) + " tokens/s"
		}
		if m.Interval != nil {
			text += " (" + interval(m.Interval, unitOf(s.metric, m.Unit)) + ")"
		}
		rows = append(rows, loadRow{s.label, text + ", " + ofCalls(m.N, s.of), ""})
	}
	return rows
}

// ofCalls is the denominator of a row.
func ofCalls(n int64, one string) string {
	if one == "answer with usage" {
		return "n " + count(float64(n)) + " with usage"
	}
	return "of " + times(n, one)
}

// generator rows are what the agents say about themselves.
func (v *loading) generator() []loadRow {
	g := v.last.Generator
	rows := []loadRow{{"generator", "kept up", ""}}
	if g.Saturated {
		text := "SATURATED: " + cmp.Or(fit(clean(g.Reason), 160), "the agents were the limit")
		if g.MoreAgents > 0 {
			text += "; about " + times(int64(g.MoreAgents), "more agent") + " like these would keep up"
		}
		if v.last.Met != nil { // what was asked for was met all the same
			rows[0] = loadRow{"generator", sentence(text), caveat}
		} else {
			rows[0] = loadRow{"generator", sentence(text + ": the target is not judged by this load"), bad}
		}
	}
	text := "busiest agent " + plain(g.CPU, 2) + " cores, garbage collection paused it " + seconds(g.GCPauseS)
	rows = append(rows, loadRow{"its cost", text, quiet})
	if g.LateP50 != nil || g.LateP99 != nil {
		text := "woken behind due: p50 " + optional(g.LateP50, seconds) + ", p99 " + optional(g.LateP99, seconds)
		rows = append(rows, loadRow{"lateness", text, quiet})
	}
	if s := v.load.Sessions; s.Opened > 0 || s.Reopened > 0 {
		text := count(float64(s.Opened)) + " opened for the load"
		if s.Reopened > 0 {
			text += ", " + count(float64(s.Reopened)) + " of them in place of lost ones"
		}
		rows = append(rows, loadRow{"sessions", text, map[bool]tone{true: caveat, false: quiet}[s.Reopened > 0]})
	}
	return rows
}
