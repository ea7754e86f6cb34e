package llmtest

import (
	"net/http"
	"time"
)

// RetryForm is one way of telling a client when to come back.
type RetryForm struct {
	Name   string
	Header func(now time.Time) http.Header
}

// RetryForms lists the forms of Retry-After that have been met, good and bad.
// A date comes with a Date header of the same clock.
func RetryForms() []RetryForm {
	return []RetryForm{
		{"seconds", fixed("Retry-After", "2")},
		{"imf-date", dated(http.TimeFormat, 2*time.Second)},
		{"rfc850-date", dated("Monday, 02-Jan-06 15:04:05 GMT", 2*time.Second)},
		{"past-date", dated(http.TimeFormat, -time.Hour)},
		{"zero", fixed("Retry-After", "0")},
		{"decimal", fixed("Retry-After", "0.5")},
		{"negative", fixed("Retry-After", "-1")},
		{"nan", fixed("Retry-After", "NaN")},
		{"absurd", fixed("Retry-After", "99999999")},
		{"two-headers", fixed("Retry-After", "2", "7")},
		{"milliseconds", fixed("Retry-After-Ms", "700")},
		{"none", func(time.Time) http.Header { return http.Header{} }},
	}
}

func fixed(name string, values ...string) func(time.Time) http.Header {
	return func(time.Time) http.Header { return http.Header{name: values} }
}

func dated(layout string, ahead time.Duration) func(time.Time) http.Header {
	return func(now time.Time) http.Header {
		return http.Header{
			"Date":        {now.UTC().Format(http.TimeFormat)},
			"Retry-After": {now.UTC().Add(ahead).Format(layout)},
		}
	}
}
