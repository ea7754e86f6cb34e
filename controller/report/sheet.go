package report

import "strings"

// tone is the colour of a piece of text, as an SGR parameter.
type tone string

const (
	quiet  tone = "2"
	strong tone = "1"
	good   tone = "32"
	bad    tone = "1;31"
	caveat tone = "33"
	note   tone = "36"
)

// sheet collects lines no wider than width columns. Widths are counted on
// plain text; colour is added afterwards, so it never moves a column.
type sheet struct {
	strings.Builder
	width int
	color bool
}

func (s *sheet) paint(t tone, text string) string {
	if !s.color || t == "" || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

// line writes one line of cleaned text, cut to the width.
func (s *sheet) line(t tone, text string) {
	s.WriteString(s.paint(t, fit(text, s.width)))
	s.WriteByte('\n')
}

func (s *sheet) blank() { s.WriteByte('\n') }

// para writes a lead in its tone, padded to indent columns, then cleaned text
// wrapped beside it. A lead that fills its column gets a line of its own.
func (s *sheet) para(t tone, lead string, indent int, text string) {
	lead = fit(lead, s.width)
	lines := wrap(text, s.width-indent)
	if lead != "" && columns(lead) >= indent && lines[0] != "" {
		s.line(t, lead)
		lead, t = "", ""
	}
	s.WriteString(s.paint(t, lead))
	if lines[0] != "" {
		s.WriteString(strings.Repeat(" ", indent-columns(lead)))
	}
	for i, line := range lines {
		if i > 0 {
			s.WriteString(strings.Repeat(" ", indent))
		}
		s.WriteString(line)
		s.WriteByte('\n')
	}
}

// cell is one cell of a grid.
type cell struct {
	text string
	tone tone
}

// grid writes rows in aligned columns, two blanks apart, indented by two. The
// first column is cut if the sum is too wide; columns that still do not fit
// are left out from the right.
func (s *sheet) grid(head []string, body [][]cell) {
	widths := make([]int, len(head))
	for i, h := range head {
		widths[i] = columns(h)
		for _, row := range body {
			widths[i] = max(widths[i], columns(row[i].text))
		}
	}
	widths = squeeze(widths, s.width-2)
	s.gridRow(widths, headCells(head))
	for _, row := range body {
		s.gridRow(widths, row)
	}
}

func headCells(head []string) []cell {
	out := make([]cell, len(head))
	for i, h := range head {
		out[i] = cell{h, quiet}
	}
	return out
}

func (s *sheet) gridRow(widths []int, row []cell) {
	var b strings.Builder
	gap := "  "
	for i, w := range widths {
		text := fit(row[i].text, w)
		b.WriteString(gap + s.paint(row[i].tone, text))
		gap = strings.Repeat(" ", w-columns(text)+2)
	}
	s.WriteString(strings.TrimRight(b.String(), " "))
	s.WriteByte('\n')
}

// minName is the narrowest first column of a grid.
const minName = 12

// squeeze makes column widths fit into the room: first the first column
// shrinks, then columns go from the right.
func squeeze(widths []int, room int) []int {
	for len(widths) > 1 {
		if over := total(widths) - room; over <= 0 || widths[0]-over >= minName {
			break
		}
		widths = widths[:len(widths)-1]
	}
	widths[0] = min(widths[0], widths[0]-total(widths)+room)
	return widths
}

func total(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}
