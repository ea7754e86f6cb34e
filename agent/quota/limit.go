package quota

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// limit is what rate-limit headers say; -1 and 0 mean not said.
type limit struct {
	limit, remaining int64
	window           time.Duration // from a policy, or by the unit in the header's name
	reset            time.Duration // until the quota is refilled
}

// epochFloor tells a reset given as Unix time from one given in seconds: no
// window lasts 30 years.
const epochFloor = 1e9

// readLimit reads the usual dialects. Of several dialects in one response the
// first that names a limit or a remainder wins; of several quotas in one dialect
// (requests, tokens; per minute, per day) the one nearest to exhaustion, and the
// one that counts requests before one that counts tokens.
func readLimit(h http.Header, now time.Time) (limit, bool) {
	if sent, ok := parseDate(h.Get("Date"), now); ok {
		now = sent
	}
	best, found := limit{remaining: -1}, false
	for _, dialect := range dialects {
		l, ok := dialect(h, now)
		if ok && (!found || l.tighter(best)) {
			best, found = l, true
		}
	}
	return best, found
}

var dialects = []func(http.Header, time.Time) (limit, bool){structured, plainHeaders, vendorHeaders}

// tighter orders quotas: an exhausted one first.
func (l limit) tighter(o limit) bool { return l.remaining == 0 && o.remaining != 0 }

// structured reads the structured fields of the IETF draft:
//
//	RateLimit-Policy: "burst";q=100;w=60
//	RateLimit: "burst";r=0;t=30
func structured(h http.Header, _ time.Time) (limit, bool) {
	l := limit{remaining: -1}
	field, policy := h.Get("RateLimit"), h.Get("RateLimit-Policy")
	name := ""
	if field != "" {
		var params map[string]int64
		name, params = item(field)
		if r, ok := params["r"]; ok {
			l.remaining = r
		}
		l.reset = seconds(params["t"])
	}
	for entry := range strings.SplitSeq(policy, ",") {
		id, params := item(entry)
		if name != "" && id != name && strings.Contains(policy, ",") {
			continue
		}
		l.limit, l.window = params["q"], seconds(params["w"])
		if q, err := strconv.ParseInt(id, 10, 64); err == nil && l.limit == 0 { // older drafts: 100;w=60
			l.limit = q
		}
		break
	}
	return l, l.remaining >= 0 || l.limit > 0
}

func item(s string) (name string, params map[string]int64) {
	parts := strings.Split(s, ";")
	params = map[string]int64{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			params[key] = n
		}
	}
	return strings.Trim(strings.TrimSpace(parts[0]), `"`), params
}

// plainHeaders reads <prefix>-Limit, -Remaining and -Reset. A limit may carry
// its window as "100, 100;w=60"; a reset is seconds, or a Unix time.
func plainHeaders(h http.Header, now time.Time) (limit, bool) {
	for _, prefix := range []string{"Ratelimit", "X-Ratelimit", "X-Rate-Limit"} {
		l := limit{remaining: -1}
		head, rest, _ := strings.Cut(h.Get(prefix+"-Limit"), ",")
		l.limit, _ = count(head)
		if _, params := item(rest); l.limit > 0 {
			l.window = seconds(params["w"])
		}
		if n, ok := count(h.Get(prefix + "-Remaining")); ok {
			l.remaining = n
		}
		if l.remaining < 0 && l.limit == 0 {
			continue
		}
		l.reset = resetAt(h.Get(prefix+"-Reset"), now)
		return l, true
	}
	return limit{}, false
}

// vendorHeaders reads the headers of the two big model APIs, which keep
// separate quotas for requests and tokens:
//
//	x-ratelimit-{limit,remaining,reset}-{requests,tokens}          reset as 1s, 6m0s, 20ms
//	anthropic-ratelimit-{requests,tokens,...}-{limit,remaining,reset}  reset as RFC 3339
func vendorHeaders(h http.Header, now time.Time) (limit, bool) {
	best, found := limit{remaining: -1}, false
	for _, what := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		for _, name := range []func(part string) string{
			func(part string) string { return "X-Ratelimit-" + part + "-" + what },
			func(part string) string { return "Anthropic-Ratelimit-" + what + "-" + part },
		} {
			l := limit{remaining: -1}
			if n, ok := count(h.Get(name("Remaining"))); ok {
				l.remaining = n
			}
			if what == "Requests" { // a limit of tokens is no number of requests
				l.limit, _ = count(h.Get(name("Limit")))
			}
			l.reset = resetAt(h.Get(name("Reset")), now)
			if (l.remaining >= 0 || l.limit > 0) && (!found || l.tighter(best)) {
				best, found = l, true
			}
		}
	}
	return best, found
}

func resetAt(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case math.IsNaN(f) || f < 0:
			return 0
		case f >= epochFloor*1000: // milliseconds since 1970
			f = f/1000 - unix(now)
		case f >= epochFloor:
			f -= unix(now)
		}
		wait, _ := capped(max(0, f) * float64(time.Second))
		return wait
	}
	if d, err := time.ParseDuration(s); err == nil {
		return min(max(0, d), MaxWait)
	}
	if at, ok := parseDate(s, now); ok {
		return min(max(0, at.Sub(now)), MaxWait)
	}
	return 0
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

func count(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return max(0, n), err == nil && n >= 0
}

func seconds(n int64) time.Duration {
	return min(time.Duration(min(n, int64(MaxWait/time.Second)))*time.Second, MaxWait)
}
