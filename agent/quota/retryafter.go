// Package quota recognises that a target refuses work for quota, and reads how
// long it asks to be left alone.
//
// In go a status, headers, or the parts of a tool error; out comes a Finding:
// where the quota was seen, the wait asked for, the limit and its window, and
// notes on values that make no sense. Structure is believed before text, and
// text only inside a declared error. Nothing here does I/O, reads a clock, or
// waits.
package quota

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait is the longest wait handed on; a longer one is cut to it, with a
// note.
const MaxWait = 24 * time.Hour

// retryAfter reads Retry-After-Ms (milliseconds, as some model APIs send it)
// and Retry-After: seconds with or without decimals (the RFC knows whole ones
// only; fractions are honoured), or a date in one of the three HTTP forms, taken
// relative to the response's own Date header when it has one, otherwise to now.
// A value that is repeated, negative, not a number or in no known form yields no
// wait and a note. So does a date in the past.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, note string) {
	if ms := h["Retry-After-Ms"]; len(ms) > 0 {
		return single("retry-after-ms", ms, func(s string) (time.Duration, string) { return number(s, time.Millisecond) })
	}
	return single("retry-after", h["Retry-After"], func(s string) (time.Duration, string) {
		if wait, problem := number(s, time.Second); problem != notNumber {
			return wait, problem
		}
		return date(s, h.Get("Date"), now)
	})
}

const notNumber = "not a number"

func single(name string, values []string, parse func(string) (time.Duration, string)) (time.Duration, string) {
	switch len(values) {
	case 0:
		return 0, ""
	case 1:
	default:
		return 0, fmt.Sprintf("%s: %d headers in one response, all ignored", name, len(values))
	}
	wait, problem := parse(strings.TrimSpace(values[0]))
	if problem == "" {
		return wait, ""
	}
	return wait, fmt.Sprintf("%s %q: %s", name, clip(values[0]), problem)
}

func number(s string, unit time.Duration) (time.Duration, string) {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsNaN(f):
		return 0, "not a number, ignored"
	case err != nil && !math.IsInf(f, 0), strings.ContainsAny(s, "xX_pP"):
		return 0, notNumber
	case f < 0:
		return 0, "negative, ignored"
	case math.IsInf(f, 1) && err == nil:
		return 0, "not finite, ignored"
	}
	return capped(f * float64(unit))
}

// capped rounds up to the next nanosecond: a caller may wait longer than asked,
// never shorter.
func capped(ns float64) (time.Duration, string) {
	if ns > float64(MaxWait) {
		return MaxWait, fmt.Sprintf("cut to %v", MaxWait)
	}
	return time.Duration(math.Ceil(ns)), ""
}

// dateForms are IMF-fixdate, RFC 850 and asctime, which a recipient must
// accept, and the RFC 850 form with the zone spelled as it should not be.
var dateForms = []string{http.TimeFormat, time.RFC850, time.ANSIC, time.RFC1123, time.RFC1123Z, time.RFC3339}

func date(s, dateHeader string, now time.Time) (time.Duration, string) {
	at, ok := parseDate(s, now)
	if !ok {
		return 0, "neither seconds nor a date, ignored"
	}
	if sent, ok := parseDate(dateHeader, now); ok {
		now = sent
	}
	if !at.After(now) {
		return 0, "a date in the past, ignored"
	}
	return capped(float64(at.Sub(now)))
}

func parseDate(s string, now time.Time) (time.Time, bool) {
	for _, form := range dateForms {
		at, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		// A two-digit year more than 50 years ahead means the last century.
		if form == time.RFC850 {
			at = at.AddDate(now.Year()/100*100-at.Year()/100*100, 0, 0)
			if at.After(now.AddDate(50, 0, 0)) {
				at = at.AddDate(-100, 0, 0)
			}
		}
		return at, true
	}
	return time.Time{}, false
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
