package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"ordeal/metrics"
)

// Client makes calls. It is safe for concurrent use.
type Client struct {
	cfg    Config
	url    *url.URL
	header http.Header // shared by all requests, and never changed
	body   []byte
	json   bool // bodies are JSON
	trip   http.RoundTripper
	owned  *http.Transport // to close; nil when the transport was given
}

// New checks a configuration and returns a client; it sends nothing.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	u, h, err := endpoint(&cfg)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	c := &Client{cfg: cfg, url: u, header: h, body: []byte(cfg.Body), json: isJSON(h.Get("Content-Type")), trip: cfg.Transport}
	if c.trip == nil {
		c.owned = NewTransport(cfg.Insecure, cfg.Idle, idleTime)
		c.trip = c.owned
	}
	return c, nil
}

// Close drops idle connections. Calls in flight go on.
func (c *Client) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// Host is whom the client asks.
func (c *Client) Host() string { return c.url.Host }

// Do makes one call, and reads the answer to its end, to a limit, or until ctx
// ends. args, when there are any, are the body in place of Config.Body: a JSON
// value; a JSON string is sent as the text it holds, unless bodies are JSON. Of a
// GET, an object's members are parameters added to the query. keep asks for the
// text of the answer.
func (c *Client) Do(ctx context.Context, args []byte, keep bool) metrics.Exchange {
	f := &flight{c: c, keep: keep}
	u, body, err := c.content(args)
	if err != nil {
		f.Origin = metrics.FromGenerator
		f.Executed = metrics.No
		f.conclude(metrics.HarnessError, err.Error())
		return f.Exchange
	}
	f.BytesOut = int64(len(body))
	ctx, f.cancel = context.WithCancelCause(ctx)
	f.ctx = ctx
	timer := time.AfterFunc(c.cfg.Timeout, func() { f.cancel(errTotal) })
	defer timer.Stop()
	defer f.cancel(errDone)
	resp, err := f.send(f.trip.Begin(ctx, f.cancel), u, body)
	f.recycled()
	if err != nil {
		f.broken(err)
		return f.Exchange
	}
	defer resp.Body.Close()
	f.answer(resp)
	return f.Exchange
}

// content is where a call goes, and with what.
func (c *Client) content(args []byte) (*url.URL, []byte, error) {
	switch {
	case c.cfg.Method == http.MethodGet:
		if len(args) == 0 {
			return c.url, nil, nil
		}
		u, err := withQuery(c.url, args)
		return u, nil, err
	case len(args) == 0:
		return c.url, c.body, nil
	case args[0] == '"' && !c.json:
		var text string
		if err := json.Unmarshal(args, &text); err != nil {
			return nil, nil, fmt.Errorf("the body of the call is no JSON text: %w", err)
		}
		return c.url, []byte(text), nil
	}
	return c.url, args, nil
}

// withQuery adds the members of an object to a URL's query.
func withQuery(u *url.URL, args []byte) (*url.URL, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return nil, errors.New("the arguments of a GET are no JSON object: give parameters of the query")
	}
	values := url.Values{}
	for name, raw := range members {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		values.Set(name, text)
	}
	own := *u
	if own.RawQuery != "" && len(values) > 0 {
		own.RawQuery += "&"
	}
	own.RawQuery += values.Encode()
	return &own, nil
}

// maxRedirects within the origin.
const maxRedirects = 3

// send makes the request, and follows redirects that keep the method and stay in
// the origin.
func (f *flight) send(ctx context.Context, u *url.URL, body []byte) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := f.trip.Send(f.c.trip, func() *http.Request { return f.c.request(ctx, u, body) })
		if err != nil || !f.c.keepsMethod(resp.StatusCode) {
			return resp, err
		}
		to, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || hops == maxRedirects || to.Scheme != u.Scheme || to.Host != u.Host || resp.Header.Get("Location") == "" {
			return resp, nil // judged by its status
		}
		drop(resp)
		f.note(fmt.Sprintf("redirected by HTTP %d to %s", resp.StatusCode, to.Path))
		u = to
	}
}

// keepsMethod reports a redirect by which the same request is made elsewhere.
func (c *Client) keepsMethod(status int) bool {
	switch status {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return c.cfg.Method == http.MethodGet
	}
	return false
}

// request builds one without net/http's client, whose redirects and cookies would
// do things nobody asked for. The body can be given again, see Trip.
func (c *Client) request(ctx context.Context, u *url.URL, body []byte) *http.Request {
	r := &http.Request{Method: c.cfg.Method, URL: u, Host: u.Host, Header: c.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(body) > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if values := c.header["Host"]; len(values) > 0 {
		r.Host = values[0]
	}
	return r.WithContext(ctx)
}

// Limits of reading what nobody needs, for the sake of the connection.
const (
	drainTime  = 100 * time.Millisecond
	drainBytes = 256 << 10
)

func drop(resp *http.Response) {
	timer := time.AfterFunc(drainTime, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	resp.Body.Close()
}

// Alive reports whether a server accepts connections and answers at all. The
// method is HEAD, which does nothing on any server that keeps to HTTP; only a
// gateway that reports the server behind it as gone (502, 503, 504) does not count.
func (c *Client) Alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(c.cfg.Timeout, 10*time.Second))
	defer cancel()
	r := c.request(ctx, c.url, nil)
	r.Method = http.MethodHead
	resp, err := c.trip.RoundTrip(r)
	if err != nil {
		return false
	}
	drop(resp)
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}
