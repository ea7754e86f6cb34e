package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"ordeal/agent/http1"
	"ordeal/metrics"
)

// The fast way of a call: a request laid out beforehand, the answer judged where
// it lies in the buffer of its connection. It ends in a success that classify
// recognised, or in the thorough way, which takes over the answer with all bytes
// of it read so far. There is one judge of everything unusual.

// fast makes a call over streamable HTTP. done is false when it has to be made in
// the thorough way; nothing was sent then.
func (s *Session) fast(ctx context.Context, tool string, args json.RawMessage) (x metrics.Exchange, done bool) {
	l, h := s.c.web.Load(), s.handle.Load()
	if l == nil || h == nil || s.c.cfg.Progress || s.c.thorough || ctx.Err() != nil {
		return x, false
	}
	pool := l.trip.Pool()
	if pool == nil {
		return x, false
	}
	f := l.frame(h, tool)
	if len(f.head) == 0 || !f.fits(args) {
		return x, false
	}
	q := quick{l: l, h: h, f: f, args: args, id: s.c.ids.Add(1)}
	if !q.run(ctx, pool) {
		return x, false
	}
	if q.odd != nil {
		x = *q.odd
	} else {
		x = q.good()
	}
	s.settle(h, &x)
	return x, true
}

// quick is one call on the fast way.
type quick struct {
	l        *httpLink
	h        *handle
	f        *frame
	args     json.RawMessage
	id       int64
	start    time.Time
	deadline time.Time
	conn     *http1.Conn
	timing   []string
	first    time.Duration // until the head
	took     time.Duration // until the reply
	sent, in int           // bytes of the bodies

	odd *metrics.Exchange // of a call that was no plain success
}

// good is the exchange of a plain success.
func (q *quick) good() metrics.Exchange {
	x := metrics.Exchange{Outcome: metrics.OK, Delivered: true, Executed: metrics.Yes, Status: http.StatusOK,
		Latency: q.took, FirstByte: q.first, BytesOut: int64(q.sent), BytesIn: int64(q.in)}
	if q.timing != nil {
		x.ServerTime = serverTiming(q.timing)
	}
	return x
}

// run is false when the server turns out to speak HTTP/2.
func (q *quick) run(ctx context.Context, pool *http1.Pool) bool {
	q.sent = q.f.bodyLen(q.id, q.args)
	q.start = time.Now()
	q.deadline = q.start.Add(q.l.c.cfg.Timeout)
	for {
		conn, err := pool.Take(ctx, q.start, q.deadline)
		if errors.Is(err, http1.ErrHTTP2) {
			q.l.trip.HandOver()
			return false
		}
		if err != nil {
			q.failed(ctx, err)
			return true
		}
		q.conn = conn
		request := http1.AppendLength(append(conn.Buffer(), q.f.head...), q.sent)
		unsent, err := conn.Send(q.f.appendBody(request, q.id, q.args))
		if unsent && ctx.Err() == nil {
			conn.Discard()
			continue
		}
		var head *http1.Head
		if err == nil {
			head, err = conn.Head()
		}
		if err != nil {
			conn.Discard()
			q.failed(ctx, conn.Fail(ctx, err))
			return true
		}
		q.answered(ctx, head)
		return true
	}
}

// call is what the thorough way knows of a call.
func (q *quick) call() *call {
	return &call{id: q.id, method: "tools/call", name: q.f.tool, session: q.h, args: q.args, body: q.f.appendBody(nil, q.id, q.args)}
}

// failed books a call without an answer.
func (q *quick) failed(ctx context.Context, err error) {
	x := &metrics.Exchange{BytesOut: int64(q.sent), Latency: time.Since(q.start)}
	q.odd = x
	ctx, done := context.WithDeadlineCause(ctx, q.deadline, errCallLimit)
	defer done()
	q.l.c.transportFailure(ctx, err, x)
	q.l.cancelled(ctx, q.call(), x)
}

// answered looks at an answer whose head has come.
func (q *quick) answered(ctx context.Context, head *http1.Head) {
	came := time.Now()
	q.first = came.Sub(q.start)
	replied, ok := time.Time{}, false
	switch q.kind(head) {
	case answerJSON:
		replied, ok = q.single(came)
	case answerEvents:
		replied, ok = q.stream(came)
	}
	if !ok {
		q.handOver(ctx, head, replied)
		return
	}
	q.took, q.in = replied.Sub(q.start), len(q.conn.Body())
	if q.conn.Complete() {
		q.conn.Release(replied)
	} else {
		q.conn.Discard()
	}
}

type answerKind uint8

const (
	answerOther answerKind = iota
	answerJSON
	answerEvents
)

var (
	contentType     = []byte("Content-Type")
	contentEncoding = []byte("Content-Encoding")
	serverTimes     = []byte("Server-Timing")
	kindJSON        = []byte("application/json")
	kindEvents      = []byte("text/event-stream")
)

// kind reads the headers. Those that could mean anything for the outcome but the
// content type make it an answer of another kind.
func (q *quick) kind(head *http1.Head) answerKind {
	if head.Status != http.StatusOK || head.Length > q.l.c.cfg.MaxMessage {
		return answerOther
	}
	kind := answerOther
	for i := range q.conn.Fields() {
		name, value := q.conn.Field(i)
		switch {
		case len(name) == len(contentType) && bytes.EqualFold(name, contentType):
			if kind != answerOther {
				return answerOther
			}
			if kind = kindOf(value); kind == answerOther {
				return answerOther
			}
		case len(name) == len(serverTimes) && bytes.EqualFold(name, serverTimes):
			q.timing = append(q.timing, string(value))
		case len(name) == len(contentEncoding) && bytes.EqualFold(name, contentEncoding), namesLimit(name):
			return answerOther
		}
	}
	return kind
}

func kindOf(value []byte) answerKind {
	if end := bytes.IndexByte(value, ';'); end >= 0 {
		value = bytes.TrimSpace(value[:end])
	}
	switch {
	case bytes.EqualFold(value, kindJSON):
		return answerJSON
	case bytes.EqualFold(value, kindEvents):
		return answerEvents
	}
	return answerOther
}

// namesLimit reports a header that may announce a quota: all of them hold the
// word limit.
func namesLimit(name []byte) bool {
	for i := 0; i+5 <= len(name); i++ {
		if name[i]|0x20 == 'l' && bytes.EqualFold(name[i:i+5], []byte("limit")) {
			return true
		}
	}
	return false
}

// single reads a body that is one message. What came with the head came when it
// did.
func (q *quick) single(came time.Time) (replied time.Time, ok bool) {
	reads := q.conn.Reads()
	for !q.conn.Complete() {
		if q.conn.More() != nil && !q.conn.Complete() || int64(len(q.conn.Body())) > q.l.c.cfg.MaxMessage {
			return time.Time{}, false
		}
	}
	if q.conn.Reads() != reads {
		came = time.Now()
	}
	return came, q.plain(q.conn.Body())
}

func (q *quick) plain(data []byte) bool {
	id, ok := classify(data, q.f.guard)
	return ok && id == q.id
}

// stream reads events up to the reply, and a moment longer: the connection can
// serve the next call when the stream ends. replied is set once a good reply was
// there.
func (q *quick) stream(came time.Time) (replied time.Time, ok bool) {
	reads := q.conn.Reads()
	var scan eventScan
	for {
		body := q.conn.Body()
		if int64(len(body)) > q.l.c.cfg.MaxMessage {
			return time.Time{}, false
		}
		state := scan.next(body)
		if state == eventOdd {
			return time.Time{}, false
		}
		if state == eventWhole {
			break
		}
		if q.conn.More() != nil {
			return time.Time{}, false
		}
	}
	if q.conn.Reads() != reads {
		came = time.Now()
	}
	if !q.plain(q.conn.Body()[scan.from:scan.to]) {
		return time.Time{}, false
	}
	return came, q.rest(&scan, came)
}

// rest waits for the end of the stream as answer.rest does. It is false when
// something came that has to be looked at.
func (q *quick) rest(scan *eventScan, came time.Time) bool {
	ends := &q.l.c.ends
	if !q.conn.Complete() {
		if !ends.worthWaiting() || q.conn.Until(came.Add(drainLimit)) != nil {
			return true // closed instead
		}
	}
	for onlyEnds(q.conn.Body()[scan.line:]) {
		if q.conn.Complete() {
			ends.ended()
			return true
		}
		switch err := q.conn.More(); {
		case err == nil, q.conn.Complete():
		case errors.Is(err, io.ErrUnexpectedEOF):
			ends.ended()
			return true
		default:
			q.l.leftOpen()
			return true
		}
	}
	_ = q.conn.Until(q.deadline) // an error shows at the next read
	return false
}

// handOver lets the thorough way judge an answer that was begun here.
func (q *quick) handOver(ctx context.Context, head *http1.Head, replied time.Time) {
	ctx, done := context.WithDeadlineCause(ctx, q.deadline, errCallLimit)
	defer done()
	x := &metrics.Exchange{BytesOut: int64(q.sent), Status: head.Status, FirstByte: q.first}
	q.odd = x
	k := q.call()
	headers := q.l.headers(k)
	resp, err := q.l.follow(ctx, q.conn.Response(ctx, nil), headers, k.body, x)
	if err != nil {
		x.Latency = time.Since(q.start)
		q.l.c.transportFailure(ctx, err, x)
		q.l.cancelled(ctx, k, x)
		return
	}
	if len(x.Notes) > 0 { // redirected
		x.Status, x.FirstByte = resp.StatusCode, time.Since(q.start)
	}
	a := &answer{l: q.l, c: k, x: x, resp: resp, start: q.start}
	if !replied.IsZero() {
		a.replied = replied.Sub(q.start)
	}
	if msg, ok := q.l.took(ctx, a); ok {
		q.l.c.judge(&msg, x, true, false)
	}
}
