package quota

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where a quota was seen.
const (
	SeenStatus     = "http_status"           // 429, or 503 with a wait
	SeenHeader     = "header"                // only announced: limits on an answer that was served
	SeenStructured = "tool_error_structured" // fields of an error inside a tool result or JSON-RPC error
	SeenText       = "tool_error_text"       // wording of a declared tool error
)

// Finding is what one answer says about a quota. The zero value says nothing.
type Finding struct {
	Limited bool          // this answer is a refusal for quota
	Seen    string        // one of the Seen constants, empty for none
	Wait    time.Duration // asked for before the next try; 0 none
	Limit   int64         // requests per window; 0 unknown
	Window  time.Duration // 0 unknown
	ByText  bool          // decided by wording, not by structure
	Notes   []string      // values that make no sense
}

// FromResponse judges an HTTP response. Refusals are 429, and 503 with a usable
// or at least attempted Retry-After. Limit headers on any other status are
// reported as seen, without Limited.
func FromResponse(status int, h http.Header, now time.Time) Finding {
	var f Finding
	l, announced := readLimit(h, now)
	if announced {
		f.Seen, f.Limit, f.Window = SeenHeader, l.limit, l.window
	}
	named := len(h["Retry-After"])+len(h["Retry-After-Ms"]) > 0
	if status != http.StatusTooManyRequests && (status != http.StatusServiceUnavailable || !named) {
		return f
	}
	f.Limited, f.Seen = true, SeenStatus
	wait, note := retryAfter(h, now)
	if note != "" {
		f.Notes = append(f.Notes, note)
	}
	if !named && l.remaining <= 0 {
		wait = l.reset
	}
	f.Wait = wait
	return f
}

// FromFields judges structured fields of an error: the structuredContent of a
// tool error, the JSON in its text, or the data of a JSON-RPC error. It looks at
// status, code, type, reason and retry_after, at the top level and one level
// down under error, and believes only whole values: the number 429, or a code
// that names a rate limit.
func FromFields(fields json.RawMessage) Finding {
	top, ok := object(fields)
	if !ok {
		return Finding{}
	}
	levels := []map[string]json.RawMessage{top}
	for _, key := range []string{"error", "details", "data", "response"} {
		if inner, ok := object(top[key]); ok {
			levels = append(levels, inner)
		}
	}
	var f Finding
	for _, fields := range levels {
		for _, key := range []string{"status", "statusCode", "status_code", "http_status", "httpStatus", "code", "error_code", "errorCode", "type", "error_type", "reason", "error"} {
			f.Limited = f.Limited || limitCode(fields[key])
		}
	}
	if !f.Limited {
		return Finding{}
	}
	f.Seen = SeenStructured
	for _, fields := range levels {
		if wait, note, ok := fieldWait(fields); ok && f.Wait == 0 {
			f.Wait = wait
			if note != "" {
				f.Notes = append(f.Notes, note)
			}
		}
	}
	return f
}

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return nil, false
	}
	return m, m != nil
}

var limitCodes = []string{
	"429", "ratelimited", "ratelimit", "ratelimitexceeded", "ratelimiterror", "toomanyrequests", "quotaexceeded",
	"insufficientquota", "resourceexhausted", "throttled", "throttling", "throttlingexception", "requestlimitexceeded",
}

func limitCode(raw json.RawMessage) bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case float64:
		return v == http.StatusTooManyRequests
	case string:
		flat := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(v))
		for _, code := range limitCodes {
			if flat == code {
				return true
			}
		}
	}
	return false
}

// fieldWait reads retry_after and its spellings; the unit is seconds unless the
// name ends in ms.
func fieldWait(fields map[string]json.RawMessage) (time.Duration, string, bool) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		flat := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
		unit := time.Second
		switch flat {
		case "retryafter", "retryafterseconds", "retryaftersecs", "retryafters", "retryinseconds", "retryin":
		case "retryafterms", "retryaftermilliseconds", "retryinms":
			unit = time.Millisecond
		default:
			continue
		}
		wait, note := single(key, []string{strings.Trim(string(fields[key]), `"`)}, func(s string) (time.Duration, string) {
			wait, problem := number(s, unit)
			if problem == notNumber {
				if d, err := time.ParseDuration(s); err == nil && d >= 0 {
					return capped(float64(d))
				}
			}
			return wait, problem
		})
		return wait, note, true
	}
	return 0, "", false
}

var (
	// A refusal says that the limit *is* exceeded, or bears the name of the
	// status beside its number. A limit that is only mentioned is none, and
	// neither is a number.
	refusal  = regexp.MustCompile(`(?i)\btoo many requests\b|\brate[- _]?limit(?:s|ed|ing)?\b[^.\n]{0,30}\b(?:exceeded|reached|hit|exhausted)\b|\b(?:exceeded|reached|hit|over)\b[^.\n]{0,30}\brate[- _]?limit|\brate[- ]?limited\b|\bquota\b[^.\n]{0,20}\b(?:exceeded|exhausted)\b|\b(?:exceeded|exhausted)\b[^.\n]{0,20}\bquota\b|\b(?:http|status|status code|error|code)[ :=]{1,3}429\b|^\s*429\b\s*(?:$|[:;,.-]|error)|\bthrottl(?:ed|ing)\b`)
	waitText = regexp.MustCompile(`(?i)\b(?:retry|try again|wait)\b[^0-9\n]{0,20}(\d{1,9}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b`)
)

// maxText bounds the text judged: a refusal comes to the point.
const maxText = 4 << 10

// FromText judges the text of a declared tool error. It must never be asked
// about the text of a success.
func FromText(text string) Finding {
	if len(text) > maxText {
		text = text[:maxText]
	}
	if !refusal.MatchString(text) {
		return Finding{}
	}
	f := Finding{Limited: true, Seen: SeenText, ByText: true}
	if m := waitText.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err == nil {
			f.Wait, _ = capped(n * float64(textUnit(m[2])))
		}
	}
	return f
}

func textUnit(s string) time.Duration {
	switch s = strings.ToLower(s); {
	case s == "ms" || strings.HasPrefix(s, "milli"):
		return time.Millisecond
	case strings.HasPrefix(s, "m"):
		return time.Minute
	case strings.HasPrefix(s, "h"):
		return time.Hour
	}
	return time.Second
}

// FromToolResult judges a tool result by its parts: structured content first,
// then text that is itself a JSON object, then the wording. A result that is no
// declared error says nothing about a quota, whatever its text mentions.
func FromToolResult(isError bool, structuredContent json.RawMessage, text string) Finding {
	if !isError {
		return Finding{}
	}
	if f := FromFields(structuredContent); f.Limited {
		return f
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") {
		if f := FromFields(json.RawMessage(trimmed)); f.Limited {
			return f
		}
	}
	return FromText(text)
}
