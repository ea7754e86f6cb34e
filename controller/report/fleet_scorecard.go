package report

import (
	"slices"
	"strings"
)

// fleet is who measured, where that was more than one agent.
func (s *sheet) fleet(r *reading) {
	if !r.fleetMatters() {
		return
	}
	s.line(strong, "Fleet")
	for _, l := range r.fleetLines() {
		lead := ""
		if l.lead != "" {
			head := fit(l.lead, nameColumn-5)
			lead = "  " + head + " " + strings.Repeat(".", nameColumn-4-columns(head))
		}
		s.para(l.tone, lead, nameColumn, l.text)
	}
	s.groups(r)
	s.blank()
}

// groups is the table of a label's values.
func (s *sheet) groups(r *reading) {
	b := r.Fleet.Breakdown
	if b == nil || len(b.Groups) == 0 {
		return
	}
	s.blank()
	var body [][]cell
	for i, g := range b.Groups {
		if i == maxGroups {
			break
		}
		row := slices.Delete(groupRow(g), 1, 2) // the number of agents would not fit
		cells := make([]cell, len(row))
		for k, text := range row {
			cells[k] = cell{text, map[bool]tone{true: quiet}[k == 1 || k == 4 || k == 7]}
		}
		body = append(body, cells)
	}
	s.grid(append([]string{name(b.Label)}, groupHead[1:]...), body)
	if more := len(b.Groups) - maxGroups; more > 0 {
		s.para("", "", 2, times(int64(more), "more value"))
	}
	s.para("", "", 2, comparedOver(b))
}
