package fleettest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialWait     = 5 * time.Second
	readChunk    = 32 << 10 // bytes
	socketBuffer = 64 << 10 // bytes, which the kernel doubles
	pieces       = 20       // a slowed flow moves in that many pieces a second
)

// link is one connection through a Cut. Its server is nil until it is dialled;
// both are set under Cut.mu.
type link struct {
	client, server *net.TCPConn
	cancel         context.CancelFunc
}

func (l *link) ends() []*net.TCPConn {
	if l.server == nil {
		return []*net.TCPConn{l.client}
	}
	return []*net.TCPConn{l.client, l.server}
}

// small keeps what the kernel holds for the proxy small, so that a sender soon
// feels a slow reader. The errors of these calls and of those below say that the
// connection has ended, which its pump finds out by itself.
func small(conn *net.TCPConn) *net.TCPConn {
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	return conn
}

func (l *link) setWriteDeadline(at time.Time) {
	for _, conn := range l.ends() {
		_ = conn.SetWriteDeadline(at)
	}
}

// abort resets both ends.
func (l *link) abort() {
	for _, conn := range l.ends() {
		_ = conn.SetLinger(0)
	}
	l.close()
}

func (l *link) close() {
	l.cancel()
	for _, conn := range l.ends() {
		_ = conn.Close()
	}
}

// end passes on how a stream has ended: half closed or reset.
func (l *link) end(dst *net.TCPConn, err error) {
	if errors.Is(err, io.EOF) && dst.CloseWrite() == nil {
		return
	}
	l.abort()
}

// flow is one direction of all links.
type flow struct {
	moved atomic.Int64

	mu   sync.Mutex
	rate int       // bytes per second; 0 is no limit
	next time.Time // when all that has been let through will have gone
}

func (f *flow) limit(rate int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate, f.next = max(rate, 0), time.Time{}
}

// piece is how many bytes may move at once.
func (f *flow) piece() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rate == 0 {
		return readChunk
	}
	return max(1, min(readChunk, f.rate/pieces))
}

// wait returns when n more bytes may have moved, or false if the link ends.
func (f *flow) wait(ctx context.Context, n int) bool {
	delay := f.reserve(n)
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *flow) reserve(n int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rate == 0 {
		return 0
	}
	now := time.Now()
	if f.next.Before(now) {
		f.next = now
	}
	f.next = f.next.Add(time.Duration(n) * time.Second / time.Duration(f.rate))
	return f.next.Sub(now)
}
