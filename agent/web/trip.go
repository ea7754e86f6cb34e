package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Trip is one request on its way: on which connection it went, and when. It is
// good for one call, and must not be copied.
type Trip struct {
	start  time.Time
	zero   time.Duration // start in the terms of Conn.Arrived
	cancel context.CancelCauseFunc

	// What the connection's goroutines write.
	conn      atomic.Pointer[Conn] // nil when it does not tell
	sent      atomic.Int64         // written on conn before this request
	firstByte atomic.Int64         // after start, ns
	tries     atomic.Int32         // connections that the request was given
	recycled  atomic.Int32         // of them in place of one found closed
	wrote     atomic.Bool          // the whole request is with the kernel
	traced    atomic.Bool          // the transport tells about its connections
	reused    atomic.Bool
	shared    atomic.Bool // HTTP/2
}

// ErrCrossed ends a call whose connection the server closed as the request was on
// its way: it may have been seen, so it is not sent again.
var ErrCrossed = errors.New("the server closed the connection as it was used again")

// Begin starts the clock. The context returned is that of the request; cancel ends
// it.
func (t *Trip) Begin(ctx context.Context, cancel context.CancelCauseFunc) context.Context {
	t.start, t.cancel = time.Now(), cancel
	t.zero = Since(t.start)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.traced.Store(true) },
		GotConn: t.gotConn,
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				t.wrote.Store(true)
			}
		},
		GotFirstResponseByte: func() { t.firstByte.Store(int64(t.Arrived())) },
	})
}

// gotConn notes the connection. The library repeats a request that may have been
// seen when its method is one without effects; that would be a hidden second call.
// Over HTTP/2 it repeats only what the server said it had not begun.
func (t *Trip) gotConn(info httptrace.GotConnInfo) {
	if t.tries.Add(1) > 1 {
		if !t.shared.Load() && t.wrote.Load() && !t.unseen() {
			t.cancel(ErrCrossed)
			info.Conn.Close() // or the library would write before it looks at the context
		}
		t.recycled.Add(1)
	}
	t.wrote.Store(false)
	t.reused.Store(info.Reused)
	secured, ok := info.Conn.(*tls.Conn)
	t.shared.Store(ok && secured.ConnectionState().NegotiatedProtocol == "h2")
	c := StampedConn(info.Conn)
	if c != nil {
		t.sent.Store(c.Written())
	}
	t.conn.Store(c)
}

// unseen reports that not a byte of the request has reached the server, which had
// closed its end before.
func (t *Trip) unseen() bool {
	c := t.conn.Load()
	return c != nil && c.Deaf(t.sent.Load())
}

// maxAgain bounds how often a request goes out again after a closed connection.
const maxAgain = 3

// Send makes the round trip. What a closed connection swallowed before the server
// could see a byte of it goes out again on another one, see Recycled.
func (t *Trip) Send(rt http.RoundTripper, request func() *http.Request) (*http.Response, error) {
	t.tries.Store(0)
	t.wrote.Store(false)
	t.firstByte.Store(0)
	for again := 0; ; again++ {
		resp, err := rt.RoundTrip(request())
		if err == nil || again == maxAgain || t.shared.Load() || !t.reused.Load() || t.firstByte.Load() > 0 || !t.unseen() {
			return resp, err
		}
	}
}

// Recycled is how many connections were found closed, or closing, so that the
// request went out on another.
func (t *Trip) Recycled() int { return int(t.recycled.Load()) }

// Crossed reports that the call failed because the server closed a connection that
// had served calls before as this one's request was on its way.
func (t *Trip) Crossed() bool { return t.reused.Load() && t.firstByte.Load() == 0 && !t.shared.Load() }

// Unsent reports that a request that failed with err cannot have been seen whole.
func (t *Trip) Unsent(err error) bool {
	if t.traced.Load() {
		return t.firstByte.Load() == 0 && !t.wrote.Load()
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// FirstByte is when the first byte of the answer came, after the start; 0 unknown.
func (t *Trip) FirstByte() time.Duration { return time.Duration(t.firstByte.Load()) }

// Start of the call.
func (t *Trip) Start() time.Time { return t.start }

// Elapsed since the start.
func (t *Trip) Elapsed() time.Duration { return time.Since(t.start) }

// Arrived is when the bytes read last had come, after the start: by the kernel's
// stamp where there is one, else now. It is meant to be asked right after reading.
func (t *Trip) Arrived() time.Duration {
	c := t.conn.Load()
	if c == nil || t.shared.Load() { // one that streams share is read ahead of them
		return time.Since(t.start)
	}
	return max(c.Arrived()-t.zero, 0)
}
