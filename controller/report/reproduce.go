package report

import (
	"cmp"
	"slices"
	"strings"
)

// reproduce is the command that runs the same scan again, with words added that
// the user did not write.
func (r *reading) reproduce(more ...string) string {
	words := r.Run.Invocation
	if len(words) == 0 {
		words = []string{cmp.Or(r.Command, "scan"), r.Target.URI}
	}
	parts := []string{"ordeal " + ShellQuote(words[0])}
	for _, w := range append(slices.Clone(words[1:]), more...) {
		last := len(parts) - 1
		if strings.HasPrefix(parts[last], "--") && !strings.Contains(parts[last], " ") && !strings.HasPrefix(w, "--") {
			parts[last] += " " + ShellQuote(w) // a flag and its value stay together
			continue
		}
		parts = append(parts, ShellQuote(w))
	}
	return joinCommand(parts, MaxWidth)
}

// joinCommand breaks a command over lines of about the given width.
func joinCommand(parts []string, width int) string {
	lines := []string{parts[0]}
	for _, part := range parts[1:] {
		last := len(lines) - 1
		if columns(lines[last])+len(part)+3 > width {
			lines = append(lines, "  "+part)
			continue
		}
		lines[last] += " " + part
	}
	return strings.Join(lines, " \\\n")
}

// ShellQuote quotes a word for a POSIX shell; what is not printable shows as
// an escape, so the line is safe to look at and to paste.
func ShellQuote(s string) string {
	s = clean(s)
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
