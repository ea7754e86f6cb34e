package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Info is what a server said about itself.
type Info struct {
	Name, Version string
	Protocol      string // negotiated revision
	Capabilities  json.RawMessage
	Instructions  string
	Software      string        // Server and X-Powered-By headers, redacted; empty for none
	Startup       time.Duration // from the start of the process or the first request until the handshake was done
}

// Client is a connected server. It may be used by several goroutines.
type Client struct {
	cfg  Config
	meta string // inside of _meta in the stateless era
	dial dialer // of web links; nil is the network
	find findings
	ids  atomic.Int64

	version  atomic.Pointer[string] // negotiated
	tools    atomic.Pointer[map[string][]paramHeader]
	ends     streamEnds
	leaving  atomic.Bool // Close has begun
	opened   atomic.Int64
	reopened atomic.Int64
	web      atomic.Pointer[httpLink]  // the link, where it is one
	pipe     atomic.Pointer[stdioLink] // likewise
	thorough bool                      // no fast way: to compare with
	restarts atomic.Int64
	hung     atomic.Bool // the link lives but did not answer Alive

	mu    sync.Mutex // guards what follows
	link  link
	info  Info
	first *handle // of the handshake, until a session takes it
	open  []*handle

	restarting sync.Mutex
}

var errGivenUp = errors.New("mcp: given up")

// Dial starts or reaches the server and completes the handshake, within
// StartTimeout. The error is a *StartError unless ctx ended.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	return dialBy(ctx, cfg, nil)
}

// dialBy is Dial with connections of web links made by dial; nil is the network.
func dialBy(ctx context.Context, cfg Config, dial dialer) (*Client, error) {
	c := &Client{cfg: cfg.withDefaults(), dial: dial}
	c.meta = metaOf(c.cfg.Name, c.cfg.Version)
	for _, h := range c.cfg.Headers {
		c.cfg.Redactor.AddLiteral(h.Value)
	}
	for _, v := range c.cfg.Env {
		c.cfg.Redactor.AddLiteral(v.Value)
	}
	if err := c.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("mcp: stopped while connecting: %w", context.Cause(ctx))
		}
		return nil, err
	}
	return c, nil
}

func (c *Client) stdio() bool { return c.cfg.Transport == wire.Stdio }

func (c *Client) era() era {
	if v := c.version.Load(); v != nil {
		return era{*v}
	}
	return era{}
}

func (c *Client) setEra(version string) { c.version.Store(&version) }

func (c *Client) current() link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// Info is what the last handshake brought.
func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Notes lists the findings about the server that belong to no single call, with
// their counts.
func (c *Client) Notes() []string { return c.find.lines() }

// Stderr is the tail of what a stdio server wrote there, redacted, and the
// number of bytes it wrote in all.
func (c *Client) Stderr() (tail string, written int64) {
	if l, ok := c.current().(*stdioLink); ok {
		return c.cfg.Redactor.Text(l.p.stderr.tail(stderrShown)), l.p.stderr.written()
	}
	return "", 0
}

// Opened counts sessions that the server opened for us, those in place of lost
// ones included.
func (c *Client) Opened() int64 { return c.opened.Load() }

// Recycled counts connections that the server closed between two calls. A call
// that met the close while it was sent is not made again; see http1.RecycledError.
func (c *Client) Recycled() int64 {
	if l := c.web.Load(); l != nil {
		return l.trip.Recycled()
	}
	return 0
}

// Reopened counts sessions opened in place of lost ones.
func (c *Client) Reopened() int64 { return c.reopened.Load() }

// Restarts counts processes and streams started in place of dead ones.
func (c *Client) Restarts() int64 { return c.restarts.Load() }

// Broken says why no call can succeed until Restart; empty while one can.
func (c *Client) Broken() string { return c.current().broken() }

// run makes one round trip with a limit of its own and judges what came back.
func (c *Client) run(ctx context.Context, l link, k *call, params json.RawMessage, limit time.Duration, tool, keep bool) (json.RawMessage, metrics.Exchange) {
	var x metrics.Exchange
	if c.expired(ctx, &x) {
		x.Executed = metrics.No
		return nil, x
	}
	ctx, done := context.WithTimeoutCause(ctx, limit, errCallLimit)
	defer done()
	k.id = c.ids.Add(1)
	k.body = appendRequest(make([]byte, 0, len(params)+256), k.id, k.method, params, c.metaFor(k))
	msg, ok := l.roundTrip(ctx, k, &x)
	if !ok {
		return nil, x
	}
	c.judge(&msg, &x, tool, keep)
	if x.Outcome != metrics.OK {
		return nil, x
	}
	return msg.result, x
}

// metaFor is the inside of a request's _meta.
func (c *Client) metaFor(k *call) string {
	meta := ""
	if c.era().modern() {
		meta = c.meta
	}
	if c.cfg.Progress && k.method == "tools/call" {
		k.steps.wanted = true
		token := string(appendToken(nil, k.id))
		if meta != "" {
			token += ","
		}
		return token + meta
	}
	return meta
}

// NewSession opens a session. The first one takes that of the handshake.
func (c *Client) NewSession(ctx context.Context) (*Session, error) {
	s := &Session{c: c}
	c.mu.Lock()
	h := c.first
	c.first = nil
	l := c.link
	c.mu.Unlock()
	if h == nil {
		fresh, x, err := c.openHandle(ctx, l)
		if err != nil {
			if x != nil && x.Outcome == metrics.Cancelled {
				return nil, context.Cause(ctx)
			}
			return nil, err
		}
		h = fresh
	}
	s.handle.Store(h)
	return s, nil
}

// openHandle opens a session on the server where there is such a thing.
func (c *Client) openHandle(ctx context.Context, l link) (*handle, *metrics.Exchange, error) {
	if _, ok := l.(*httpLink); !ok || c.era().modern() {
		return &handle{}, nil, nil
	}
	h, _, x, err := c.initialize(ctx, l)
	return h, x, err
}

func (c *Client) remember(h *handle) {
	if !h.known() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, h)
}

func (c *Client) forget(h *handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.open, h); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
}

// openSessions takes the headers of all sessions that are to be ended.
func (c *Client) openSessions() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []http.Header
	for _, h := range c.open {
		all = append(all, h.header)
	}
	c.open = nil
	return all
}

// Alive makes the cheapest request that shows the server answers: ping, or
// tools/list in the stateless era. Every answer counts but that of a failing or
// foreign server.
func (c *Client) Alive(ctx context.Context) bool {
	l := c.current()
	if l.broken() != "" {
		return false
	}
	k := &call{method: "ping"}
	if c.era().modern() {
		k.method = "tools/list"
	}
	c.mu.Lock()
	if n := len(c.open); n > 0 {
		k.session = c.open[n-1]
	}
	c.mu.Unlock()
	_, x := c.run(ctx, l, k, nil, c.cfg.Timeout, false, false)
	c.hung.Store(x.Outcome == metrics.Timeout)
	switch x.Outcome {
	case metrics.OK, metrics.ProtocolError, metrics.RateLimited, metrics.AuthRequired, metrics.SessionLost:
		return true
	}
	return false
}

// Restart replaces a link that is broken, or did not answer Alive: the process is started or the stream opened
// anew, with a handshake. Sessions go on with the new one. Concurrent callers
// share one restart. It returns how the old one ended.
func (c *Client) Restart(ctx context.Context) (ShutdownReport, error) {
	c.restarting.Lock()
	defer c.restarting.Unlock()
	old := c.current()
	if _, web := old.(*httpLink); web || old.broken() == "" && !c.hung.Load() {
		return ShutdownReport{}, nil // nothing to replace, or another caller was faster
	}
	c.hung.Store(false)
	report := old.close(ctx)
	if c.leaving.Load() {
		return report, errGivenUp
	}
	c.restarts.Add(1)
	return report, c.connect(ctx)
}

// Close ends sessions, streams and processes. It is bounded by three times
// StopGrace, whatever ctx says, and says what a process needed to end.
func (c *Client) Close(ctx context.Context) ShutdownReport {
	c.leaving.Store(true)
	c.restarting.Lock()
	defer c.restarting.Unlock()
	return c.current().close(ctx)
}
