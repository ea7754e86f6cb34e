package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ordeal/agent/quota"
	"ordeal/agent/sse"
	"ordeal/metrics"
)

// legacyLink is the HTTP+SSE transport of 2024-11-05: one GET stream names an
// endpoint and carries all answers, requests are POSTed to it.
type legacyLink struct {
	*mux
	http   *httpLink // for its headers and connections
	post   *url.URL
	body   io.Closer
	cancel context.CancelFunc
	reader sync.WaitGroup
}

// dialLegacy opens the stream and waits for its endpoint event.
func dialLegacy(ctx context.Context, c *Client) (*legacyLink, *metrics.Exchange, error) {
	base, err := newHTTPLink(c)
	if err != nil {
		return nil, nil, err
	}
	l := &legacyLink{http: base}
	l.mux = newMux(c, l.send)
	// The stream outlives the context of the dial.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	if x := l.open(ctx, life); x != nil {
		cancel()
		return nil, x, nil
	}
	return l, nil, nil
}

// open gets the stream, whose requests live as long as life. When that does not
// succeed the exchange says why.
func (l *legacyLink) open(ctx, life context.Context) *metrics.Exchange {
	h := l.http.base.Clone()
	h["Accept"] = []string{"text/event-stream"}
	delete(h, "Content-Type")
	var x metrics.Exchange
	resp, err := l.http.trip.RoundTrip(l.http.request(life, http.MethodGet, h, nil))
	if err != nil {
		l.c.transportFailure(ctx, err, &x)
		return &x
	}
	x.Status = resp.StatusCode
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a := &answer{l: l.http, c: &call{}, x: &x, resp: resp, start: time.Now()}
		if _, ok := a.take(ctx); ok || x.Outcome == metrics.OK {
			l.c.fail(&x, metrics.InvalidResponse, "GET is answered, but not with an event stream")
		}
		return &x
	}
	r := sse.NewReader(resp.Body, int(l.c.cfg.MaxMessage))
	if err := l.endpoint(r); err != nil {
		resp.Body.Close()
		if !l.c.expired(ctx, &x) {
			l.c.fail(&x, metrics.InvalidResponse, err.Error())
		}
		return &x
	}
	l.body = resp.Body
	l.reader.Go(func() { l.read(r) })
	return nil
}

// endpoint reads the first event, and refuses a place outside the origin: our
// headers would go there.
func (l *legacyLink) endpoint(r *sse.Reader) error {
	e, err := r.Next()
	if err != nil {
		return fmt.Errorf("event stream without an endpoint event: %w", err)
	}
	if e.Type != "endpoint" {
		return fmt.Errorf("event stream begins with %q instead of endpoint", e.Type)
	}
	to, err := l.http.url.Parse(strings.TrimSpace(string(e.Data)))
	if err != nil {
		return fmt.Errorf("endpoint event holds no URL: %w", err)
	}
	if to.Scheme != l.http.url.Scheme || to.Host != l.http.url.Host {
		return fmt.Errorf("endpoint event names %s://%s, another origin than %s://%s: refused", to.Scheme, to.Host, l.http.url.Scheme, l.http.url.Host)
	}
	l.post = to
	return nil
}

func (l *legacyLink) read(r *sse.Reader) {
	for {
		e, err := r.Next()
		if err != nil {
			text := "the event stream ended"
			if !errors.Is(err, io.EOF) {
				text += ": " + err.Error()
			}
			l.end(metrics.Connection, l.c.cfg.Redactor.Line(text, messageShown))
			return
		}
		if e.Type == "message" && len(e.Data) > 0 {
			l.receive(e.Data, false)
		}
	}
}

// send posts a message. The answer to the POST itself only says whether the
// server took it.
func (l *legacyLink) send(ctx context.Context, body []byte) (begun bool, err error) {
	req := l.http.request(ctx, http.MethodPost, l.http.base, body)
	req.URL, req.Host = l.post, l.post.Host
	resp, err := l.http.trip.RoundTrip(req)
	if err != nil {
		return true, err
	}
	defer drop(resp)
	if resp.StatusCode >= 300 {
		return true, &postRefused{resp.StatusCode, resp.Header}
	}
	return true, nil
}

// postRefused is the answer to a POST that was not taken.
type postRefused struct {
	status int
	header http.Header
}

func (e *postRefused) Error() string { return "POST refused with " + statusText(e.status) }

// postRefused judges a POST that was not taken, by its status.
func (c *Client) postRefused(e *postRefused, x *metrics.Exchange) {
	x.Status, x.Delivered = e.status, true
	if q := quota.FromResponse(e.status, e.header, time.Now()); q.Limited {
		c.limited(x, q, e.Error())
		return
	}
	outcome := metrics.ProtocolError
	switch {
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		outcome = metrics.AuthRequired
	case e.status == http.StatusNotFound:
		outcome = metrics.SessionLost
	case e.status >= 500:
		outcome = metrics.ServerError
	case e.status < 400:
		outcome = metrics.InvalidResponse
	}
	if e.status < 500 {
		x.Executed = metrics.No
	}
	c.fail(x, outcome, e.Error()+challengeOf(e))
}

func challengeOf(e *postRefused) string {
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return challenge(e.header)
	}
	return ""
}

func (l *legacyLink) notify(ctx context.Context, _ *handle, _ string, body []byte) error {
	_, err := l.send(ctx, body)
	return err
}

func (l *legacyLink) close(context.Context) ShutdownReport {
	began := time.Now()
	l.end(metrics.Cancelled, "the link was closed")
	l.cancel()
	l.body.Close()
	l.reader.Wait()
	l.wg.Wait()
	l.http.trip.CloseIdleConnections()
	return ShutdownReport{Took: time.Since(began)}
}
