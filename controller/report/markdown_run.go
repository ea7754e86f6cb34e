package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

func (p *page) howRun(r *reading) {
	p.heading(2, "How this scan was run")
	p.fence("sh", r.reproduce())
	p.line()
	p.line("The seed fixes operations, payloads and faults; times are the target's own.")
	p.line()
	p.settings(r)
	p.fleet(r)
	p.comparability(r)
}

func (p *page) settings(r *reading) {
	body := [][]string{
		{"run", codeCell(r.Run.ID)},
		{"ordeal", escCell(r.OrdealVersion)},
		{"seed", codeCell(r.Run.Seed)},
		{"calls to the target", count(float64(r.Run.Calls))},
		{"reissued operations", count(float64(r.Run.Reissued))},
	}
	for _, name := range slices.Sorted(maps.Keys(r.spec)) {
		if value := settingText(name, r.spec[name]); value != "" && name != "seed" {
			body = append(body, []string{escCell(strings.ReplaceAll(name, "_", " ")), escCell(value)})
		}
	}
	p.table([]string{"setting", "value"}, cutRows(body))
}

// settingText shows a setting; empty when it says nothing.
func settingText(name string, raw json.RawMessage) string {
	switch v := decode[any](raw).(type) {
	case nil:
		return ""
	case float64:
		return strings.TrimSpace(string(raw))
	case map[string]any:
		return string(raw)
	default:
		return scalar(v, "")
	}
}

func (p *page) fleet(r *reading) {
	if len(r.Run.Fleet) == 0 || r.fleetMatters() { // which has a section of its own
		return
	}
	var body [][]string
	for _, a := range r.Run.Fleet {
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
			labels = append(labels, k+"="+a.Labels[k])
		}
		body = append(body, []string{codeCell(a.ID), escCell(a.Version), escCell(strings.Join(labels, ", ")),
			count(float64(a.Units)), count(float64(a.Operations))})
	}
	p.line()
	p.table([]string{"agent", "version", "labels", "units", "operations"}, cutRows(body))
}

func (p *page) comparability(r *reading) {
	c := r.Run.Comparability
	if c.Hash == "" {
		return
	}
	p.line()
	p.line("Comparable with runs of hash ", code(c.Hash), ":")
	p.line()
	var body [][]string
	for _, k := range slices.Sorted(maps.Keys(c.Fields)) {
		body = append(body, []string{escCell(k), codeCell(fit(clean(c.Fields[k]), maxCell))})
	}
	p.table([]string{"field", "value"}, cutRows(body))
}
