package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"ordeal/metrics"
)

// absent stands where a number is missing.
const absent = "-"

// quantity writes a number with its unit. Units: s, ms, us, rate (0..1), $, x,
// /s, tokens, bytes, count; any other is written behind the number.
func quantity(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return absent
	}
	switch unit {
	case "s":
		return seconds(v)
	case "ms":
		return seconds(v / 1e3)
	case "us", "µs":
		return seconds(v / 1e6)
	case "rate":
		return rate(v)
	case "$", "usd", "USD":
		return dollars(v)
	case "x":
		return plain(v, 2) + "x"
	case "/s", "1/s":
		return perSecond(v)
	case "", "count", "1":
		return count(v)
	}
	return strings.TrimSpace(count(v) + " " + unitWord(unit))
}

// unitWord keeps of a unit what a unit is made of; the document may hold any
// text there.
func unitWord(unit string) string {
	word := strings.Map(func(r rune) rune {
		if wordRune(r) || strings.ContainsRune(" /%", r) {
			return r
		}
		return -1
	}, clean(unit))
	return fit(word, 16)
}

// seconds shows two decimals from 0.1 s up, and smaller
// values in ms or µs, so that a real duration never reads 0.00s.
func seconds(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0s"
	case a >= 0.0995:
		return plain(v, 2) + "s"
	case a >= 0.00995:
		return plain(v*1e3, 1) + "ms"
	case a >= 0.0009995:
		return plain(v*1e3, 2) + "ms"
	case a >= 99.95e-6:
		return plain(v*1e6, 0) + "µs"
	}
	return strconv.FormatFloat(v*1e6, 'g', 2, 64) + "µs"
}

// rate shows a share in percent with one decimal, and with as many more as it
// takes that a share above zero does not read 0% nor one short of all 100%.
func rate(v float64) string {
	const most = 5
	for decimals := 1; decimals <= most; decimals++ {
		s := plain(v*100, decimals)
		zero, all := strings.Trim(s, "0.") == "", strings.HasPrefix(s, "100.")
		if (!zero || v <= 0) && (!all || v >= 1) {
			return s + "%"
		}
	}
	if v < 0.5 {
		return "<0.00001%"
	}
	return ">99.99999%"
}

// dollars shows four decimals, below $0.001 three significant digits.
func dollars(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0 || a >= 0.001:
		return "$" + plain(v, 4)
	case a < 1e-9:
		return "$" + strconv.FormatFloat(v, 'g', 3, 64)
	}
	// The decimals that leave three significant digits.
	text := strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(a))), 64)
	return "$" + strings.TrimRight(text, "0")
}

func perSecond(v float64) string {
	if v != 0 && math.Abs(v) < 0.05 {
		return strconv.FormatFloat(v, 'g', 2, 64) + "/s"
	}
	return plain(v, 1) + "/s"
}

func count(v float64) string {
	if v != math.Trunc(v) {
		if a := math.Abs(v); a < 0.05 {
			return strconv.FormatFloat(v, 'g', 2, 64)
		}
		return plain(v, 1)
	}
	return plain(v, 0)
}

// plain writes a number with fixed decimals and grouped thousands; beyond
// 10^12 it changes to an exponent, since the digits would say nothing.
func plain(v float64, decimals int) string {
	if math.Abs(v) >= 1e12 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, frac, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0 && len(whole) > 4; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if frac != "" {
		whole += "." + frac
	}
	return sign + whole
}

// points rounds down to a tenth and drops a zero decimal: 13.999999 from
// floating point is 14, but 19.97 is 19.9.
func points(v float64) string {
	s := strconv.FormatFloat(math.Floor(v*10+1e-6)/10, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func optional(v *float64, show func(float64) string) string {
	if v == nil {
		return absent
	}
	return show(*v)
}

// interval writes lo..hi in one unit; an open end is left out.
func interval(iv *metrics.Interval, unit string) string {
	if iv == nil {
		return absent
	}
	lo, hi := quantity(iv.Lo, unit), quantity(iv.Hi, unit)
	if math.IsInf(iv.Lo, 0) {
		lo = ""
	}
	if math.IsInf(iv.Hi, 0) {
		hi = ""
	}
	return lo + ".." + hi
}

// times is "1 call" or "3 calls".
func times(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", count(float64(n)), one)
}
