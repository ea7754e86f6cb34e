package http1

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Transport reaches one origin: by a Pool of its own, or by net/http's transport
// behind a proxy of the environment and where the server chooses HTTP/2.
type Transport struct {
	pool  *Pool // nil when it cannot be used at all
	std   *http.Transport
	other atomic.Bool  // the server chose HTTP/2
	again atomic.Int64 // requests that net/http sent anew, for the server had not begun them
}

// NewTransport prepares to reach the origin of cfg.URL.
func NewTransport(cfg Config) (*Transport, error) {
	cfg = cfg.withDefaults()
	t := &Transport{std: standard(cfg)}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: cfg.URL}) // leaves loopback out
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		t.pool, _ = New(cfg) // what it cannot do net/http can, or says why not
	}
	return t, nil
}

// standard is net/http's transport with our bounds. Requests beyond what an HTTP/2
// server allows at once on a connection get another connection. The setting that
// makes them wait instead (StrictMaxConcurrentRequests) hangs in Go 1.26: who waits
// for a stream holds a lock that those counted before it need to go on.
func standard(cfg Config) *http.Transport {
	secure := &tls.Config{}
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            cfg.Dial,
		TLSClientConfig:        secure,
		TLSHandshakeTimeout:    cfg.DialLimit,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           cfg.MaxIdle,
		MaxIdleConnsPerHost:    cfg.MaxIdle,
		IdleConnTimeout:        cfg.IdleLimit,
		MaxResponseHeaderBytes: int64(cfg.MaxHeader),
	}
}

// Pool is where calls can be made without net/http; nil where they cannot.
func (t *Transport) Pool() *Pool {
	if t.other.Load() {
		return nil
	}
	return t.pool
}

// HandOver makes all requests from now on net/http's, after ErrHTTP2.
func (t *Transport) HandOver() { t.other.Store(true) }

// Recycled counts connections that the server ended between two calls, and
// requests it turned away unseen with the end of an HTTP/2 connection.
func (t *Transport) Recycled() int64 {
	n := t.again.Load()
	if t.pool != nil {
		n += t.pool.Recycled()
	}
	return n
}

// RoundTrip sends one request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if p := t.Pool(); p != nil && req.URL.Host == p.cfg.URL.Host && req.URL.Scheme == p.cfg.URL.Scheme {
		resp, err := p.RoundTrip(req)
		if !errors.Is(err, ErrHTTP2) {
			return resp, err
		}
		t.HandOver()
	}
	req, err := t.rewindable(req)
	if err != nil {
		return nil, err
	}
	return t.std.RoundTrip(req)
}

// rewindable lets net/http send a request anew that the server provably has not
// begun: one beyond the last stream of a GOAWAY, one refused as a stream, one of
// which nothing was written. It does so for no other POST.
func (t *Transport) rewindable(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return req, nil
	}
	all, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("http1: body of the request: %w", err)
	}
	own := *req
	own.Body = io.NopCloser(bytes.NewReader(all))
	own.GetBody = func() (io.ReadCloser, error) {
		t.again.Add(1)
		return io.NopCloser(bytes.NewReader(all)), nil
	}
	return &own, nil
}

// CloseIdleConnections closes the connections that no call uses.
func (t *Transport) CloseIdleConnections() {
	if t.pool != nil {
		t.pool.CloseIdle()
	}
	t.std.CloseIdleConnections()
}
