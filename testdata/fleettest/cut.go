package fleettest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// mode is the state of the cable.
type mode int

const (
	whole   mode = iota
	cut          // no byte moves, nobody is told
	dropped      // connections reset, new ones refused
)

// Cut is a cable between clients and a server: a TCP proxy on loopback that can
// be cut and healed, dropped, and slowed down.
//
//	whole ──Cut──▶ cut ──Drop──▶ dropped
//	  ▲ ▲──Heal────┘               │
//	  └────────────Heal────────────┘
//
// It differs from a cable in this: the kernel of this machine goes on to answer
// for both ends, so that a client may still connect while it is cut (and then
// hears nothing), what a sender has sent counts as acknowledged to it, and TCP's
// own keep-alives and timeouts see nothing. Only the peers' own pings do.
type Cut struct {
	t        testing.TB
	upstream string
	addr     string
	wg       sync.WaitGroup
	moving   sync.RWMutex // held for reading while bytes move
	up, down flow

	mu       sync.Mutex
	mode     mode
	changed  chan struct{} // closed when mode changes
	listener net.Listener
	links    map[*link]struct{}
	accepted int
}

// CutStats are counts since NewCut.
type CutStats struct {
	Connections int   // accepted
	Open        int   // of them there now
	Up, Down    int64 // bytes that went to the server and to clients
}

// NewCut listens on a port of its own and forwards to upstream, a host and port.
func NewCut(t testing.TB, upstream string) *Cut {
	t.Helper()
	c := &Cut{t: t, upstream: upstream, addr: loopback(freePort(t)), mode: dropped, changed: make(chan struct{}), links: map[*link]struct{}{}}
	c.Heal()
	t.Cleanup(func() {
		stats := c.Stats()
		c.Drop()
		if t.Failed() {
			t.Logf("cut %s of %s: %+v", c.addr, upstream, stats)
		}
	})
	return c
}

// Addr is the host and port to connect to. It stays the same.
func (c *Cut) Addr() string { return c.addr }

// URL is Addr as --nats takes it.
func (c *Cut) URL() string { return "nats://" + c.addr }

// Cut cuts the cable: connections stay open and new ones can be made, but when
// it returns no byte moves any more in either direction, no end of a connection
// and no reset, until Heal.
func (c *Cut) Cut() {
	c.mu.Lock()
	if c.mode == whole {
		c.turn(cut)
		for l := range c.links {
			l.setWriteDeadline(time.Unix(1, 0)) // ends a write that waits for a slow reader
		}
	}
	c.mu.Unlock()
	c.moving.Lock()
	defer c.moving.Unlock() // whatever moved has come to an end
}

// Drop resets all connections and refuses new ones, until Heal. It returns when
// all are closed.
func (c *Cut) Drop() {
	c.mu.Lock()
	if c.mode != dropped {
		c.turn(dropped)
		_ = c.listener.Close() // of a listener that was open: it cannot fail
		for l := range c.links {
			l.abort()
		}
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// Heal makes the cable whole. After Cut everything goes on where it stood: what
// the proxy held, ends and resets of connections too, is delivered in order.
// After Drop clients may connect again.
func (c *Cut) Heal() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == dropped {
		ln, err := net.Listen("tcp", c.addr)
		if err != nil {
			c.t.Fatalf("fleettest: heal: %v", err)
		}
		c.listener = ln
		c.wg.Go(func() { c.accept(ln) })
	}
	for l := range c.links {
		l.setWriteDeadline(time.Time{})
	}
	c.turn(whole)
}

// SlowUp limits what clients send to the server, all connections together;
// 0 is no limit.
func (c *Cut) SlowUp(bytesPerSecond int) { c.up.limit(bytesPerSecond) }

// SlowDown limits what the server sends to clients, all connections together;
// 0 is no limit. A server notices once the buffers between are full: some 300 KB
// of the proxy's and up to 4 MB of the server's own (net.ipv4.tcp_wmem).
func (c *Cut) SlowDown(bytesPerSecond int) { c.down.limit(bytesPerSecond) }

// Stats counts up to now.
func (c *Cut) Stats() CutStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CutStats{Connections: c.accepted, Open: len(c.links), Up: c.up.moved.Load(), Down: c.down.moved.Load()}
}

// turn is called with mu held.
func (c *Cut) turn(m mode) {
	c.mode = m
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cut) state() (mode, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode, c.changed
}

func (c *Cut) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return // Drop has closed it
		}
		c.wg.Go(func() { c.carry(conn.(*net.TCPConn)) })
	}
}

// carry forwards one connection to its end.
func (c *Cut) carry(client *net.TCPConn) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{client: small(client), cancel: cancel}
	defer l.close()
	if !c.join(l) {
		l.abort()
		return
	}
	defer c.leave(l)
	if !c.pass(ctx, func() {}) {
		return
	}
	server, err := (&net.Dialer{Timeout: dialWait}).DialContext(ctx, "tcp", c.upstream)
	if err != nil {
		l.abort() // as near to a refused connection as one can get
		return
	}
	c.attach(l, small(server.(*net.TCPConn)))
	var wg sync.WaitGroup
	wg.Go(func() { c.pump(ctx, l, l.client, l.server, &c.up) })
	wg.Go(func() { c.pump(ctx, l, l.server, l.client, &c.down) })
	wg.Wait()
}

func (c *Cut) join(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == dropped {
		return false
	}
	c.accepted++
	c.links[l] = struct{}{}
	return true
}

func (c *Cut) attach(l *link, server *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.server = server
	if c.mode == dropped {
		l.abort()
	}
}

func (c *Cut) leave(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, l)
}

// pass takes one step that moves bytes, once the cable is whole. It returns
// false if the connection has ended instead.
func (c *Cut) pass(ctx context.Context, step func()) bool {
	for ctx.Err() == nil {
		if c.tryStep(step) {
			return true
		}
		m, changed := c.state()
		if m == whole {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

func (c *Cut) tryStep(step func()) bool {
	c.moving.RLock()
	defer c.moving.RUnlock()
	m, _ := c.state()
	if m == whole {
		step()
	}
	return m == whole
}

// pump moves bytes one way until their end, and then the end.
func (c *Cut) pump(ctx context.Context, l *link, src, dst *net.TCPConn, f *flow) {
	buf := make([]byte, readChunk)
	for {
		n, err := src.Read(buf)
		if !c.deliver(ctx, dst, buf[:n], f) {
			l.abort()
			return
		}
		if err == nil {
			continue
		}
		c.pass(ctx, func() { l.end(dst, err) })
		return
	}
}

// deliver writes p whole, over any number of cuts, or returns false if the
// connection ends before.
func (c *Cut) deliver(ctx context.Context, dst *net.TCPConn, p []byte, f *flow) bool {
	for len(p) > 0 {
		piece := p[:min(len(p), f.piece())]
		if !f.wait(ctx, len(piece)) {
			return false
		}
		var n int
		var err error
		write := func() {
			n, err = dst.Write(piece)
			f.moved.Add(int64(n))
		}
		if !c.pass(ctx, write) {
			return false
		}
		p = p[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return false // and a deadline is a cut in the middle of it
		}
	}
	return true
}
