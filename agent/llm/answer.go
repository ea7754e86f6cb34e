package llm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"ordeal/agent/sse"
	"ordeal/metrics"
)

const maxErrorBody = 64 << 10

// answer reads a response and decides what became of the call.
func (f *flight) answer(resp *http.Response) {
	f.Status, f.Delivered = resp.StatusCode, true
	f.FirstByte = f.trip.FirstByte()
	f.RequestID = firstHeader(resp.Header, "X-Request-Id", "Request-Id")
	m := &meter{src: resp.Body, max: f.c.cfg.MaxAnswer}
	defer func() { f.BytesIn = m.n }()
	if resp.StatusCode != http.StatusOK {
		f.refused(resp, m)
	} else {
		f.complete(resp.Header.Get("Content-Type"), m)
	}
	f.limits(resp)
	f.drain(m)
}

func firstHeader(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// refused handles every status but 200.
func (f *flight) refused(resp *http.Response, m *meter) {
	body, err := io.ReadAll(io.LimitReader(m, maxErrorBody))
	if err != nil && len(body) == 0 {
		f.note("the body of the error could not be read")
	}
	f.Latency = f.elapsed()
	bad, structured := parseError(body)
	named := len(resp.Header["Retry-After"])+len(resp.Header["Retry-After-Ms"]) > 0
	outcome := statusOutcome(resp.StatusCode, named)
	if resp.StatusCode == http.StatusServiceUnavailable && bad.overloaded() {
		outcome = metrics.RateLimited
	}
	f.Executed = metrics.No
	if resp.StatusCode >= http.StatusInternalServerError {
		f.Executed = metrics.Unknown
	}
	reason := fmt.Sprintf("HTTP %d", resp.StatusCode)
	switch {
	case resp.StatusCode/100 == 3:
		reason += ", redirect " + redirectHost(resp) + "refused"
	case structured:
		reason += " " + bad.String()
	case len(body) > 0:
		reason += ": " + string(body)
	}
	f.conclude(outcome, reason)
	f.learn(bad)
}

// redirectHost names the host a redirect leads to; the rest of a location may
// hold credentials.
func redirectHost(resp *http.Response) string {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" {
		return ""
	}
	return "to host " + to.Host + " "
}

// learn adapts later calls to a server that refuses one of the fields we send.
func (f *flight) learn(bad apiError) {
	if bad.used() {
		f.note("the quota is used up: waiting a little does not help")
	}
	if f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity {
		return
	}
	switch {
	case bad.names("stream_options") && f.c.asksUsage():
		f.c.noUsage.Store(true)
		f.note("the server refuses stream_options: left out from the next call on, so it may report no usage")
	case f.c.cfg.Wire == OpenAI && bad.names("max_tokens") && !f.c.newLimit.Load():
		f.c.newLimit.Store(true)
		f.note("the server refuses max_tokens: max_completion_tokens from the next call on")
	}
}

// complete reads the answer to an accepted request.
func (f *flight) complete(contentType string, m *meter) {
	head := make([]byte, 512)
	n, err := io.ReadAtLeast(m, head, 1)
	if err != nil && !errors.Is(err, io.EOF) {
		f.broken(err)
		return
	}
	body := io.MultiReader(bytes.NewReader(head[:n]), m)
	media, _, _ := mime.ParseMediaType(contentType)
	switch shape(head[:n], media) {
	case shapeStream:
		if media != "text/event-stream" {
			f.note("a stream sent as " + orNone(media))
		}
		f.stream(body, m)
	case shapeDocument:
		f.document(body)
	case shapeEmpty:
		f.end(metrics.InvalidResponse, "empty body with status 200")
	default:
		f.end(metrics.InvalidResponse, fmt.Sprintf("not a completion, content type %s: %s", orNone(media), head[:n]))
	}
}

type bodyShape int

const (
	shapeStream bodyShape = iota
	shapeDocument
	shapeEmpty
	shapeForeign
)

// shape tells what a body is by its first bytes, and by its content type where
// they leave it open: servers mislabel streams, and put errors into them.
func shape(head []byte, media string) bodyShape {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(head) == 0:
		return shapeEmpty
	case bytes.HasPrefix(text, []byte("{")):
		return shapeDocument
	case media == "text/event-stream":
		return shapeStream
	}
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(text, []byte(field)) {
			return shapeStream
		}
	}
	return shapeForeign
}

func orNone(media string) string {
	if media == "" {
		return "none"
	}
	return media
}

// end concludes a call whose answer has been read.
func (f *flight) end(o metrics.Outcome, reason string) {
	f.Latency = f.elapsed()
	f.Executed = metrics.Unknown
	f.conclude(o, reason)
}

// stream reads events until the end marker, an error, or the end.
func (f *flight) stream(body io.Reader, m *meter) {
	events := sse.NewReader(body, int(f.c.cfg.MaxAnswer))
	for {
		event, err := events.Next()
		if err != nil {
			f.streamEnded(events, m, err)
			return
		}
		f.lastSeen = f.trip.Arrived() // before anything is made of it
		token, err := f.said.event(f.c.cfg.Wire, event.Type, event.Data)
		if token {
			f.token(f.lastSeen)
		}
		if err != nil {
			f.misbehaved(err)
			return
		}
		if f.said.marked {
			f.judge(f.lastSeen)
			return
		}
	}
}

// misbehaved handles an error object in a stream, or an event that breaks the
// protocol.
func (f *flight) misbehaved(err error) {
	f.fill()
	var bad apiError
	if !errors.As(err, &bad) {
		f.end(metrics.InvalidResponse, err.Error())
		return
	}
	f.end(bad.outcome(), fmt.Sprintf("error in the stream after %d tokens: %v", f.tokens, bad))
	if f.Outcome == metrics.RateLimited {
		f.Quota = "stream_error"
	}
	f.learn(bad)
}

// streamEnded handles a stream that ended, one way or another, before its marker.
func (f *flight) streamEnded(events *sse.Reader, m *meter, err error) {
	if f.said.stop != "" && f.c.cfg.Wire == OpenAI {
		f.note("finish_reason came, but no [DONE]")
		f.judge(f.lastSeen)
		return
	}
	if bad, ok := parseError(events.Stray()); ok {
		f.misbehaved(bad)
		return
	}
	f.fill()
	if !errors.Is(m.last, io.EOF) {
		if errors.Is(err, sse.ErrTooLarge) {
			err = errTooLarge
		}
		f.broken(err)
		return
	}
	reason := fmt.Sprintf("the stream ended after %d tokens without an end marker", f.tokens)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason += ", in the middle of an event"
	}
	if stray := events.Stray(); stray != nil {
		reason += fmt.Sprintf("; it held the line %q", stray)
	}
	if f.said.stop != "" {
		f.note("the stop reason " + f.said.stop + " had come: what is missing is message_stop alone")
	}
	f.end(metrics.InvalidResponse, reason)
	f.Truncated = true
}

// document reads an answer that came as one JSON text instead of a stream.
func (f *flight) document(body io.Reader) {
	data, err := io.ReadAll(body)
	if err != nil {
		f.broken(err)
		return
	}
	if bad, ok := parseError(data); ok {
		f.misbehaved(bad)
		return
	}
	if err := f.said.document(f.c.cfg.Wire, data); err != nil {
		f.end(metrics.InvalidResponse, err.Error())
		return
	}
	f.note("a stream was asked for, one JSON document came: no time to first token")
	f.judge(f.elapsed())
}

// judge decides about an answer that is complete.
func (f *flight) judge(at time.Duration) {
	f.fill()
	f.Latency = at
	f.Executed = metrics.Yes
	outcome, reason := f.said.verdict()
	f.conclude(outcome, reason)
	if f.said.stop == "" {
		f.note("the end marker came without a stop reason")
	}
	if f.said.limited() {
		f.Truncated = true
		f.note("stopped at the token limit")
	}
}

// fill copies what was said into the reply.
func (f *flight) fill() {
	a := &f.said
	f.Text, f.Tools, f.Stop, f.Model = a.text.String(), a.calls(), a.stop, a.model
	f.Usage, f.TokensIn, f.TokensOut, f.CachedIn = a.usage.seen, a.usage.in, a.usage.out, a.usage.cached
}
