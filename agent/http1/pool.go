package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how connections are made. Zero values have defaults.
type Config struct {
	URL       *url.URL      // its scheme (http or https) and host are the origin
	TLS       *tls.Config   // of https; the server name is added
	MaxIdle   int           // connections kept when no call uses them; 0 is 16
	IdleLimit time.Duration // after which an idle one is not used again; 0 is 90 s
	DialLimit time.Duration // of a connect, and again of a TLS handshake; 0 is 15 s
	MaxHeader int           // bytes of status line and headers; 0 is 1 MiB
	// Dial makes a connection, within DialLimit and ctx; nil is the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	if c.MaxIdle <= 0 {
		c.MaxIdle = 16
	}
	if c.IdleLimit <= 0 {
		c.IdleLimit = 90 * time.Second
	}
	if c.DialLimit <= 0 {
		c.DialLimit = 15 * time.Second
	}
	if c.MaxHeader <= 0 {
		c.MaxHeader = 1 << 20
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: c.DialLimit, KeepAlive: 30 * time.Second}).DialContext
	}
	return c
}

// ErrHTTP2 reports that the server chose HTTP/2 in the TLS handshake. Nothing was
// sent; the endpoint is another client's.
var ErrHTTP2 = errors.New("http1: the server chose HTTP/2")

// RecycledError is the end of a connection that had served calls before, met
// between a request and the first byte of its answer. The server may or may not
// have seen the request, so it was not sent again.
type RecycledError struct{ Err error }

func (e *RecycledError) Error() string {
	return "the server closed the connection as it was used again: " + e.Err.Error()
}

func (e *RecycledError) Unwrap() error { return e.Err }

// Pool keeps the connections to one origin. It may be used by several goroutines;
// a connection is in use by one call at a time.
type Pool struct {
	cfg  Config
	addr string

	recycled atomic.Int64
	dialed   atomic.Int64

	mu     sync.Mutex
	idle   []*Conn // the last one used is the next
	closed bool
}

// New makes a pool without connections. It fails for an origin it cannot reach by
// itself, such as one with a host name that is not ASCII.
func New(cfg Config) (*Pool, error) {
	addr, err := address(cfg.URL)
	if err != nil {
		return nil, err
	}
	return &Pool{cfg: cfg.withDefaults(), addr: addr}, nil
}

// Recycled counts connections that the server closed between two calls, whether
// the next call noticed in time or not.
func (p *Pool) Recycled() int64 { return p.recycled.Load() }

// Dialed counts connections opened.
func (p *Pool) Dialed() int64 { return p.dialed.Load() }

// checkAfter is how long a connection may idle until it is looked at before use.
// Below it a look costs more than it finds: no server closes that soon.
const checkAfter = time.Millisecond

// Take returns a connection for one call, which ends at deadline (zero: never)
// or when ctx ends. now is the caller's reading of the clock. The connection goes
// back by Release or Discard.
func (p *Pool) Take(ctx context.Context, now, deadline time.Time) (*Conn, error) {
	for {
		c := p.pop(now)
		if c == nil {
			return p.fresh(ctx, now, deadline)
		}
		if now.Sub(c.idleSince) > checkAfter && c.stale() {
			p.recycled.Add(1)
			c.close()
			continue
		}
		if err := c.begin(ctx, now, deadline); err != nil {
			c.close()
			return nil, err
		}
		return c, nil
	}
}

// fresh opens a connection.
func (p *Pool) fresh(ctx context.Context, now, deadline time.Time) (*Conn, error) {
	c, err := p.dial(ctx, deadline)
	if err != nil {
		return nil, err
	}
	if err := c.begin(ctx, now, deadline); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// pop takes the idle connection that was used last. If that one has idled too
// long, all have.
func (p *Pool) pop(now time.Time) *Conn {
	p.mu.Lock()
	n := len(p.idle)
	if n == 0 {
		p.mu.Unlock()
		return nil
	}
	c := p.idle[n-1]
	if now.Sub(c.idleSince) > p.cfg.IdleLimit {
		old := p.idle
		p.idle = nil
		p.mu.Unlock()
		closeAll(old)
		return nil
	}
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	p.mu.Unlock()
	return c
}

func (p *Pool) push(c *Conn) {
	p.mu.Lock()
	var old *Conn
	keep := !p.closed && len(p.idle) < p.cfg.MaxIdle
	if keep {
		if len(p.idle) > 0 && c.idleSince.Sub(p.idle[0].idleSince) > p.cfg.IdleLimit {
			old = p.idle[0]
			p.idle = p.idle[:copy(p.idle, p.idle[1:])]
		}
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if old != nil {
		old.close()
	}
	if !keep {
		c.close()
	}
}

// CloseIdle closes the connections that no call uses.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	old := p.idle
	p.idle = nil
	p.mu.Unlock()
	closeAll(old)
}

// Close closes idle connections, and those in use when they come back.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.CloseIdle()
}

func closeAll(conns []*Conn) {
	for _, c := range conns {
		c.close()
	}
}
