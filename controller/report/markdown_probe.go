package report

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"ordeal/controller/result"
)

// reportPhase is one chapter of REPORT.md.
type reportPhase struct{ name, title, about string }

var reportPhases = []reportPhase{
	{"baseline", "Phase 1: baseline", "The target as it is, no fault injected."},
	{"chaos", "Phase 2: fault injection", "The same target while calls are made to fail on a fixed schedule."},
	{"behavior", "Phase 3: behavior", "What became of the operations that a fault disrupted."},
}

// Bounds of one table, so that a hostile document stays a readable page.
const (
	maxTableRows    = 60
	maxTableColumns = 10
)

func (p *page) phase(r *reading, phase reportPhase) {
	p.heading(2, phase.title)
	p.line(phase.about)
	ran := false
	for _, probe := range r.Probes {
		if probe.Phase == phase.name {
			p.probe(r, probe)
			ran = true
		}
	}
	if !ran {
		p.line()
		p.line(sentenceCase(r.whyNotRun(phase.name)), ".")
	}
}

func (p *page) probe(r *reading, probe result.Probe) {
	p.heading(3, esc(probeName(probe.Name)))
	p.line(esc(sentence(summaryText(probe))))
	p.scalars(r, probe)
	if probe.Name == "contract" {
		p.caseKinds(r)
	}
	for _, name := range metricsInOrder(probe.Metrics) {
		if probe.Name == "contract" && (name == "cases" || name == "outcome_by_case") || r.repeats(probe, name) {
			continue
		}
		p.structured(name, probe.Metrics[name].Value)
	}
	p.findings(probe)
}

// repeats reports a metric of the cost probe that is the latency probe's own:
// both read the same calls.
func (r *reading) repeats(probe result.Probe, name string) bool {
	m, same := r.probe("latency"), probe.Metrics[name]
	if probe.Name != "cost" || m == nil {
		return false
	}
	other, ok := m.Metrics[name]
	return ok && other.N == same.N && reflect.DeepEqual(other.Value, same.Value)
}

// scalars is the table of the metrics that are one value. Rows that would hold
// nothing, and no caveat to say why, are left out.
func (p *page) scalars(r *reading, probe result.Probe) {
	var body [][]string
	for _, name := range metricsInOrder(probe.Metrics) {
		m := probe.Metrics[name]
		if _, isMap := m.Value.(map[string]any); isMap || len(rows(m.Value)) > 0 {
			continue
		}
		if m.Value == nil && len(m.Caveats) == 0 || r.repeats(probe, name) {
			continue
		}
		unit := unitOf(name, m.Unit)
		value := cmp.Or(escCell(scalar(m.Value, unit)), "none")
		if len(m.Caveats) > 0 {
			value += " ~"
		}
		body = append(body, []string{escCell(metricName(name)), value, denominator(m.N), interval(m.Interval, unit)})
	}
	if len(body) > 0 {
		p.line()
		p.table([]string{"metric", "value", "n", "95% interval"}, cutRows(body))
	}
}

func (p *page) caseKinds(r *reading) {
	kinds := r.caseKinds()
	if len(kinds) == 0 {
		return
	}
	var body [][]string
	for _, k := range kinds {
		body = append(body, []string{codeCell(k.kind), denominator(int64(k.sent)), escCell(k.worst)})
	}
	p.line()
	p.table([]string{"case kind", "sent", "worst outcome"}, cutRows(body))
}

// structured is the table of a metric that is a map or a list of maps.
func (p *page) structured(name string, v any) {
	if list := rows(v); len(list) > 0 {
		p.listTable(name, list)
		return
	}
	entries := tallies(v)
	if len(entries) == 0 {
		return
	}
	var body [][]string
	for _, e := range entries {
		body = append(body, []string{codeCell(e.name), escCell(scalar(e.value, unitOf(e.name, "")))})
	}
	p.line()
	p.table([]string{escCell(metricName(name)), "value"}, cutRows(body))
}

// columnOrder puts the columns of a level table in reading order.
var columnOrder = append([]string{"level", "concurrency", "rate"}, metricOrder...)

func (p *page) listTable(name string, list []map[string]any) {
	keys := map[string]bool{}
	for _, row := range list[:min(len(list), maxTableRows)] {
		for k, v := range row {
			if scalarish(v) {
				keys[k] = true
			}
		}
	}
	rank := func(k string) int {
		if i := slices.Index(columnOrder, k); i >= 0 {
			return i
		}
		return len(columnOrder)
	}
	cols := slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
	cols = cols[:min(len(cols), maxTableColumns)]
	if len(cols) == 0 {
		return
	}
	var head []string
	for _, c := range cols {
		head = append(head, escCell(metricName(c)))
	}
	var body [][]string
	for _, row := range list {
		line := make([]string, len(cols))
		for i, c := range cols {
			line[i] = escCell(scalar(row[c], unitOf(c, "")))
		}
		body = append(body, line)
	}
	p.line()
	p.line("**", esc(metricName(name)), "**")
	p.line()
	p.table(head, cutRows(body))
}

func scalarish(v any) bool {
	switch v.(type) {
	case nil, float64, string, bool:
		return true
	}
	return false
}

// cutRows bounds a table and says what it left out.
func cutRows(body [][]string) [][]string {
	if len(body) <= maxTableRows {
		return body
	}
	rest := make([]string, len(body[0]))
	rest[0] = times(int64(len(body)-maxTableRows), "more row")
	return append(slices.Clip(body[:maxTableRows]), rest)
}

// maxCell is the widest cell of a table, in columns.
const maxCell = 160

func escCell(s string) string { return esc(fit(clean(s), maxCell)) }

func (p *page) findings(probe result.Probe) {
	if len(probe.Findings) == 0 {
		return
	}
	p.line()
	for _, f := range bySeverity(probe.Findings) {
		p.line("- **", esc(string(f.Severity)), "** (", code(f.ID), "): ", esc(sentence(clean(f.Message))))
		if f.Evidence != "" {
			p.line()
			p.fence("text", cleanBlock(f.Evidence, 20, 1500))
			p.line()
		}
	}
}
