package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"sync"
	"time"
)

// RoundTrip sends one request on a pooled connection. The body of the response
// reads from the connection and gives it back at its end; Close before that
// closes it, also under a read of another goroutine. With ErrHTTP2 the request is
// untouched.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	deadline, _ := ctx.Deadline()
	var request []byte
	for {
		c, err := p.Take(ctx, time.Now(), deadline)
		if err != nil {
			_ = settle(ctx, err) // the error stays that of a dial
			return nil, err
		}
		if request == nil {
			if request, err = layOut(req); err != nil {
				c.Release(time.Now()) // nothing was sent
				return nil, err
			}
		}
		unsent, err := c.Send(append(c.Buffer(), request...))
		if err == nil {
			c.bodiless = req.Method == http.MethodHead
			_, err = c.Head()
		}
		if err == nil {
			return c.Response(ctx, req), nil
		}
		c.Discard()
		if !unsent || ctx.Err() != nil {
			return nil, settle(ctx, c.Fail(ctx, err))
		}
	}
}

// settle waits for the context to end when its deadline, which is that of the
// connection, was the reason of an error: the two may be microseconds apart.
func settle(ctx context.Context, err error) error {
	if at, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(at) {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// layOut writes a request whole.
func layOut(req *http.Request) ([]byte, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	buf, err := AppendHead(nil, req.Method, req.URL, host, req.Header)
	if err != nil {
		return nil, err
	}
	if req.Body == nil || req.Body == http.NoBody {
		if req.Method == http.MethodPost || req.Method == http.MethodPut {
			return AppendLength(buf, 0), nil
		}
		return append(buf, "\r\n"...), nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("http1: body of the request: %w", err)
	}
	return append(AppendLength(buf, len(body)), body...), nil
}

// Response wraps the answer whose head has been read. Its body begins with what
// has been read of it already. From here on the connection is the response's.
// ctx is the call's, or one made from it.
func (c *Conn) Response(ctx context.Context, req *http.Request) *http.Response {
	h := make(http.Header, len(c.head.fields))
	for i := range c.head.fields {
		name, value := c.Field(i)
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		h[key] = append(h[key], string(value))
	}
	r := &http.Response{
		Status: fmt.Sprintf("%d %s", c.head.Status, http.StatusText(c.head.Status)), StatusCode: c.head.Status,
		Proto: fmt.Sprintf("HTTP/1.%d", c.head.Minor), ProtoMajor: 1, ProtoMinor: c.head.Minor,
		Header: h, ContentLength: c.head.Length, Close: c.head.Close, Request: req,
	}
	if c.head.chunked {
		delete(h, "Transfer-Encoding")
		r.TransferEncoding = []string{"chunked"}
	}
	r.Body = &body{ctx: ctx, c: c, given: c.body, none: c.coder.ended() && c.dec == c.body}
	return r
}

// body streams the rest of an answer.
type body struct {
	ctx   context.Context // of the call, for what its end is called
	c     *Conn
	given int   // handed out up to here, as an offset into the buffer
	err   error // sticky
	none  bool  // there is no body

	mu     sync.Mutex // guards what follows
	gone   bool       // the connection was given back or closed
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.shut() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.read(p)
	if err != nil {
		b.err = b.finish(err)
	}
	return n, b.err
}

func (b *body) shut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *body) read(p []byte) (int, error) {
	c := b.c
	if b.given == c.dec {
		c.dec, b.given = c.body, c.body
		if len(p) >= firstBuffer && c.r == c.w && c.coder.state == byLength {
			return c.direct(p)
		}
		if err := c.More(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in[b.given:c.dec])
	b.given += n
	if b.given == c.dec && c.coder.ended() {
		return n, io.EOF
	}
	return n, nil
}

// direct reads past the buffer into p.
func (c *Conn) direct(p []byte) (int, error) {
	p = p[:min(int64(len(p)), c.coder.left)]
	for {
		n, err := c.net.Read(p)
		c.reads++
		c.coder.left -= int64(n)
		if c.coder.left == 0 {
			c.coder.state = complete
			return n, io.EOF
		}
		if n > 0 || err == nil {
			return n, nil
		}
		if !c.again(err) {
			return 0, cut(err, true)
		}
	}
}

// finish gives the connection back at the end of the body, and closes it after
// anything else.
func (b *body) finish(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.gone: // closed under the read
		if errors.Is(err, io.EOF) {
			return err
		}
		return http.ErrBodyReadAfterClose
	case errors.Is(err, io.EOF):
		b.gone = true
		b.c.Release(time.Now())
		return err
	}
	b.gone = true
	b.c.Discard()
	if b.c.aborted.Load() {
		<-b.ctx.Done()
	}
	return settle(b.ctx, err)
}

// Close gives up what is left of the answer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if !b.gone {
		b.gone = true
		if b.none {
			b.c.Release(time.Now())
		} else {
			b.c.Discard()
		}
	}
	return nil
}
