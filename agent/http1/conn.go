package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	firstBuffer = 4 << 10  // of a connection
	keptBuffer  = 64 << 10 // a buffer above is given back after the call
	maxAhead    = 1 << 20  // set aside on the word of a Content-Length
)

// Conn is a connection during one call. The bytes of the answer stay in its
// buffer until the connection goes back:
//
//	in:  0 ─── head ─── body ═══ dec ─ ─ r ═══ w ─ ─ len
//	           lines    decoded      raw, unread
//
// It is not safe for concurrent use, but for what Discard does to a read that is
// under way.
type Conn struct {
	pool    *Pool
	net     net.Conn
	raw     syscall.RawConn
	secured bool
	looker

	lazy      bool      // an earlier deadline may stand; it is extended when it strikes
	deadline  time.Time // of the call; zero is none
	armed     time.Time // set on the connection
	calls     int64     // begun on it
	idleSince time.Time

	in        []byte
	dec, r, w int
	reads     int   // since the call began
	failed    error // of a read; every later one ends the same way
	out       []byte

	head     Head
	body     int // where it begins
	coder    decoder
	bodiless bool // the request was one whose answer has no body

	mu      sync.Mutex // guards what follows
	inUse   bool
	watched <-chan struct{} // of the context that stop belongs to
	stop    func() bool
	aborted atomic.Bool // written under mu
}

var errAborted = errors.New("http1: the call was given up")

// begin makes the connection one call's. A context watched before costs nothing
// to watch again.
func (c *Conn) begin(ctx context.Context, now, deadline time.Time) error {
	c.calls++
	c.dec, c.r, c.w, c.reads, c.bodiless = 0, 0, 0, 0, false
	c.failed = nil
	c.deadline = deadline
	if !c.lazy || !c.armed.After(now) || !deadline.IsZero() && deadline.Before(c.armed) {
		if err := c.arm(deadline); err != nil {
			return err
		}
	}
	done := ctx.Done()
	c.mu.Lock()
	c.inUse = true
	if done != c.watched {
		c.unwatch()
		if done != nil {
			c.watched = done
			c.stop = context.AfterFunc(ctx, func() { c.abort(done) })
		}
	}
	c.mu.Unlock()
	select {
	case <-done:
		return ctx.Err()
	default:
		return nil
	}
}

// unwatch forgets the context. Callers hold mu.
func (c *Conn) unwatch() {
	if c.stop != nil {
		c.stop()
	}
	c.watched, c.stop = nil, nil
}

// abort ends the call under way when it is one of the context that ended.
func (c *Conn) abort(done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inUse && c.watched == done {
		c.aborted.Store(true) // before the deadline: see arm
		_ = c.net.SetDeadline(time.Unix(1, 0))
	}
}

// arm sets the deadline of the connection. An abort that comes between is not
// undone: it is seen here, or sets its deadline after ours.
func (c *Conn) arm(t time.Time) error {
	if err := c.net.SetDeadline(t); err != nil {
		return err
	}
	c.armed = t
	if c.aborted.Load() {
		return errAborted
	}
	return nil
}

// again reports an error of a deadline that was not that of the call, and sets
// that one.
func (c *Conn) again(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || c.aborted.Load() {
		return false
	}
	if !c.deadline.IsZero() && (!c.armed.Before(c.deadline) || !time.Now().Before(c.deadline)) {
		return false
	}
	return c.arm(c.deadline) == nil
}

// Reused reports whether the connection has served a call before this one.
func (c *Conn) Reused() bool { return c.calls > 1 }

// Reads counts the reads of this call so far: what came with the last one was
// there at the same moment.
func (c *Conn) Reads() int { return c.reads }

// Buffer is an empty buffer to lay out a request in; Send takes it.
func (c *Conn) Buffer() []byte { return c.out[:0] }

// Send writes a request with one write. When the connection was dead before
// anything of the request had left, unsent is true: it can go out on another one.
func (c *Conn) Send(request []byte) (unsent bool, err error) {
	c.out = request
	for rest := request; len(rest) > 0; {
		n, err := c.net.Write(rest)
		rest = rest[n:]
		if err == nil || c.lazy && c.again(err) {
			continue
		}
		gone := errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
		unsent = gone && len(rest) == len(request) && c.Reused() && !c.secured
		if unsent {
			c.pool.recycled.Add(1)
		}
		return unsent, err
	}
	return false, nil
}

// fill reads once from the connection, behind what is unread.
func (c *Conn) fill() error {
	if c.failed != nil {
		return c.failed
	}
	if c.w == len(c.in) || c.r == c.w && c.dec < c.r {
		c.makeRoom()
	}
	for {
		n, err := c.net.Read(c.in[c.w:])
		c.reads++
		c.w += n
		switch {
		case n > 0:
			return nil // an error comes again with the next read
		case err == nil:
			return io.ErrNoProgress
		case !c.again(err):
			c.failed = err
			return err
		}
	}
}

// makeRoom closes the gap before the unread bytes, or gets a larger buffer.
func (c *Conn) makeRoom() {
	if c.dec < c.r {
		c.w = c.dec + copy(c.in[c.dec:], c.in[c.r:c.w])
		c.r = c.dec
	}
	if c.w < len(c.in) {
		return
	}
	size := max(firstBuffer, 2*len(c.in))
	if left := c.coder.expected(); left > 0 {
		size = max(size, c.w+int(min(left, maxAhead)))
	}
	grown := make([]byte, size)
	copy(grown, c.in[:c.w])
	c.in = grown
}

// Release gives the connection back after a complete answer. now is when it came.
func (c *Conn) Release(now time.Time) {
	c.mu.Lock()
	c.inUse = false
	aborted := c.aborted.Load()
	c.mu.Unlock()
	if aborted || c.head.Close || !c.coder.ended() || c.r != c.w {
		c.close()
		return
	}
	if len(c.in) > keptBuffer {
		c.in = nil
	}
	if cap(c.out) > keptBuffer {
		c.out = nil
	}
	c.idleSince = now
	c.pool.push(c)
}

// Discard closes the connection, also under a read of another goroutine.
func (c *Conn) Discard() { c.close() }

func (c *Conn) close() {
	c.mu.Lock()
	c.inUse = false
	c.unwatch()
	c.mu.Unlock()
	_ = c.net.Close() // nothing is left to be lost
}

// Until moves the deadline of the call to t.
func (c *Conn) Until(t time.Time) error {
	c.deadline = t
	if !c.lazy || t.Before(c.armed) {
		return c.arm(t)
	}
	return nil
}

// Fail makes of an error of Send, Head or More what the call is to be told: the
// end of its context or deadline where that was the reason, and on a connection
// used before whose end came before any byte of the answer a RecycledError.
func (c *Conn) Fail(ctx context.Context, err error) error {
	if c.aborted.Load() || errors.Is(err, errAborted) {
		<-ctx.Done() // it has: the abort is its work
		return ctx.Err()
	}
	gone := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if gone && c.Reused() && c.w == 0 {
		c.pool.recycled.Add(1)
		return &RecycledError{err}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}
