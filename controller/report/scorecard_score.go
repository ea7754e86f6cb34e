package report

import (
	"fmt"
	"strings"

	"ordeal/controller/result"
)

func (s *sheet) breakdown(r *reading) {
	if len(r.Breakdown) == 0 {
		return
	}
	s.line(strong, "Score breakdown")
	nameWidth := 0
	for _, d := range r.Breakdown {
		nameWidth = max(nameWidth, min(columns(clean(d.Dimension)), 16))
	}
	for _, d := range r.Breakdown {
		lead := "  " + pad(fit(clean(d.Dimension), nameWidth), nameWidth) + "  " + pad(leftPad(dimensionPoints(d), 7), 7)
		s.para(dimensionTone(d), lead, nameWidth+13, dimensionNote(d))
	}
	s.blank()
}

func leftPad(text string, n int) string {
	return strings.Repeat(" ", max(0, n-columns(text))) + text
}

func dimensionTone(d result.Dimension) tone {
	switch {
	case d.Points == nil:
		return quiet
	case d.Weight-*d.Points < 0.05:
		return good
	}
	return caveat
}

func (s *sheet) score(r *reading) {
	v := r.Verdict
	lead := "Score: none"
	if v.Score != nil {
		lead = "Score: " + points(*v.Score) + "/100"
	}
	var about []string
	if v.CapReason != "" && v.UncappedScore != nil {
		about = append(about, "capped from "+points(*v.UncappedScore)+": "+clean(v.CapReason))
	}
	if v.Policy != "" {
		about = append(about, "policy "+clean(v.Policy))
	}
	if len(about) > 0 {
		s.para(strong, lead, columns(lead)+2, "("+strings.Join(about, "; ")+")")
	} else {
		s.line(strong, lead)
	}
	if v.Passed == nil {
		for _, reason := range v.Reasons {
			s.para(caveat, "  -", 4, sentence(clean(strings.TrimPrefix(reason, unfitPrefix))))
		}
	}
	s.blank()
}

var severityLeads = map[result.Severity]struct {
	word string
	tone tone
}{
	result.Critical: {"CRITICAL", bad}, result.Warning: {"warn", caveat}, result.Info: {"info", quiet},
}

func (s *sheet) findings(r *reading, verbose bool) {
	for _, p := range r.Probes {
		if len(p.Findings) == 0 {
			continue
		}
		s.line(strong, probeName(p.Name))
		for _, f := range bySeverity(p.Findings) {
			lead := severityLeads[f.Severity]
			s.para(lead.tone, "  "+lead.word, 12, sentence(clean(f.Message)))
			if verbose && f.Evidence != "" {
				for _, line := range strings.Split(cleanBlock(f.Evidence, 12, 1200), "\n") {
					s.para("", "", 14, line)
				}
			}
		}
		s.blank()
	}
}

func (s *sheet) hint(r *reading, hint string) {
	total, critical := 0, 0
	for _, p := range r.Probes {
		total += len(p.Findings)
		for _, f := range p.Findings {
			if f.Severity == result.Critical {
				critical++
			}
		}
	}
	text := fmt.Sprintf("%s, %d critical.", times(int64(total), "finding"), critical)
	if total == 0 {
		text = "No findings."
	}
	s.para("", "", 0, strings.TrimSpace(text+" "+clean(hint)))
	s.blank()
}

func (s *sheet) ending(r *reading) {
	tones := map[string]tone{"PASS": "1;32", "FAIL": bad, "NO VERDICT": "1;33", "NO SCORE": "1;33"}
	s.line(tones[verdictWord(r.Verdict)], verdictLine(r, s.width))
	s.line("", fit(gapsLine(r), s.width))
}
