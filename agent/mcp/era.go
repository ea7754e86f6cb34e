package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// verdict of a discovery.
type verdict int

const (
	legacyEra verdict = iota // initialize is to be tried
	modernEra
)

// agree finds the revision both sides speak: the stateless one if the server
// knows it, otherwise what initialize brings. A pin leaves no choice, and the
// older HTTP transport is of the handshake era by nature.
func (c *Client) agree(ctx context.Context, l link) (Info, *handle, error) {
	switch pinned := c.cfg.Protocol; {
	case pinned != "" && pinned != Stateless, pinned == "" && c.cfg.Transport == wire.SSE:
		return c.handshake(ctx, l)
	case pinned == "" && c.stdio():
		return c.race(ctx, l)
	}
	limit := max(c.cfg.ProbeTimeout, min(5*time.Second, c.cfg.StartTimeout/2))
	if c.cfg.Protocol != "" {
		limit = c.cfg.StartTimeout
	}
	info, verdict, err := c.discover(ctx, l, limit)
	switch {
	case err != nil:
		return info, nil, err
	case verdict == modernEra:
		return info, &handle{}, nil
	case c.cfg.Protocol == Stateless:
		return info, nil, &StartError{Class: NotMCP, What: "the server does not speak the pinned revision " + Stateless, Remedy: "drop the pin to negotiate"}
	}
	return c.handshake(ctx, l)
}

// found is what one of the two ways of a start brought.
type found struct {
	info    Info
	verdict verdict
	handle  *handle
	err     error
}

// lateDiscovery is how long a discovery may trail a handshake that was answered:
// a server takes its messages in order, so its answer has come already.
const lateDiscovery = 50 * time.Millisecond

// race starts on stdio, where silence can mean two things: a server that ignores
// what it does not know, or one that is still starting. After the probe time
// initialize is sent as well, and the discovery goes on: its answer wins
// whenever it says stateless, so that the revision does not depend on how long a
// start took.
func (c *Client) race(ctx context.Context, l link) (Info, *handle, error) {
	ctx, stop := context.WithCancel(ctx)
	discovered := make(chan found, 1)
	go func() {
		info, verdict, err := c.discover(ctx, l, c.cfg.StartTimeout)
		discovered <- found{info, verdict, &handle{}, err}
	}()
	defer func() {
		stop()
		<-discovered
	}()
	probe := time.NewTimer(c.cfg.ProbeTimeout)
	defer probe.Stop()
	select {
	case d := <-discovered:
		discovered <- d // for the deferred wait
		if d.err != nil || d.verdict == modernEra {
			return d.info, d.handle, d.err
		}
		return c.handshake(ctx, l)
	case <-probe.C:
	}
	shaken := make(chan found, 1)
	go func() {
		info, h, err := c.handshake(ctx, l)
		shaken <- found{info, legacyEra, h, err}
	}()
	return c.decide(discovered, shaken, stop)
}

// decide waits for what decides: a stateless server's discovery, or else the
// handshake.
func (c *Client) decide(discovered, shaken chan found, stop func()) (Info, *handle, error) {
	var d, h *found
	for d == nil || h == nil {
		var late <-chan time.Time
		if h != nil && h.err == nil {
			late = time.After(lateDiscovery)
		}
		select {
		case got := <-discovered:
			d = &got
			discovered <- got // for the deferred wait
			if got.err == nil && got.verdict == modernEra {
				stop()
				if h == nil {
					<-shaken
				}
				c.setEra(Stateless)
				return got.info, got.handle, nil
			}
			discovered = nil
		case got := <-shaken:
			h = &got
		case <-late:
			c.setEra(h.info.Protocol)
			return h.info, h.handle, nil
		}
	}
	if h.err == nil {
		c.setEra(h.info.Protocol)
	}
	return h.info, h.handle, h.err
}

// discovery is the result of server/discover.
type discovery struct {
	Supported    []string        `json:"supportedVersions"`
	Capabilities json.RawMessage `json:"capabilities"`
	Instructions string          `json:"instructions"`
	Meta         struct {
		Server identity `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

type identity struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// discover asks for the stateless era. Anything that is not recognisably of it
// means that initialize is worth a try, silence included; only a refusal for
// authorization and an unreachable server end the matter.
func (c *Client) discover(ctx context.Context, l link, limit time.Duration) (Info, verdict, error) {
	c.setEra(Stateless)
	k := &call{method: "server/discover"}
	raw, x := c.run(ctx, l, k, nil, limit, false, false)
	switch {
	case x.Outcome == metrics.OK:
		var d discovery
		if json.Unmarshal(raw, &d) != nil || !slices.Contains(d.Supported, Stateless) {
			return Info{}, legacyEra, nil
		}
		return Info{Name: d.Meta.Server.Name, Version: d.Meta.Server.Version, Protocol: Stateless, Software: c.software(k.header),
			Capabilities: d.Capabilities, Instructions: d.Instructions}, modernEra, nil
	case x.Outcome == metrics.AuthRequired, x.Outcome == metrics.Connection, x.Outcome == metrics.Cancelled,
		x.Outcome == metrics.HarnessError, x.Outcome == metrics.RateLimited:
		return Info{}, legacyEra, c.startError(&x, "server/discover")
	case x.Outcome == metrics.ProtocolError && c.recognised(ctx, l, &x):
		c.find.add("server/discover refused by a server of the stateless era", x.Message)
		return Info{Protocol: Stateless}, modernEra, nil
	}
	return Info{}, legacyEra, nil
}

// recognised reports an error only a server of the stateless era gives. An
// unknown method with status 404 is one, unless the server then does not list
// its tools in that era.
func (c *Client) recognised(ctx context.Context, l link, x *metrics.Exchange) bool {
	switch {
	case x.Code == codeVersion: // it does not speak ours
		return false
	case x.Code == codeHeaderMismatch, x.Code == codeCapability:
		return true
	case x.Code != -32601 || x.Status != http.StatusNotFound:
		return false
	}
	_, y := c.run(ctx, l, &call{method: "tools/list"}, nil, c.cfg.Timeout, false, false)
	return y.Outcome == metrics.OK
}
