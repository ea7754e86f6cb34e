package llm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"ordeal/agent/web"
	"ordeal/metrics"
)

// Reply is one answer of a model and how it came. Exchange.Text holds the text.
type Reply struct {
	metrics.Exchange
	Tools     []ToolCall
	Stop      string // why generation ended, in the provider's word; empty unknown
	Model     string // as the provider names it
	RequestID string // the provider's id of this request, for a support case
}

// ToolCall is a call the model asks for, put together from its pieces.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON; empty on the wire reads {}
}

// Client makes calls. It is safe for concurrent use.
type Client struct {
	cfg       Config
	chat      *url.URL
	models    *url.URL
	header    http.Header // shared by all requests, and never changed
	bodies    bodies
	transport http.RoundTripper
	owned     *http.Transport // to close; nil when the transport was given

	noUsage  atomic.Bool // the server refuses stream_options
	newLimit atomic.Bool // the server wants max_completion_tokens
}

// New checks a configuration and returns a client; it sends nothing.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	chat, models, err := endpoints(cfg)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	c := &Client{cfg: cfg, chat: chat, models: models, header: headers(cfg, chat), bodies: encodeBodies(cfg), transport: cfg.Transport}
	chat.User, models.User = nil, nil // they travel in a header
	if c.transport == nil {
		c.owned = web.NewTransport(cfg.Insecure, idleConns, idleTime)
		c.transport = c.owned
	}
	return c, nil
}

// Connections kept: all of a load level. The library's own limit of two idle ones
// per host would make it dial for most calls.
const (
	idleConns = 1 << 16
	idleTime  = 4 * time.Second // see the package comment
)

// Close drops idle connections. Calls in flight go on.
func (c *Client) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// Chat sends one operation's prompt and reads the answer to its end, to a
// limit, or until ctx ends.
func (c *Client) Chat(ctx context.Context, op uint64) Reply { return c.Ask(ctx, op, nil) }

// Ask is Chat with a prompt of the call's own, see Config.Prompts for that of an
// operation: args is a JSON object with prompt (a string) or messages (an array in
// the provider's own shape), and max_tokens where it is to differ. Nil, and an
// object without one of these, leave what the configuration says.
func (c *Client) Ask(ctx context.Context, op uint64, args []byte) Reply {
	body, err := c.body(op, args)
	if err != nil {
		var r Reply
		r.Outcome, r.Origin, r.Executed = metrics.HarnessError, metrics.FromGenerator, metrics.No
		r.Message = c.cfg.Redact.Line(err.Error(), maxMessage)
		return r
	}
	return c.fly(ctx, body).Reply
}

// fly makes a call from its start to its end.
func (c *Client) fly(ctx context.Context, body []byte) *flight {
	f, ctx := c.depart(ctx)
	defer f.land()
	f.BytesOut = int64(len(body))
	resp, err := f.trip.Send(c.transport, func() *http.Request { return c.request(ctx, http.MethodPost, c.chat, body) })
	for range f.trip.Recycled() {
		f.Notes = append(f.Notes, web.RecycledNote)
	}
	if err != nil {
		f.broken(err)
		return f
	}
	defer resp.Body.Close()
	f.answer(resp)
	return f
}

// Alive asks for the list of models, which costs nothing and runs no model. Any
// answer means that the endpoint lives, for not every server has that path or
// wants it asked without a key; only a gateway that reports the server behind it
// as gone (502, 503, 504) does not count.
func (c *Client) Alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(c.cfg.Timeout, 10*time.Second))
	defer cancel()
	resp, err := c.transport.RoundTrip(c.request(ctx, http.MethodGet, c.models, nil))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, drainBytes) // for the sake of the connection
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}

func (c *Client) asksUsage() bool { return c.cfg.Wire == OpenAI && !c.noUsage.Load() }

func (c *Client) limitName() string {
	if c.newLimit.Load() {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// request lets the body be given again, which happens only where the server cannot
// have seen a byte of it, see web.Trip.
func (c *Client) request(ctx context.Context, method string, u *url.URL, body []byte) *http.Request {
	req := (&http.Request{
		Method: method, URL: u, Host: u.Host, Header: c.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return req
}
