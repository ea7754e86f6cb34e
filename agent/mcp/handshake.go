package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

func appendToken(buf []byte, id int64) []byte {
	return strconv.AppendInt(append(buf, `"progressToken":`...), id, 10)
}

// connect opens a link and agrees on a revision.
func (c *Client) connect(ctx context.Context) error {
	began := time.Now()
	ctx, done := context.WithTimeoutCause(ctx, c.cfg.StartTimeout, errCallLimit)
	defer done()
	l, err := c.openLink(ctx)
	if err != nil {
		return err
	}
	info, h, err := c.agree(ctx, l)
	if again := c.secondStart(l, err); again {
		c.find.add("the process ended on server/discover and was started again with initialize", "")
		l.close(ctx)
		if l, err = c.openLink(ctx); err != nil {
			return err
		}
		info, h, err = c.handshake(ctx, l)
	}
	if err != nil {
		return c.abandon(ctx, l, err)
	}
	info.Startup = time.Since(began)
	switch l := l.(type) {
	case *httpLink:
		c.web.Store(l)
	case *stdioLink:
		c.pipe.Store(l)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.info, c.first = l, info, h
	return nil
}

func (c *Client) openLink(ctx context.Context) (link, error) {
	switch c.cfg.Transport {
	case wire.Stdio:
		if len(c.cfg.Command) == 0 {
			return nil, &StartError{Class: Startup, What: "no command to run", Remedy: "give the server's command line"}
		}
		return dialStdio(c)
	case wire.SSE:
		l, x, err := dialLegacy(ctx, c)
		if x != nil {
			return nil, c.startError(x, "event stream")
		}
		if err != nil {
			return nil, err
		}
		return l, nil
	case wire.StreamableHTTP:
		return newHTTPLink(c)
	}
	return nil, &StartError{Class: Unreachable, What: fmt.Sprintf("unknown transport %q", c.cfg.Transport), Remedy: "use stdio, streamable-http or sse"}
}

// abandon closes a link whose handshake did not succeed, and adds to the error
// what its process left behind.
func (c *Client) abandon(ctx context.Context, l link, err error) error {
	ended := ""
	s, ok := l.(*stdioLink)
	if ok {
		ended = s.p.exit() // before we end it ourselves
	}
	l.close(ctx)
	if !ok {
		return err
	}
	return c.withProcess(err, s.p, ended)
}

// secondStart reports a process that took server/discover, its first message, as
// a reason to end: some servers of the handshake era do. One more start, which
// begins with initialize, tells it from a process that cannot run.
func (c *Client) secondStart(l link, err error) bool {
	s, ok := l.(*stdioLink)
	if err == nil || !ok || c.cfg.Protocol != "" || s.broken() == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	words := strings.ToLower(s.p.stderr.tail(stderrShown))
	blamed := words == "" || strings.Contains(words, "initiali") || strings.Contains(words, "server/discover")
	return s.lines == 0 && blamed && s.p.exit() != ""
}

// handshake does initialize of the handshake era.
func (c *Client) handshake(ctx context.Context, l link) (Info, *handle, error) {
	h, info, x, err := c.initialize(ctx, l)
	if err != nil && x != nil && x.Outcome == metrics.Cancelled {
		return info, nil, context.Cause(ctx)
	}
	return info, h, err
}

// initialized is the result of initialize.
type initialized struct {
	Version      *string         `json:"protocolVersion"`
	Capabilities json.RawMessage `json:"capabilities"`
	Server       identity        `json:"serverInfo"`
	Instructions string          `json:"instructions"`
}

// initialize makes the handshake and opens a session. The exchange that decided
// comes with an error.
func (c *Client) initialize(ctx context.Context, l link) (*handle, Info, *metrics.Exchange, error) {
	asked := orElse(c.cfg.Protocol, LatestLegacy)
	c.setEra(asked)
	k := &call{method: "initialize"}
	params, err := json.Marshal(map[string]any{"protocolVersion": asked, "capabilities": struct{}{},
		"clientInfo": identity{c.cfg.Name, c.cfg.Version}})
	if err != nil {
		return nil, Info{}, nil, fmt.Errorf("mcp: initialize: %w", err)
	}
	raw, x := c.run(ctx, l, k, params, c.cfg.StartTimeout, false, false)
	if x.Outcome != metrics.OK {
		return nil, Info{}, &x, c.startError(&x, "initialize")
	}
	var in initialized
	if err := json.Unmarshal(raw, &in); err != nil {
		c.fail(&x, metrics.InvalidResponse, "result of a foreign shape: "+err.Error())
		return nil, Info{}, &x, c.startError(&x, "initialize")
	}
	if err := c.accept(in.Version, asked); err != nil {
		return nil, Info{}, &x, err
	}
	c.setEra(*in.Version)
	h, err := c.begin(ctx, l, k, *in.Version)
	if err != nil {
		return nil, Info{}, &x, err
	}
	return h, Info{Name: in.Server.Name, Version: in.Server.Version, Protocol: *in.Version, Software: c.software(k.header),
		Capabilities: in.Capabilities, Instructions: in.Instructions}, &x, nil
}

// software is what the headers of a response say about who made the server.
func (c *Client) software(h http.Header) string {
	return c.cfg.Redactor.Line(strings.Join(append(h.Values("Server"), h.Values("X-Powered-By")...), ", "), messageShown)
}

// accept checks the revision a server answered with.
func (c *Client) accept(version *string, asked string) error {
	refuse := func(what string) error {
		return &StartError{Class: NotMCP, What: c.cfg.Redactor.Line("no common protocol revision: "+what, messageShown),
			Remedy: "this client speaks " + Stateless + ", " + strings.Join(legacyVersions, ", ")}
	}
	switch {
	case version == nil:
		return refuse("the server named none")
	case !slices.Contains(legacyVersions, *version):
		return refuse("the server answered " + strconv.Quote(*version))
	case c.cfg.Protocol != "" && *version != asked:
		return refuse("the server answered " + *version + " to the pinned " + asked)
	}
	return nil
}

// begin makes the handle of the new session and says that we are ready.
func (c *Client) begin(ctx context.Context, l link, k *call, version string) (*handle, error) {
	h := &handle{}
	if web, ok := l.(*httpLink); ok {
		h.header = web.base.Clone()
		h.header["Mcp-Protocol-Version"] = []string{version}
		if k.sessionID != "" {
			h.id = k.sessionID
			h.header["Mcp-Session-Id"] = []string{k.sessionID}
			c.opened.Add(1)
		}
		c.remember(h)
	}
	body := appendRequest(nil, 0, "notifications/initialized", nil, "")
	if err := l.notify(ctx, h, "notifications/initialized", body); err != nil {
		var x metrics.Exchange
		c.transportFailure(ctx, err, &x)
		return nil, c.startError(&x, "notifications/initialized")
	}
	return h, nil
}
