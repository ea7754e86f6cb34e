package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// liveLines are a state as lines of at most width columns, at most height of them.
// Columns that do not fit are left out, the least telling first; the sparkline and
// the errors share what is left.
func liveLines(s LiveState, width, height int, color bool) []string {
	width, height = max(width, 20), max(height, 4)
	more := 0
	if room := height - 3; len(s.Rows) > height-2 { // the head, the columns' names, and how many more
		more, s.Rows = len(s.Rows)-room, s.Rows[:room]
	}
	lines := append([]string{cutTo(liveHead(s), width)}, liveGrid(s, width, color)...)
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// liveHead is "notes-server  open loop  load-2  12s of 30s  asked 120/s".
func liveHead(s LiveState) string {
	var parts []string
	for _, word := range []string{plainWord(s.Target, 32), plainWord(s.Model, 12), plainWord(s.Stage, 24)} {
		if word != "" {
			parts = append(parts, word)
		}
	}
	clock := s.Elapsed.Round(time.Second).String()
	if s.Total > 0 {
		clock = min(s.Elapsed, s.Total).Round(time.Second).String() + " of " + s.Total.Round(time.Second).String()
		if s.Elapsed-s.Total >= time.Second {
			clock += ", waiting"
		}
	}
	unit := "/s"
	if s.Model == "closed" {
		unit = " callers"
	}
	return strings.Join(append(parts, clock, "asked "+liveRate(s.Asked)+unit), "  ")
}

// liveColumn is a column of the table; those with a higher rank go first when
// there is no room.
type liveColumn struct {
	head  string
	rank  int
	width int
	left  bool
	of    func(LiveRow) string
}

// Room of the last two columns, which take what the others leave.
const (
	leastErrors = 14
	fairErrors  = 24 // beside a sparkline
	leastSpark  = 10
)

// liveColumns are those that fit.
func liveColumns(s LiveState, width int) []liveColumn {
	columns := []liveColumn{
		{head: plainWord(s.By, 12), left: true, of: func(r LiveRow) string { return cmp.Or(plainWord(r.Name, 16), "all") }},
		{head: "ok/s", of: func(r LiveRow) string { return liveRate(r.Achieved) }},
		{head: "in flight", rank: 3, of: func(r LiveRow) string { return fmt.Sprint(r.InFlight) }},
		{head: "p50", rank: 4, of: func(r LiveRow) string { return liveTime(r.P50) }},
		{head: "p95", rank: 1, of: func(r LiveRow) string { return liveTime(r.P95) }},
		{head: "p99", rank: 2, of: func(r LiveRow) string { return liveTime(r.P99) }},
	}
	if len(s.Rows) < 2 && s.By == "" {
		columns = columns[1:] // the whole needs no name
	}
	fixed := 0
	for i := range columns {
		columns[i].width = widest(columns[i], s.Rows)
		fixed += columns[i].width + 2
	}
	errs := liveColumn{head: "not ok", left: true, of: liveErrors}
	natural := widest(errs, s.Rows)
	for len(columns) > 1 && width-fixed < min(natural, leastErrors) {
		worst := 0
		for i, c := range columns {
			if c.rank > columns[worst].rank {
				worst = i
			}
		}
		if columns[worst].rank == 0 {
			break
		}
		fixed -= columns[worst].width + 2
		columns = slices.Delete(columns, worst, worst+1)
	}
	room := max(width-fixed, 0)
	errs.width = min(natural, room)
	if room < min(natural, fairErrors)+2+leastSpark {
		return append(columns, errs)
	}
	errs.width = min(natural, max(fairErrors, room-2-sparkLength))
	n := min(sparkLength, room-2-errs.width)
	course := liveColumn{head: fmt.Sprintf("last %d s", n), width: n, left: true, of: func(r LiveRow) string { return liveSpark(r.Spark, n) }}
	return append(columns, errs, course)
}

func widest(c liveColumn, rows []LiveRow) int {
	w := utf8.RuneCountInString(c.head)
	for _, r := range rows {
		w = max(w, utf8.RuneCountInString(c.of(r)))
	}
	return w
}

// liveGrid lays the rows out in aligned columns, two blanks apart.
func liveGrid(s LiveState, width int, color bool) []string {
	columns := liveColumns(s, width)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.head
	}
	lines := []string{gridLine(columns, head, "\x1b[2m", width, color)}
	for _, r := range s.Rows {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = c.of(r)
		}
		lines = append(lines, gridLine(columns, row, "", width, color))
	}
	return lines
}

// gridLine is one line of the table, in a tone; errors have their own.
func gridLine(columns []liveColumn, row []string, tone string, width int, color bool) string {
	var b strings.Builder
	used := 0
	for i, c := range columns {
		if i > 0 {
			b.WriteString("  ")
			used += 2
		}
		text := cutTo(row[i], min(c.width, max(width-used, 0)))
		n := utf8.RuneCountInString(text)
		used += c.width
		gap := strings.Repeat(" ", max(c.width-n, 0))
		paint := tone
		if tone == "" && c.head == "not ok" && text != "0" {
			paint = "\x1b[33m"
		}
		if color && paint != "" && text != "" {
			text = paint + text + "\x1b[0m"
		}
		if c.left {
			b.WriteString(text + gap)
		} else {
			b.WriteString(gap + text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func liveRate(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func liveTime(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/1e6)
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return fmt.Sprintf("%.0fs", d.Seconds())
}

// maxLiveErrors is how many kinds a cell names.
const maxLiveErrors = 2

// liveErrors is "12 timeout, 3 connection, 7 dropped", most first; "0" without any.
func liveErrors(r LiveRow) string {
	var parts []string
	kinds := slices.SortedFunc(maps.Keys(r.Outcomes), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Outcomes[b], r.Outcomes[a]), cmp.Compare(a, b))
	})
	rest := int64(0)
	for _, k := range kinds {
		switch n := r.Outcomes[k]; {
		case k == "ok" || n <= 0:
		case len(parts) == maxLiveErrors:
			rest += n
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, plainWord(k, 16)))
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d other", rest))
	}
	if r.Dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d dropped", r.Dropped))
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}

var liveBlocks = []rune("▁▂▃▄▅▆▇█")

// liveSpark draws the last n values between zero and their largest.
func liveSpark(values []float64, n int) string {
	values = values[max(0, len(values)-n):]
	most := 0.0
	for _, v := range values {
		if v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if most > 0 && v > 0 {
			i = int(math.Ceil(min(v/most, 1)*float64(len(liveBlocks)))) - 1
		}
		b.WriteRune(liveBlocks[max(i, 0)])
	}
	return b.String()
}

// plainWord keeps a foreign name on its line: what is not a simple character of one
// column becomes a question mark, and n of them are enough.
func plainWord(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 0x20 && r < 0x7f {
			return r
		}
		return '?'
	}, s)
	if len(s) > n {
		s = s[:max(0, n-3)] + "..."
	}
	return s
}

// cutTo shortens a text without colours to n columns.
func cutTo(s string, n int) string {
	r := []rune(s)
	switch {
	case len(r) <= n:
		return s
	case n < 6:
		return string(r[:max(n, 0)])
	}
	return string(r[:n-2]) + ".."
}

// visible is the number of columns of a line, colours aside.
func visible(line string) int {
	n, escape := 0, false
	for _, r := range line {
		switch {
		case r == 0x1b:
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}
