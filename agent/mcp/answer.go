package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"ordeal/agent/quota"
	"ordeal/agent/sse"
	"ordeal/metrics"
)

// answer reads the response to one POST.
type answer struct {
	l     *httpLink
	c     *call
	x     *metrics.Exchange
	resp  *http.Response
	start time.Time
	wire  counter // below any decoding

	replied time.Duration // when the reply is known to have come on a stream; 0 is not known
}

// counter counts bytes as they come off the wire.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// take returns the message that answers the call. Without one the outcome has
// been decided.
func (a *answer) take(ctx context.Context) (message, bool) {
	defer func() { a.resp.Body.Close() }() // of the last response, should the answer be resumed
	a.wire = counter{Reader: a.resp.Body}
	msg, ok := a.read(ctx)
	if a.x.Latency == 0 {
		a.x.Latency = time.Since(a.start)
	}
	a.x.BytesIn = a.wire.n
	if a.c.method == "initialize" || a.c.method == "server/discover" {
		a.c.header = a.resp.Header
		a.c.sessionID = a.resp.Header.Get("Mcp-Session-Id")
	}
	a.x.ServerTime = serverTiming(a.resp.Header["Server-Timing"])
	return msg, ok
}

func (a *answer) read(ctx context.Context) (message, bool) {
	if announcesQuota(a.resp) {
		if q := quota.FromResponse(a.x.Status, a.resp.Header, time.Now()); q.Limited {
			return a.refused(q)
		} else if q.Seen != "" {
			a.l.c.noteQuota(a.x, q)
		}
	}
	body, err := a.decoded()
	if err != nil {
		return a.invalid(err.Error())
	}
	if a.x.Status < 200 || a.x.Status >= 300 {
		return a.status(ctx, body)
	}
	if a.x.Status == http.StatusAccepted || a.x.Status == http.StatusNoContent {
		return a.invalid(statusText(a.x.Status) + " to a request: no answer will come")
	}
	return a.success(ctx, body)
}

func announcesQuota(resp *http.Response) bool {
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

// decoded undoes gzip, which nobody asked for but everybody can read.
func (a *answer) decoded() (io.Reader, error) {
	switch coding := strings.ToLower(strings.TrimSpace(a.resp.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
		return &a.wire, nil
	case "gzip", "x-gzip":
		a.note("gzip although identity was asked for")
		return &lazyGzip{src: &a.wire}, nil
	default:
		return nil, fmt.Errorf("unsupported content-encoding %s", coding)
	}
}

// lazyGzip reads the gzip header at the first Read, so that an error of the
// connection shows up where the body is read.
type lazyGzip struct {
	src io.Reader
	z   *gzip.Reader
}

func (g *lazyGzip) Read(p []byte) (n int, err error) {
	if g.z == nil {
		if g.z, err = gzip.NewReader(g.src); err != nil {
			g.z = nil
			return 0, err
		}
	}
	return g.z.Read(p)
}

// maxNotes bounds what one answer can add: a stream may repeat its fault for
// ever.
const maxNotes = 12

func (a *answer) note(text string) {
	text = a.l.c.cfg.Redactor.Line(text, messageShown) // it may quote the server
	if len(a.x.Notes) < maxNotes && !slices.Contains(a.x.Notes, text) {
		a.x.Notes = append(a.x.Notes, text)
	}
}

func (a *answer) invalid(text string) (message, bool) {
	a.l.c.fail(a.x, metrics.InvalidResponse, text)
	a.x.Delivered = true
	return message{}, false
}

// broken books a body that ended in an error: the limit of the call, or a cut.
func (a *answer) broken(ctx context.Context, err error) (message, bool) {
	a.x.Latency = time.Since(a.start)
	a.x.Delivered = a.wire.n > 0
	switch {
	case errors.Is(err, errTooLarge) || errors.Is(err, sse.ErrTooLarge):
		return a.invalid(fmt.Sprintf("message too large: more than %d bytes", a.l.c.cfg.MaxMessage))
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum):
		return a.invalid("content-encoding gzip: " + err.Error())
	case ctx.Err() == nil && errors.Is(err, io.ErrUnexpectedEOF):
		a.l.c.fail(a.x, metrics.Connection, "truncated body: the connection closed in the middle of the answer")
	default:
		a.l.c.transportFailure(ctx, err, a.x)
	}
	return message{}, false
}

// maxAhead bounds what is set aside on the word of a Content-Length.
const maxAhead = 1 << 20

// readAll reads a whole body below the limit.
func (a *answer) readAll(r io.Reader) ([]byte, error) {
	limit := a.l.c.cfg.MaxMessage
	size := 1 << 10
	if n := a.resp.ContentLength; n > 0 {
		size = int(min(n, maxAhead)) + 1
	}
	buf := make([]byte, 0, size)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case int64(len(buf)) > limit:
			return nil, errTooLarge
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// success reads a 2xx body for what it is: the content type decides unless the
// first byte contradicts it.
func (a *answer) success(ctx context.Context, body io.Reader) (message, bool) {
	kind, _, _ := strings.Cut(a.resp.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case kind == "text/event-stream":
		head := make([]byte, 1)
		n, err := io.ReadFull(body, head)
		body = io.MultiReader(bytes.NewReader(head[:n]), body)
		if err == nil && head[0] != '{' && head[0] != '[' {
			return a.stream(ctx, body)
		}
		if err == nil {
			a.note("JSON in a response of type text/event-stream")
		}
	case kind == "text/html" || kind == "application/xhtml+xml":
		page, _ := a.readAll(io.LimitReader(body, 4<<10)) // an excerpt, whatever ends it
		return a.invalid("an HTML page: " + string(page))
	}
	all, err := a.readAll(body)
	a.x.Latency = time.Since(a.start)
	if err != nil {
		return a.broken(ctx, err)
	}
	if kind != "text/event-stream" && looksLikeEvents(all) {
		a.note("an event stream in a response of type " + orElse(kind, "(none)"))
		return a.stream(ctx, bytes.NewReader(all))
	}
	if kind != "application/json" && kind != "text/event-stream" {
		a.note("content type " + orElse(kind, "(none)") + " instead of application/json")
	}
	return a.single(all)
}

func looksLikeEvents(body []byte) bool {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(body, []byte(field)) {
			return true
		}
	}
	return false
}

// single reads a body that holds one message.
func (a *answer) single(body []byte) (message, bool) {
	if trimmed, ok := bytes.CutPrefix(body, []byte("\xef\xbb\xbf")); ok {
		a.note("JSON begins with a byte order mark")
		body = trimmed
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return a.invalid("an empty body")
	}
	msg, err := parseMessage(body)
	if errors.Is(err, errBatch) {
		return a.batch(body)
	}
	if err != nil {
		return a.invalid(err.Error() + ": " + string(body[:min(len(body), 4<<10)]))
	}
	if msg.method != nil || msg.result == nil && msg.fault == nil {
		return a.invalid("JSON, but no reply: " + string(body[:min(len(body), 4<<10)]))
	}
	return a.own(msg)
}

// batch picks our reply out of an array.
func (a *answer) batch(body []byte) (message, bool) {
	if a.l.c.era().version != "2025-03-26" {
		a.note("a batch, which this revision does not know")
	}
	for _, msg := range parseBatch(body) {
		if msg.method == nil && msg.fit(a.c.id) != idOther {
			return a.own(msg)
		}
	}
	return a.invalid("a batch without our reply")
}

// own checks that a reply is ours. A response belongs to its request, so an
// error without an id is ours too.
func (a *answer) own(msg message) (message, bool) {
	switch fit := msg.fit(a.c.id); {
	case fit == idSame:
		return msg, true
	case fit == idNone && msg.fault != nil && !isNull(msg.fault):
		a.note("error with id " + idType(msg.id))
		return msg, true
	case fit == idNone, fit == idRetyped:
		a.l.c.fail(a.x, metrics.ProtocolError, retyped(msg.id))
	default:
		a.l.c.fail(a.x, metrics.ProtocolError, fmt.Sprintf("reply has id %s, request had %d", msg.id[:min(len(msg.id), 40)], a.c.id))
	}
	a.x.Delivered = true
	return message{}, false
}
