package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// sentence says what was observed, what it was held against and what follows:
// "error rate 7.5 %, at most 5.0 %: missed, not proven (95 % interval 1.6 % to
// 20.4 %, n = 40 calls)".
func sentence(j judged, iv stat.Interval, known bool) string {
	return fmt.Sprintf("%s %s, %s: %s (%s)", j.t.label, format(*j.Observed, j.Unit), bound(j), word(j.Status, known), evidence(j, iv, known))
}

// bound is the limit in words, with its source when it is not the policy's.
func bound(j judged) string {
	words := "at most "
	if j.t.good == stat.AtLeast {
		words = "at least "
	}
	words += format(j.Limit, j.Unit)
	if j.LimitSource != "policy" {
		words += " by " + j.LimitSource
	}
	return words
}

func word(s result.Status, proven bool) string {
	switch {
	case s == result.Pass && proven:
		return "met, proven"
	case s == result.Pass:
		return "met"
	case s == result.Unproven:
		return "met, not proven"
	case s == result.Undecided:
		return "missed, not proven"
	case proven:
		return "missed, proven"
	}
	return "missed"
}

func evidence(j judged, iv stat.Interval, known bool) string {
	n := fmt.Sprintf("n = %d %s", j.N, j.t.counted)
	open := math.IsInf(iv.Lo, -1) && math.IsInf(iv.Hi, 1)
	switch {
	case !known || open:
		return n
	case math.IsInf(iv.Hi, 1):
		return fmt.Sprintf("95%% interval from %s, no upper end at %s", format(iv.Lo, j.Unit), n)
	case math.IsInf(iv.Lo, -1):
		return fmt.Sprintf("95%% interval to %s, no lower end at %s", format(iv.Hi, j.Unit), n)
	}
	return fmt.Sprintf("95%% interval %s to %s, %s", format(iv.Lo, j.Unit), format(iv.Hi, j.Unit), n)
}

// sentence of a recovery proven on what could be recovered.
func (r recoverable) sentence(j judged) string {
	return fmt.Sprintf("%s %s, %s: met, proven (%d of %d recoverable operations, 95%% interval %s to %s, at least %s by policy)",
		j.t.label, format(*j.Observed, j.Unit), bound(j), r.k, r.n, format(r.iv.Lo, j.Unit), format(r.iv.Hi, j.Unit), format(r.literal, j.Unit))
}

// duration writes seconds with two decimals, below a tenth of one milliseconds.
func duration(s float64) string {
	if s != 0 && s < 0.1 {
		return fmt.Sprintf("%.3gms", 1000*s)
	}
	return fmt.Sprintf("%.2fs", s)
}

// dollars writes four decimals, below $0.001 three significant digits.
func dollars(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if v <= 0 || v >= 0.001 || err != nil {
		return fmt.Sprintf("$%.4f", v)
	}
	return "$" + strconv.FormatFloat(short, 'f', -1, 64)
}

// format writes a value in the unit of its threshold.
func format(v float64, unit string) string {
	switch unit {
	case "ms":
		return duration(v / 1000)
	case "rate":
		return fmt.Sprintf("%.1f%%", 100*v)
	case "$":
		return dollars(v)
	case "x":
		return fmt.Sprintf("%.2fx", v)
	}
	return fmt.Sprintf("%g", v)
}

func withRemedy(c metrics.Caveat) string {
	if c.Remedy == "" {
		return oneLineOf(c.Reason)
	}
	return oneLineOf(c.Reason) + " Remedy: " + oneLineOf(c.Remedy)
}

func oneLineOf(s string) string { return strings.Join(strings.Fields(s), " ") }

// words of a Need: "error_rate_max (40 calls measured, about 240 needed: 240 requests)".
func (n Need) words() string {
	switch {
	case n.Want == 0:
		return fmt.Sprintf("%s (%d %s measured)", n.Key, n.N, n.Counted)
	case n.Requests == 0 || n.Requests == n.Want:
		return fmt.Sprintf("%s (%d %s measured, about %d needed)", n.Key, n.N, n.Counted, n.Want)
	}
	return fmt.Sprintf("%s (%d %s measured, about %d needed: %d requests)", n.Key, n.N, n.Counted, n.Want, n.Requests)
}
