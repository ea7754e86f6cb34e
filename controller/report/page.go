package report

import (
	"strings"
	"unicode"
)

// page collects Markdown. Foreign text goes through esc, code or fence.
type page struct{ strings.Builder }

func (p *page) line(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
	p.WriteByte('\n')
}

// heading writes a heading with a blank line after it, and before it unless it
// is the first line.
func (p *page) heading(level int, text string) {
	p.gap()
	p.line(strings.Repeat("#", level), " ", text)
	p.line()
}

// gap leaves one blank line unless the page is empty or ends on one.
func (p *page) gap() {
	if p.Len() > 0 && !strings.HasSuffix(p.String(), "\n\n") {
		p.line()
	}
}

// table writes a table; cells are escaped already.
func (p *page) table(head []string, body [][]string) {
	p.line("| ", strings.Join(head, " | "), " |")
	p.line("|", strings.Repeat(" --- |", len(head)))
	for _, row := range body {
		p.line("| ", strings.Join(row, " | "), " |")
	}
}

// fence writes a block verbatim but for clean: the fence is longer than any
// run of backquotes inside, so nothing can end it early.
func (p *page) fence(language, text string) {
	marks := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	p.line(marks, language)
	p.line(strings.TrimRight(text, "\n"))
	p.line(marks)
}

func longestRun(s string, c rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// code is foreign text as inline code.
func code(s string) string {
	s = clean(s)
	if s == "" {
		return absent
	}
	run := longestRun(s, '`')
	if run == 0 {
		return "`" + s + "`"
	}
	marks := strings.Repeat("`", run+1)
	return marks + " " + s + " " + marks
}

// codeCell is code for a table, where a vertical bar would end the cell.
func codeCell(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

// esc is foreign text as running text on one line: none of it acts as Markdown
// or HTML.
func esc(s string) string {
	s = clean(s)
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if special(runes, i) {
			b.WriteByte('\\')
		}
		if r == '&' {
			b.WriteString("&amp;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// special reports whether the character at i would act as markup.
func special(s []rune, i int) bool {
	switch s[i] {
	case '\\', '`', '*', '<', '|', '~':
		return true
	case ']': // ends the text of a link only in front of these
		return i+1 < len(s) && strings.ContainsRune("([:", s[i+1])
	case '_': // between letters or digits it is no markup
		return i == 0 || i == len(s)-1 || !wordRune(s[i-1]) || !wordRune(s[i+1])
	case '#', '+', '-', '=', '>', '[':
		return i == 0 && len(s) > 1
	case '.', ')': // "1. " at the beginning is a list
		return i > 0 && allDigits(s[:i]) && (i+1 == len(s) || s[i+1] == ' ')
	}
	return false
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func allDigits(s []rune) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}
