package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ordeal/agent/quota"
	"ordeal/metrics"
)

// maxErrorBody of an answer that is no success is read into its message.
const maxErrorBody = 4 << 10

// meter counts and bounds what is read, and remembers how the source ended.
type meter struct {
	src  io.Reader
	n    int64
	max  int64
	last error
}

func (m *meter) Read(p []byte) (int, error) {
	if m.n >= m.max {
		// A body of just the limit is none above it.
		var one [1]byte
		if n, err := m.src.Read(one[:]); n == 0 && err != nil {
			m.last = err
			return 0, err
		}
		m.last = errTooLarge
		return 0, errTooLarge
	}
	n, err := m.src.Read(p[:min(int64(len(p)), m.max-m.n)])
	m.n += int64(n)
	if err != nil {
		m.last = err
	}
	return n, err
}

// answer reads a response and decides what became of the call.
func (f *flight) answer(resp *http.Response) {
	f.Status, f.Delivered = resp.StatusCode, true
	f.FirstByte = f.trip.FirstByte()
	if f.FirstByte == 0 {
		f.FirstByte = f.trip.Elapsed()
	}
	m := &meter{src: resp.Body, max: f.c.cfg.MaxAnswer}
	defer func() { f.BytesIn = m.n }()
	if AnnouncesQuota(resp) {
		f.quota(quota.FromResponse(f.Status, resp.Header, time.Now()))
	}
	switch {
	case f.Outcome == metrics.RateLimited || f.Status < 200 || f.Status >= 300:
		f.refused(resp, m)
	case resp.Header.Get("Content-Encoding") != "" && resp.Header.Get("Content-Encoding") != "identity":
		f.note("the answer came compressed, although identity was asked for: it is counted as it came")
		f.whole(m, false)
	case isEvents(resp.Header):
		f.events(m)
	case isLines(resp.Header):
		f.lines(m)
	default:
		f.whole(m, f.keep)
	}
}

// quota books what a response says about one.
func (f *flight) quota(q quota.Finding) {
	f.Quota, f.RetryAfter, f.QuotaLimit, f.QuotaWindow = q.Seen, q.Wait, q.Limit, q.Window
	if q.Limited {
		f.Outcome = metrics.RateLimited
	}
	for _, n := range q.Notes {
		f.note(n)
	}
}

// AnnouncesQuota reports a response that may say something about a quota: to read
// what is not there costs more than the rest of a response.
func AnnouncesQuota(resp *http.Response) bool {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		return true
	}
	for name := range resp.Header {
		if strings.Contains(name, "atelimit") || strings.HasPrefix(name, "X-Rate-Limit") {
			return true
		}
	}
	return false
}

// refused handles every status that is no success.
func (f *flight) refused(resp *http.Response, m *meter) {
	body, err := io.ReadAll(io.LimitReader(m, maxErrorBody))
	if err != nil && f.ctx.Err() != nil {
		f.broken(err)
		return
	}
	f.Latency = f.trip.Elapsed()
	reason := statusText(f.Status)
	if to := redirectHost(resp); to != "" {
		reason += " redirects to " + to + ", which is not followed"
	} else if text := strings.TrimSpace(string(body)); text != "" {
		reason += ": " + text
	}
	outcome := statusOutcome(f.Status)
	if f.Outcome == metrics.RateLimited {
		outcome = metrics.RateLimited
	}
	f.Executed = metrics.No
	if f.Status >= 500 || f.Status == http.StatusRequestTimeout {
		f.Executed = metrics.Unknown
	}
	if f.Status == http.StatusProxyAuthRequired {
		f.Origin = metrics.FromProxy
	}
	f.conclude(outcome, reason)
	f.drain(m)
}

// redirectHost names where a redirect leads; the rest of a location may hold
// credentials.
func redirectHost(resp *http.Response) string {
	if resp.StatusCode/100 != 3 {
		return ""
	}
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" {
		return "a place of its own"
	}
	return to.Host
}

func statusOutcome(status int) metrics.Outcome {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return metrics.AuthRequired
	case status == http.StatusRequestTimeout:
		return metrics.Timeout
	case status >= 500:
		return metrics.ServerError
	case status >= 400:
		return metrics.ProtocolError
	}
	return metrics.InvalidResponse
}

// drain reads what is left, so that the connection can be used again.
func (f *flight) drain(m *meter) {
	if m.last != nil {
		return
	}
	timer := time.AfterFunc(drainTime, func() { f.cancel(errDone) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, m, drainBytes)
}

// buffers are for bodies that nobody keeps.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// whole reads a body that is no stream.
func (f *flight) whole(m *meter, keep bool) {
	var text strings.Builder
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := m.Read(buf[:])
		if keep {
			text.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.broken(err)
			return
		}
	}
	f.ok(f.trip.Elapsed())
	if keep {
		f.said(text.String())
	}
}

// ok books a complete success.
func (f *flight) ok(at time.Duration) {
	f.Latency, f.Outcome, f.Executed = at, metrics.OK, metrics.Yes
}

// said keeps the text of an answer, and as structure where it is JSON.
func (f *flight) said(text string) {
	f.Text = f.c.cfg.Redact.Text(text)
	if json.Valid([]byte(f.Text)) {
		f.Structured = json.RawMessage(f.Text)
	}
}

// invalid books an answer that is not what it says.
func (f *flight) invalid(reason string) {
	f.Latency, f.Executed = f.trip.Elapsed(), metrics.Unknown
	f.conclude(metrics.InvalidResponse, fmt.Sprintf("%s after %d events", reason, f.seen))
}
