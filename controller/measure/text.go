package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// secs writes a time for people: two decimals from a tenth of a second up,
// milliseconds and microseconds below.
func secs(v float64) string {
	switch {
	case v >= 0.0995 || v == 0:
		return fmt.Sprintf("%.2fs", v)
	case v >= 0.00095:
		return fmt.Sprintf("%.1fms", v*1e3)
	}
	return fmt.Sprintf("%.0fµs", v*1e6)
}

// secsOf writes a metric in seconds, - when there is none.
func (s *sheet) secsOf(name string) string {
	if v, ok := s.number(name); ok {
		return secs(v)
	}
	return "-"
}

// tally writes counts by name, the largest first: "5 timeout, 2 rate_limit".
func tally(counts map[string]int64, most int) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	if more := len(names) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// some joins at most n texts and says how many there are beyond.
func some(texts []string, n int) string {
	if len(texts) <= n {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:n], ", "), len(texts)-n)
}

// digits writes a number with n significant digits and never an exponent.
func digits(v float64, n int) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return "-"
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// dollars writes four decimals, and three significant digits of what these
// would hide.
func dollars(v float64) string {
	if v > 0 && v < 0.001 {
		return "$" + digits(v, 3)
	}
	return fmt.Sprintf("$%.4f", v)
}

// ordinal is 1st, 2nd, 83rd, 95th.
func ordinal(n int64) string {
	ending := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return fmt.Sprint(n, ending)
}

func callers(n int) string { return plural(int64(n), "caller", "callers") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// copied keeps a result apart from the summary it was made from.
func copied[K comparable](m map[K]int64) map[K]int64 {
	out := make(map[K]int64, len(m))
	for k, n := range m {
		out[k] = n
	}
	return out
}

func sum[K comparable](m map[K]int64) int64 {
	var n int64
	for _, k := range m {
		n += k
	}
	return n
}
