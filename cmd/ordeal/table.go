package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// absentCell stands for what a row does not have.
const absentCell = "-"

// tableText aligns rows, the first of which is the head. Columns in which no row
// has anything are left out, so that a list fits 80 columns when it can.
func tableText(rows [][]string) []byte {
	var out bytes.Buffer
	aligned := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range withoutEmptyColumns(rows) {
		line := strings.Join(row, "\t")
		for strings.HasSuffix(line, "\t"+absentCell) {
			line = strings.TrimSuffix(line, "\t"+absentCell)
		}
		_, _ = io.WriteString(aligned, line+"\n") // into memory
	}
	_ = aligned.Flush()
	return out.Bytes()
}

func withoutEmptyColumns(rows [][]string) [][]string {
	kept := make([][]string, len(rows))
	for column := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "" }) {
			continue
		}
		for i, row := range rows {
			kept[i] = append(kept[i], printable(cmp.Or(row[column], absentCell)))
		}
	}
	return kept
}

// cutLines cuts every line to width columns, 0 for no bound; a cut is marked.
func cutLines(text []byte, width int) []byte {
	if width == 0 {
		return text
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if r := []rune(line); len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		out = append(out, line+"\n"...)
	}
	return out
}

// width is that of a terminal in columns, 0 for anything else.
func width(w io.Writer) int {
	if !terminal(w) {
		return 0
	}
	columns, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return columns
}
