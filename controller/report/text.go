package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// maxMarks bounds the combining marks kept on one character.
const maxMarks = 2

// clean makes foreign text safe to print on one line. White space of any kind
// becomes single spaces; whatever is not printable (control characters, escape
// sequences, bidirectional and other format characters, private use, broken
// UTF-8) becomes a visible escape. Variation selectors are dropped because
// terminals disagree about their width.
func clean(s string) string {
	var b strings.Builder
	marks, space := 0, false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsSpace(r):
			if !space && b.Len() > 0 {
				b.WriteByte(' ')
			}
		case unicode.In(r, unicode.Variation_Selector):
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks <= maxMarks {
				b.WriteRune(r)
			}
		default:
			writeVisible(&b, r)
		}
		space = unicode.IsSpace(r)
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		i += size
	}
	return strings.TrimRight(b.String(), " ")
}

func writeVisible(b *strings.Builder, r rune) {
	switch {
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r < 0x100:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// cleanBlock is clean for text of several lines: line feeds stay, at most
// maxLines of them and maxBytes bytes, and a cut is said.
func cleanBlock(s string, maxLines, maxBytes int) string {
	cut := false
	if len(s) > maxBytes {
		end := maxBytes
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s, cut = s[:end], true
	}
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	if len(lines) > maxLines {
		lines, cut = lines[:maxLines], true
	}
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines[i] = strings.Repeat(" ", min(indent, 16)) + clean(line)
	}
	if cut {
		lines = append(lines, "(shortened)")
	}
	return strings.Join(lines, "\n")
}

// columns is the number of terminal columns a cleaned string takes. Where
// terminals disagree it is the larger number.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x7f:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1f1e6 && r <= 0x1f1ff: // regional indicators: half a flag each
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut splits a cleaned string behind the last character that fits into n
// columns; at least one character goes to head unless s is empty.
func cut(s string, n int) (head, tail string) {
	used := 0
	for i, r := range s {
		used += runeColumns(r)
		if used > n && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// fit shortens a cleaned string to n columns; what was cut shows as "...".
func fit(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	if n <= 3 {
		return strings.Repeat(".", max(n, 0))
	}
	head, _ := cut(s, n-3)
	if columns(head) > n-3 {
		head = ""
	}
	return strings.TrimRight(head, " ") + "..."
}

// pad fills a cleaned string with blanks up to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-columns(s))) }

// wrap breaks a cleaned string into lines of at most n columns, between words
// where possible, inside a word where it alone is wider.
func wrap(s string, n int) []string {
	n = max(n, 2)
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= n:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for columns(line) > n {
			head, tail := cut(line, n)
			lines = append(lines, head)
			line = tail
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
