package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// address is what to dial for an origin.
func address(u *url.URL) (string, error) {
	if u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("http1: %q is no http or https origin", u)
	}
	host := u.Hostname()
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || c == '%' {
			return "", fmt.Errorf("http1: host %q needs an encoding this client does not do", host)
		}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host, port), nil
}

// dial connects, and over https shakes hands.
func (p *Pool) dial(ctx context.Context, deadline time.Time) (*Conn, error) {
	if !deadline.IsZero() {
		limited, done := context.WithDeadline(ctx, deadline)
		defer done()
		ctx = limited
	}
	nc, err := p.cfg.Dial(ctx, "tcp", p.addr)
	if err != nil {
		return nil, ended(ctx, err)
	}
	p.dialed.Add(1)
	c := &Conn{pool: p, net: nc, lazy: true}
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it no look at idle connections
	}
	if p.cfg.URL.Scheme == "https" {
		if err := p.secure(ctx, c); err != nil {
			nc.Close()
			return nil, ended(ctx, err)
		}
	}
	return c, nil
}

// secure does the TLS handshake.
func (p *Pool) secure(ctx context.Context, c *Conn) error {
	cfg := &tls.Config{}
	if p.cfg.TLS != nil {
		cfg = p.cfg.TLS.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = strings.TrimSuffix(p.cfg.URL.Hostname(), ".")
	}
	cfg.NextProtos = []string{"h2", "http/1.1"}
	t := tls.Client(c.net, cfg)
	ctx, done := context.WithTimeout(ctx, p.cfg.DialLimit)
	defer done()
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		return ErrHTTP2
	}
	// After a write that timed out a TLS connection is lost, so its deadline has
	// to be that of the call from the beginning.
	c.net, c.lazy, c.secured = t, false, true
	return nil
}

// ended prefers the reason of the context over the error its end has caused, but
// keeps that a connection was being made.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return &net.OpError{Op: "dial", Net: "tcp", Err: cause}
	}
	return err
}
