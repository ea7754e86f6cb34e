package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"ordeal/agent/sse"
	"ordeal/metrics"
)

const (
	maxResumes    = 5                     // of one answer
	defaultResume = time.Second           // before a resumption when the stream names no delay
	drainLimit    = 20 * time.Millisecond // for the end of a stream whose reply has come
)

// stream reads events until our reply.
func (a *answer) stream(ctx context.Context, body io.Reader) (message, bool) {
	r := sse.NewReader(body, int(a.l.c.cfg.MaxMessage))
	msg, err := a.events(ctx, r)
	for n := 0; errors.Is(err, errNoReply) && n < maxResumes; n++ {
		before := r.LastID()
		if before == "" || a.l.c.era().modern() || a.c.session == nil || a.c.session.header == nil {
			break
		}
		next, rerr := a.resume(ctx, r)
		if rerr != nil {
			return a.broken(ctx, rerr)
		}
		if next == nil {
			break
		}
		a.note("answer stream broke off and was resumed")
		msg, err = a.events(ctx, next)
		if next.LastID() == before || next.LastID() == "" {
			break
		}
		r = next
	}
	switch {
	case err == nil:
		return a.own(msg)
	case errors.Is(err, errNoReply):
		a.x.Latency = time.Since(a.start)
		a.x.Delivered = a.wire.n > 0
		a.l.c.fail(a.x, metrics.Connection, err.Error())
		return message{}, false
	case errors.Is(err, errForeignEvent):
		return a.invalid(err.Error())
	}
	return a.broken(ctx, err)
}

var (
	errNoReply      = errors.New("stream ended without a reply")
	errForeignEvent = errors.New("event that is no JSON-RPC message")
)

// events returns the reply of the call, or how the stream ended. An event that
// cannot be read is remembered: it may have been the reply, and is the reason if
// none comes.
func (a *answer) events(ctx context.Context, r *sse.Reader) (message, error) {
	var foreign error
	for {
		e, err := r.Next()
		if err != nil {
			return message{}, ended(err, foreign)
		}
		if len(e.Data) == 0 {
			continue // a priming event
		}
		msg, perr := parseMessage(e.Data)
		switch {
		case perr != nil || msg.foreign():
			if e.Type == "message" {
				a.note("event that is no JSON-RPC message")
				foreign = fmt.Errorf("%w: %s", errForeignEvent, e.Data[:min(len(e.Data), 4<<10)])
			}
		case msg.isRequest():
			a.answerServer(ctx, msg)
		case msg.isNotification():
			if string(msg.method) == `"notifications/progress"` {
				a.c.steps.see(a.c.id, msg.params)
			}
		case msg.fit(a.c.id) == idOther:
			a.note("reply for another request on this stream")
		default:
			if a.x.Latency = a.replied; a.replied == 0 {
				a.x.Latency = time.Since(a.start)
			}
			a.rest(r)
			return msg, nil
		}
	}
}

func ended(err, foreign error) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case foreign != nil:
		return foreign
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w, in the middle of an event", errNoReply)
	}
	return errNoReply
}

// streamEnds remembers whether the server ends its answer streams after the
// reply, as it should. It is safe for concurrent use.
type streamEnds struct {
	open    atomic.Int32 // streams in a row that stayed open
	skipped atomic.Int32
}

const (
	openInARow = 8  // from here on a server is taken not to end its streams
	askAgain   = 32 // of its streams one in so many is waited for even so
)

func (s *streamEnds) worthWaiting() bool {
	return s.open.Load() < openInARow || s.skipped.Add(1)%askAgain == 0
}

// ended notes a stream that did as it should.
func (s *streamEnds) ended() {
	if s.open.Load() != 0 {
		s.open.Store(0)
	}
}

// rest waits a moment for the end of the stream, after which its connection
// serves the next call. That is no part of the latency, and not done where it
// never helps: the connection is closed instead.
func (a *answer) rest(r *sse.Reader) {
	ends := &a.l.c.ends
	if !ends.worthWaiting() {
		return
	}
	timer := time.AfterFunc(drainLimit, func() { a.resp.Body.Close() })
	defer timer.Stop()
	for {
		e, err := r.Next()
		switch {
		case err == nil && bytes.Contains(e.Data, []byte(`"notifications/progress"`)):
			a.c.steps.note("progress after the reply")
			continue
		case err == nil:
			a.note("events after the reply")
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			ends.ended()
		default:
			a.l.leftOpen()
		}
		return
	}
}

// leftOpen counts a stream that did not end after its reply.
func (l *httpLink) leftOpen() {
	if l.c.ends.open.Add(1) == openInARow {
		l.c.find.add("answer streams stay open after the reply", "")
	}
}

// resume asks for the rest of a broken stream, after the delay it named. It
// returns nil when the server does not offer that.
func (a *answer) resume(ctx context.Context, r *sse.Reader) (*sse.Reader, error) {
	delay := r.Retry()
	if delay == 0 {
		delay = defaultResume
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := a.c.session.header.Clone()
	h["Last-Event-Id"] = []string{r.LastID()}
	h["Accept"] = []string{"text/event-stream"}
	delete(h, "Content-Type")
	resp, err := a.l.trip.RoundTrip(a.l.request(ctx, http.MethodGet, h, nil))
	if err != nil {
		return nil, err
	}
	a.resp.Body.Close()
	a.resp = resp // closed with the answer
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.note("resumption answered with " + statusText(resp.StatusCode))
		return nil, nil
	}
	seen := a.wire.n
	a.wire = counter{resp.Body, seen}
	return sse.NewReader(&a.wire, int(a.l.c.cfg.MaxMessage)), nil
}

// answerServer replies to a request the server put into the stream, beside the
// stream: a server may hold the POST until the stream has gone on.
func (a *answer) answerServer(ctx context.Context, msg message) {
	method := msg.name()
	if a.l.c.era().modern() {
		a.note("request from the server (" + method + "), which this revision forbids")
		return
	}
	stop := a.c.answers.start()
	body := reply(msg.id, method)
	session := a.c.session
	a.l.wg.Go(func() {
		defer stop()
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), a.l.c.cfg.StopGrace)
		defer done()
		if err := a.l.post(ctx, session, body); err != nil {
			a.l.c.find.add("answer to a request of the server: "+err.Error(), method)
		}
	})
}
