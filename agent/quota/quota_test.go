package quota

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Our clock is 30 s ahead of the server's, so that a test sees whose is used.
var (
	serverNow = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	ourNow    = serverNow.Add(30 * time.Second)
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestFromResponse(t *testing.T) {
	in := func(d time.Duration) time.Time { return serverNow.Add(d) }
	imf := func(d time.Duration) string { return in(d).Format(http.TimeFormat) }
	sent := imf(0)
	refused := func(wait time.Duration) Finding { return Finding{Limited: true, Seen: SeenStatus, Wait: wait} }
	noted := func(wait time.Duration, note string) Finding {
		return Finding{Limited: true, Seen: SeenStatus, Wait: wait, Notes: []string{note}}
	}
	tests := []struct {
		name   string
		status int
		h      http.Header
		want   Finding
	}{
		{"no quota", 200, header(), Finding{}},
		{"seconds", 429, header("Retry-After", "2"), refused(2 * time.Second)},
		{"seconds with spaces", 429, header("Retry-After", " 2 "), refused(2 * time.Second)},
		{"IMF-fixdate by the response's clock", 429, header("Retry-After", imf(2*time.Second), "Date", sent), refused(2 * time.Second)},
		{"IMF-fixdate by our clock", 429, header("Retry-After", imf(32*time.Second)), refused(2 * time.Second)},
		{"RFC 850", 429, header("Retry-After", in(2*time.Second).Format("Monday, 02-Jan-06 15:04:05")+" GMT", "Date", sent), refused(2 * time.Second)},
		{"asctime", 429, header("Retry-After", in(2*time.Second).Format(time.ANSIC), "Date", sent), refused(2 * time.Second)},
		{"past date", 429, header("Retry-After", imf(-time.Hour), "Date", sent),
			noted(0, `retry-after "Tue, 01 Dec 2026 09:00:00 GMT": a date in the past, ignored`)},
		{"zero", 429, header("Retry-After", "0"), refused(0)},
		{"half a second", 429, header("Retry-After", "0.5"), refused(500 * time.Millisecond)},
		{"negative", 429, header("Retry-After", "-1"), noted(0, `retry-after "-1": negative, ignored`)},
		{"NaN", 429, header("Retry-After", "NaN"), noted(0, `retry-after "NaN": not a number, ignored`)},
		{"Inf", 429, header("Retry-After", "Inf"), noted(0, `retry-after "Inf": not finite, ignored`)},
		{"huge", 429, header("Retry-After", "99999999"), noted(MaxWait, `retry-after "99999999": cut to 24h0m0s`)},
		{"overflow", 429, header("Retry-After", strings.Repeat("9", 400)),
			noted(MaxWait, `retry-after "`+strings.Repeat("9", 40)+`…": cut to 24h0m0s`)},
		{"far date", 429, header("Retry-After", imf(1000*time.Hour), "Date", sent),
			noted(MaxWait, `retry-after "Tue, 12 Jan 2027 02:00:00 GMT": cut to 24h0m0s`)},
		{"two headers", 429, header("Retry-After", "1", "Retry-After", "7"), noted(0, "retry-after: 2 headers in one response, all ignored")},
		{"milliseconds", 429, header("Retry-After-Ms", "700"), refused(700 * time.Millisecond)},
		{"milliseconds before seconds", 429, header("Retry-After-Ms", "700", "Retry-After", "1"), refused(700 * time.Millisecond)},
		{"nonsense", 429, header("Retry-After", "soon"), noted(0, `retry-after "soon": neither seconds nor a date, ignored`)},
		{"hexadecimal", 429, header("Retry-After", "0x10"), noted(0, `retry-after "0x10": neither seconds nor a date, ignored`)},
		{"empty", 429, header("Retry-After", ""), noted(0, `retry-after "": neither seconds nor a date, ignored`)},
		{"429 alone", 429, header(), refused(0)},
		{"503 with wait", 503, header("Retry-After", "2"), refused(2 * time.Second)},
		{"503 alone", 503, header(), Finding{}},
		{"wait on a success", 200, header("Retry-After", "2"), Finding{}},

		{"draft fields, served", 200, header("RateLimit-Policy", `"burst";q=100;w=60`, "RateLimit", `"burst";r=50;t=30`),
			Finding{Seen: SeenHeader, Limit: 100, Window: time.Minute}},
		{"draft fields, second policy", 200, header("RateLimit-Policy", `"day";q=9000;w=86400, "min";q=10;w=60`, "RateLimit", `"min";r=3;t=5`),
			Finding{Seen: SeenHeader, Limit: 10, Window: time.Minute}},
		{"draft fields, refused", 429, header("RateLimit-Policy", `"burst";q=100;w=60`, "RateLimit", `"burst";r=0;t=30`),
			Finding{Limited: true, Seen: SeenStatus, Wait: 30 * time.Second, Limit: 100, Window: time.Minute}},
		{"older draft", 429, header("RateLimit-Limit", "10, 10;w=1", "RateLimit-Remaining", "0", "RateLimit-Reset", "1"),
			Finding{Limited: true, Seen: SeenStatus, Wait: time.Second, Limit: 10, Window: time.Second}},
		{"epoch reset", 429, header("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1796119260", "Date", sent),
			Finding{Limited: true, Seen: SeenStatus, Wait: time.Minute, Limit: 5000}},
		{"epoch in ms", 429, header("X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "1796119260000", "Date", sent),
			Finding{Limited: true, Seen: SeenStatus, Wait: time.Minute}},
		{"Retry-After before reset", 429, header("Retry-After", "3", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"),
			refused(3 * time.Second)},
		{"requests and tokens", 429, header("X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "1m2s",
			"X-RateLimit-Limit-Tokens", "150000", "X-RateLimit-Remaining-Tokens", "149984", "X-RateLimit-Reset-Tokens", "20ms"),
			Finding{Limited: true, Seen: SeenStatus, Wait: 62 * time.Second, Limit: 60}},
		{"tokens exhausted", 429, header("X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "59", "X-RateLimit-Reset-Requests", "1s",
			"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6s"),
			refused(6 * time.Second)},
		{"RFC 3339 reset", 429, header("Anthropic-Ratelimit-Requests-Limit", "50", "Anthropic-Ratelimit-Requests-Remaining", "0",
			"Anthropic-Ratelimit-Requests-Reset", in(45*time.Second).Format(time.RFC3339), "Date", sent),
			Finding{Limited: true, Seen: SeenStatus, Wait: 45 * time.Second, Limit: 50}},
		{"reset that makes no sense", 429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "NaN"), refused(0)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := FromResponse(tc.status, tc.h, ourNow)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromToolResult(t *testing.T) {
	byFields := func(wait time.Duration) Finding { return Finding{Limited: true, Seen: SeenStructured, Wait: wait} }
	byText := func(wait time.Duration) Finding {
		return Finding{Limited: true, Seen: SeenText, Wait: wait, ByText: true}
	}
	tests := []struct {
		name, fields, text string
		success            bool
		want               Finding
	}{
		{"status", `{"status":429,"retry_after":2}`, "", false, byFields(2 * time.Second)},
		{"status as string", `{"status":"429"}`, "", false, byFields(0)},
		{"code", `{"code":"RATE_LIMITED","retryAfterMs":700}`, "", false, byFields(700 * time.Millisecond)},
		{"nested", `{"error":{"type":"rate_limit_error","retry_after":"1.5"}}`, "", false, byFields(1500 * time.Millisecond)},
		{"error as word", `{"error":"too_many_requests"}`, "", false, byFields(0)},
		{"two waits, first by name", `{"status":429,"retry_in":9,"retry_after":2}`, "", false, byFields(2 * time.Second)},
		{"duration", `{"status":429,"retry_after":"2s"}`, "", false, byFields(2 * time.Second)},
		{"fields in text", ``, ` {"error":{"code":429,"retry_after":3}}`, false, byFields(3 * time.Second)},
		{"fields before text", `{"status":429,"retry_after":2}`, "retry in 9s", false, byFields(2 * time.Second)},
		{"bad wait", `{"status":429,"retry_after":-3}`, "", false,
			Finding{Limited: true, Seen: SeenStructured, Notes: []string{`retry_after "-3": negative, ignored`}}},
		{"other status", `{"status":500,"retry_after":2}`, "", false, Finding{}},
		{"429 as a value of something else", `{"rows":429,"id":429}`, "", false, Finding{}},
		{"success with status", `{"status":429}`, "", true, Finding{}},

		{"text", "", "429 Too Many Requests, retry in 2s", false, byText(2 * time.Second)},
		{"text, minutes", "", "Rate limit exceeded. Please try again in 1.5 minutes", false, byText(90 * time.Second)},
		{"text, no unit", "", "rate limit reached: wait 4", false, byText(4 * time.Second)},
		{"text, ms", "", "Too many requests; retry after 700ms", false, byText(700 * time.Millisecond)},
		{"text, status", "", "upstream answered: HTTP 429", false, byText(0)},
		{"text, status code", "", "Request failed with status code 429", false, byText(0)},
		{"text, quota", "", "You exceeded your current quota", false, byText(0)},
		{"harmless in a success", "", "found 429 rows", true, Finding{}},
		{"refusal quoted in a success", "", "429 Too Many Requests", true, Finding{}},
		{"harmless in an error", "", "found 429 rows, expected 430", false, Finding{}},
		{"number in an id", "", "no document with id 14290429", false, Finding{}},
		{"length limit", "", "text exceeds the 5000-character limit", false, Finding{}},
		{"limit mentioned", "", "invalid argument: rate limit must be positive", false, Finding{}},
		{"empty", "", "", false, Finding{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := FromToolResult(!tc.success, json.RawMessage(tc.fields), tc.text)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func check(t *testing.T, f Finding) {
	t.Helper()
	if f.Wait < 0 || f.Wait > MaxWait || f.Window < 0 || f.Window > MaxWait || f.Limit < 0 {
		t.Errorf("out of range: %+v", f)
	}
	if f.Limited && f.Seen == "" || f.ByText && f.Seen != SeenText {
		t.Errorf("inconsistent: %+v", f)
	}
}

// FuzzFromResponse: whatever a server writes, waits stay within their range.
func FuzzFromResponse(f *testing.F) {
	f.Add(429, "2", "", "100", "0", "60", `"a";q=1;w=2`)
	f.Add(503, "Tue, 01 Dec 2026 10:00:02 GMT", "1e400", "-1", "NaN", "1796119260", `1;w=99999999999999999999`)
	f.Add(429, "Tuesday, 01-Dec-26 10:00:02 GMT", "", "", "", "2026-12-01T10:00:00Z", ";;;=,")
	f.Fuzz(func(t *testing.T, status int, after, ms, limit, remaining, reset, policy string) {
		h := header("X-RateLimit-Limit", limit, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset,
			"RateLimit-Policy", policy, "RateLimit", policy, "X-RateLimit-Reset-Requests", reset, "X-RateLimit-Remaining-Requests", remaining)
		if after != "" {
			h.Set("Retry-After", after)
		}
		if ms != "" {
			h.Set("Retry-After-Ms", ms)
		}
		check(t, FromResponse(status, h, ourNow))
	})
}

// FuzzFromToolResult: a success is never a refusal.
func FuzzFromToolResult(f *testing.F) {
	f.Add(`{"status":429,"retry_after":1e300}`, "429")
	f.Add(`{"error":{"code":"429","retry_after":"-0"}}`, "too many requests, wait 999999999 hours")
	f.Fuzz(func(t *testing.T, fields, text string) {
		check(t, FromToolResult(true, json.RawMessage(fields), text))
		if got := FromToolResult(false, json.RawMessage(fields), text); got.Limited {
			t.Errorf("success judged as %+v", got)
		}
	})
}
