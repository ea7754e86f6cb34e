package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ordeal/agent/secret"
	"ordeal/agent/web"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// httpTarget is a URL that is asked by GET or POST. All virtual users share its
// pool of connections: plain HTTP has no sessions.
type httpTarget struct {
	client *web.Client
	name   string
}

// openHTTP prepares the client; it sends nothing.
func openHTTP(t wire.Target) (Target, error) {
	redact := new(secret.Redactor)
	cfg := web.Config{
		Method: t.Method, URL: t.Endpoint, Header: http.Header{}, Body: t.Body, Timeout: t.Timeout, MaxAnswer: t.MaxMessage,
		Idle: poolSize, Insecure: t.Insecure, Redact: redact,
	}
	var problems []error
	resolve := func(what, text string) string {
		value, err := redact.Resolve(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("target: %s: %w", what, err))
		}
		return value
	}
	if secret.HasReference(t.Endpoint) {
		cfg.URL = resolve("URL", t.Endpoint)
	}
	for _, h := range t.Headers {
		cfg.Header.Add(h.Name, resolve("header "+h.Name, h.Value))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	client, err := web.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return &httpTarget{client: client, name: "http-" + strings.ToLower(t.Method) + ":" + client.Host()}, nil
}

// Survey names whom the target is; nothing is sent, for nobody knows what a request
// does. There are no tools.
func (t *httpTarget) Survey(context.Context) (*wire.Survey, error) {
	return &wire.Survey{Name: t.name}, nil
}

// Session returns a user of the shared client.
func (t *httpTarget) Session(context.Context, int) (Session, error) {
	return httpSession{t.client}, nil
}

// Alive asks by HEAD, see web.Client. Nothing is ever restarted.
func (t *httpTarget) Alive(ctx context.Context) (alive, restarted bool, exit string) {
	return t.client.Alive(ctx), false, ""
}

// Virtual is false: the time is spent.
func (t *httpTarget) Virtual() bool { return false }

// Close drops the idle connections.
func (t *httpTarget) Close(context.Context) error {
	t.client.Close()
	return nil
}

type httpSession struct{ client *web.Client }

// Call makes the request. Its arguments are the body, or of a GET parameters of the
// query; the tool is of no meaning here. They are copied: the transport may still be
// reading them after a call that was given up, when the caller writes the next.
func (s httpSession) Call(ctx context.Context, c Call) metrics.Exchange {
	return s.client.Do(ctx, slices.Clone(c.Args), c.Keep)
}
