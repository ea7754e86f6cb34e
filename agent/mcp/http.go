package mcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ordeal/agent/http1"
	"ordeal/metrics"
)

// httpLink is streamable HTTP: every request is a POST, and its answer comes on
// the response, as JSON or as an event stream.
type httpLink struct {
	c    *Client
	trip *http1.Transport
	url  *url.URL
	base http.Header // of every request
	wg   sync.WaitGroup
}

// maxRedirects within the origin.
const maxRedirects = 3

// dialer makes a connection.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// newTransport pools connections for n calls at once. It sends no request again
// that the server may have begun.
func newTransport(cfg *Config, u *url.URL, dial dialer) (*http1.Transport, error) {
	t, err := http1.NewTransport(http1.Config{URL: u, MaxIdle: cfg.Concurrency, TLS: &tls.Config{InsecureSkipVerify: cfg.Insecure}, Dial: dial})
	if err != nil {
		return nil, &StartError{Class: Unreachable, What: cfg.Redactor.Line("the proxy of the environment: "+err.Error(), messageShown),
			Remedy: "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY", cause: err}
	}
	return t, nil
}

// endpoint parses the URL. Userinfo becomes a header: it must not reach a log by
// way of the URL.
func endpoint(cfg *Config) (*url.URL, http.Header, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, &StartError{Class: Unreachable, What: "the endpoint is no http or https URL: " + cfg.Redactor.Line(cfg.Endpoint, messageShown),
			Remedy: "give a URL such as http://127.0.0.1:3001/mcp"}
	}
	cfg.Redactor.AddURL(cfg.Endpoint)
	h := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {cfg.Name + "/" + cfg.Version}}
	if u.User != nil {
		password, _ := u.User.Password()
		r := &http.Request{Header: h}
		r.SetBasicAuth(u.User.Username(), password)
		cfg.Redactor.Add(strings.TrimPrefix(h.Get("Authorization"), "Basic "))
		u.User = nil
	}
	u.Fragment = ""
	for i, own := range cfg.Headers {
		name := http.CanonicalHeaderKey(own.Name)
		if i == indexHeader(cfg, name) {
			delete(h, name) // the first of its name replaces ours
		}
		h[name] = append(h[name], own.Value)
	}
	return u, h, nil
}

func indexHeader(cfg *Config, canonical string) int {
	for i, h := range cfg.Headers {
		if http.CanonicalHeaderKey(h.Name) == canonical {
			return i
		}
	}
	return -1
}

func newHTTPLink(c *Client) (*httpLink, error) {
	u, h, err := endpoint(&c.cfg)
	if err != nil {
		return nil, err
	}
	h["Content-Type"] = []string{"application/json"}
	h["Accept"] = []string{"application/json, text/event-stream"}
	trip, err := newTransport(&c.cfg, u, c.dial)
	if err != nil {
		return nil, err
	}
	return &httpLink{c: c, trip: trip, url: u, base: h}, nil
}

// request builds one without net/http's client, whose redirects and cookies
// would do things nobody asked for.
func (l *httpLink) request(ctx context.Context, method string, h http.Header, body []byte) *http.Request {
	r := &http.Request{Method: method, URL: l.url, Host: l.url.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
	}
	if values := h["Host"]; len(values) > 0 {
		r.Host = values[0]
	}
	return r.WithContext(ctx)
}

// headers of a call. The map of a session is shared by its calls and never
// changed; a call with headers of its own gets a copy.
func (l *httpLink) headers(c *call) http.Header {
	h := l.base
	if c.session != nil && c.session.header != nil {
		h = c.session.header
	}
	if !l.c.era().modern() {
		return h
	}
	h = h.Clone()
	h["Mcp-Protocol-Version"] = []string{Stateless}
	h["Mcp-Method"] = []string{headerText(c.method)}
	if c.name != "" {
		h["Mcp-Name"] = []string{headerText(c.name)}
	}
	for _, p := range c.params {
		if v, ok := p.value(c.args); ok {
			h[p.header] = []string{v}
		}
	}
	return h
}

func (l *httpLink) roundTrip(ctx context.Context, c *call, x *metrics.Exchange) (message, bool) {
	x.BytesOut = int64(len(c.body))
	start := time.Now()
	resp, err := l.send(ctx, l.headers(c), c.body, x)
	if err != nil {
		x.Latency = time.Since(start)
		l.c.transportFailure(ctx, err, x)
		l.cancelled(ctx, c, x)
		return message{}, false
	}
	x.FirstByte = time.Since(start)
	x.Status = resp.StatusCode
	return l.took(ctx, &answer{l: l, c: c, x: x, resp: resp, start: start})
}

// took reads an answer and closes the account of its call.
func (l *httpLink) took(ctx context.Context, a *answer) (message, bool) {
	msg, ok := a.take(ctx)
	a.x.ClientTime = a.c.answers.sum()
	a.x.Notes = append(a.x.Notes, a.c.steps.notes...)
	l.cancelled(ctx, a.c, a.x)
	return msg, ok
}

// send posts, and follows redirects.
func (l *httpLink) send(ctx context.Context, h http.Header, body []byte, x *metrics.Exchange) (*http.Response, error) {
	resp, err := l.trip.RoundTrip(l.request(ctx, http.MethodPost, h, body))
	if err != nil {
		return nil, err
	}
	return l.follow(ctx, resp, h, body, x)
}

// follow goes after redirects that keep the method and stay in the origin.
func (l *httpLink) follow(ctx context.Context, resp *http.Response, h http.Header, body []byte, x *metrics.Exchange) (*http.Response, error) {
	from := l.url
	for hops := 0; ; hops++ {
		if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, nil
		}
		to, err := from.Parse(resp.Header.Get("Location"))
		if err != nil || hops == maxRedirects || to.Scheme != from.Scheme || to.Host != from.Host {
			return resp, nil // judged by its status
		}
		drop(resp)
		x.Notes = append(x.Notes, l.c.cfg.Redactor.Line(fmt.Sprintf("redirected by HTTP %d to %s", resp.StatusCode, to), messageShown))
		req := l.request(ctx, http.MethodPost, h, body)
		req.URL, req.Host = to, to.Host
		if resp, err = l.trip.RoundTrip(req); err != nil {
			return nil, err
		}
		from = to
	}
}

// drop gives up a response, keeping its connection if that costs next to
// nothing.
func drop(resp *http.Response) {
	timer := time.AfterFunc(drainLimit, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}

// cancelled tells a server of the handshake era that a timed-out call is not
// waited for; the stateless revision takes the closed stream as the notice.
func (l *httpLink) cancelled(ctx context.Context, c *call, x *metrics.Exchange) {
	if x.Outcome != metrics.Timeout || l.c.era().modern() || c.session == nil {
		return
	}
	body := cancelNotice(c.id)
	l.wg.Go(func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), l.c.cfg.StopGrace)
		defer done()
		_ = l.post(ctx, c.session, body) // a notice: nobody can do more about it
	})
}

// notify posts a notification and books how it was received.
func (l *httpLink) notify(ctx context.Context, s *handle, method string, body []byte) error {
	finding := l.post(ctx, s, body)
	if finding != nil {
		l.c.find.add(method+": "+finding.Error(), "")
	}
	var refused *refusal
	if errors.As(finding, &refused) || finding == nil {
		return nil // reported, and the run goes on
	}
	return finding
}

// refusal is an answer to a notification that is not the 202 without a body it
// should be.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// maxNoticeBody of an answer to a notification is read; the rest is dropped.
const maxNoticeBody = 4 << 10

func (l *httpLink) post(ctx context.Context, s *handle, body []byte) error {
	h := l.base
	if s != nil && s.header != nil {
		h = s.header
	}
	var x metrics.Exchange
	resp, err := l.send(ctx, h, body, &x)
	if err != nil {
		return fmt.Errorf("not delivered: %s", l.c.cfg.Redactor.Line(err.Error(), messageShown))
	}
	// A stream that stays open must not hold up the next request.
	timer := time.AfterFunc(time.Second, func() { resp.Body.Close() })
	defer timer.Stop()
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return &refusal{fmt.Sprintf("answered with HTTP %d and an event stream", resp.StatusCode)}
	}
	read, _ := io.Copy(io.Discard, io.LimitReader(resp.Body, maxNoticeBody)) // what came is enough
	switch {
	case resp.StatusCode >= 300:
		return &refusal{"refused with " + statusText(resp.StatusCode)}
	case resp.StatusCode != http.StatusAccepted:
		return &refusal{fmt.Sprintf("answered with HTTP %d instead of 202", resp.StatusCode)}
	case read > 0:
		return &refusal{"answered with a body"}
	}
	return nil
}

func (l *httpLink) broken() string { return "" }

// close ends all sessions the server knows, side by side, each within the grace.
func (l *httpLink) close(ctx context.Context) ShutdownReport {
	began := time.Now()
	slots := make(chan struct{}, maxClosing)
	var wg sync.WaitGroup
	for _, h := range l.c.openSessions() {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			l.deleteSession(ctx, h)
		})
	}
	wg.Wait()
	l.wg.Wait()
	l.trip.CloseIdleConnections()
	return ShutdownReport{Took: time.Since(began)}
}

// maxClosing sessions are ended at once.
const maxClosing = 16

func (l *httpLink) deleteSession(ctx context.Context, h http.Header) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), l.c.cfg.StopGrace)
	defer done()
	resp, err := l.trip.RoundTrip(l.request(ctx, http.MethodDelete, h, nil))
	if err != nil {
		l.c.find.add("session could not be ended by DELETE", l.c.cfg.Redactor.Line(err.Error(), messageShown))
		return
	}
	drop(resp)
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusMethodNotAllowed && resp.StatusCode != http.StatusNotFound {
		l.c.find.add("DELETE of a session answered with "+statusText(resp.StatusCode), "")
	}
}
