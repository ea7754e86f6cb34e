package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ordeal/agent/quota"
	"ordeal/metrics"
)

// maxErrorBody of an answer that is no success is read.
const maxErrorBody = 64 << 10

// refused books an answer that turns the call away for quota.
func (a *answer) refused(q quota.Finding) (message, bool) {
	a.x.Delivered = true
	a.l.c.limited(a.x, q, a.excerpt(a.errorBody()))
	return message{}, false
}

func (a *answer) errorBody() []byte {
	body, err := a.decoded()
	if err != nil {
		return nil
	}
	all, _ := a.readAll(io.LimitReader(body, maxErrorBody)) // an excerpt, whatever ends it
	return all
}

func (a *answer) excerpt(body []byte) string {
	return strings.TrimSuffix(statusText(a.x.Status)+": "+strings.TrimSpace(string(body)), ": ")
}

// status judges an answer that is no success. A JSON-RPC error for our id says
// more than the status it came with, but for authorization, and for a session
// the server does not know.
func (a *answer) status(ctx context.Context, r io.Reader) (message, bool) {
	body, err := a.readAll(io.LimitReader(r, maxErrorBody))
	a.x.Latency = time.Since(a.start)
	a.x.Delivered = true
	if ctx.Err() != nil && err != nil {
		return a.broken(ctx, err)
	}
	msg, perr := parseMessage(body)
	ours := perr == nil && msg.fault != nil && msg.fit(a.c.id) == idSame
	switch s := a.x.Status; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		a.x.Executed = metrics.No
		a.l.c.fail(a.x, metrics.AuthRequired, statusText(s)+challenge(a.resp.Header))
	case s < 400:
		a.l.c.fail(a.x, metrics.InvalidResponse, fmt.Sprintf("HTTP %d redirects to %s, which is not followed", s, orElse(a.resp.Header.Get("Location"), "nowhere")))
	case s == http.StatusNotFound && a.c.session.known() && !(ours && unknownMethod(msg.fault)):
		a.x.Executed = metrics.No
		a.l.c.fail(a.x, metrics.SessionLost, "the server does not know this session (HTTP 404)")
	case ours:
		return msg, true
	case s == http.StatusBadRequest && a.c.session.known() && perr == nil && sessionRefused(string(msg.fault)):
		a.x.Executed, a.x.ByText = metrics.No, true
		a.l.c.fail(a.x, metrics.SessionLost, a.excerpt(body))
	case perr == nil && msg.fault != nil:
		a.note("error with id " + orElse(string(msg.id), "missing"))
		return msg, true
	case s >= 500:
		a.l.c.fail(a.x, metrics.ServerError, a.excerpt(body))
	default:
		a.l.c.fail(a.x, metrics.ProtocolError, a.excerpt(body))
	}
	return message{}, false
}

// unknownMethod tells the one 404 with our id that is not about the session.
func unknownMethod(fault json.RawMessage) bool {
	var f struct {
		Code int `json:"code"`
	}
	return json.Unmarshal(fault, &f) == nil && f.Code == -32601
}

// sessionRefused recognises the wording with which some servers answer 400
// instead of 404 to a session they do not know.
func sessionRefused(fault string) bool {
	fault = strings.ToLower(fault)
	return strings.Contains(fault, "session") && !strings.Contains(fault, "already")
}

// challenge sums up what a WWW-Authenticate header offers.
func challenge(h http.Header) string {
	values := h["Www-Authenticate"]
	if len(values) == 0 {
		return " without a challenge"
	}
	return ": " + strings.Join(values, ", ")
}

// serverTiming reads the duration a Server-Timing header gives: of the metric
// called total, or else the longest.
func serverTiming(values []string) time.Duration {
	var longest time.Duration
	for _, value := range values {
		for entry := range strings.SplitSeq(value, ",") {
			parts := strings.Split(entry, ";")
			for _, p := range parts[1:] {
				text, ok := strings.CutPrefix(strings.TrimSpace(p), "dur=")
				if !ok {
					continue
				}
				ms, err := strconv.ParseFloat(strings.Trim(text, `"`), 64)
				if err != nil || !(ms >= 0 && ms < 1e9) {
					continue
				}
				d := time.Duration(ms * float64(time.Millisecond))
				if strings.EqualFold(strings.TrimSpace(parts[0]), "total") {
					return d
				}
				longest = max(longest, d)
			}
		}
	}
	return longest
}
