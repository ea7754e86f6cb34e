package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/metrics"
)

// handle is a session as the server knows it. It never changes, but for what is
// kept of its requests: a session that was lost gets another.
type handle struct {
	id     string      // Mcp-Session-Id; empty for a server that gives none
	header http.Header // of every request in it; nil where there are no headers
	frames frames
}

func (h *handle) known() bool { return h != nil && h.id != "" }

// maxLosses is how many sessions in a row may be lost before their first answer
// until the session gives up opening others.
const maxLosses = 3

// Session makes calls. Over streamable HTTP in the handshake era it is a session
// of the server's; otherwise all sessions share what there is. It may be used by
// several goroutines.
type Session struct {
	c      *Client
	handle atomic.Pointer[handle]

	mu     sync.Mutex   // held while a lost session is opened anew
	losses atomic.Int32 // in a row
}

// Call calls a tool once. args is sent as it is, even if it is no valid JSON;
// empty stands for {}. With keep the exchange carries the answer's text and
// structured content.
func (s *Session) Call(ctx context.Context, tool string, args json.RawMessage, keep bool) metrics.Exchange {
	if !keep {
		if x, done := s.fast(ctx, tool, args); done {
			return x
		}
		if x, done := s.plain(ctx, tool, args); done {
			return x
		}
	}
	c := &call{method: "tools/call", name: tool, args: args, params: s.c.paramHeaders(tool)}
	params := toolParams(make([]byte, 0, len(args)+len(tool)+64), tool, args)
	_, x := s.run(ctx, c, params, true, keep)
	return x
}

// Raw sends any method with any params, and returns the result as it came; nil
// unless the outcome is ok.
func (s *Session) Raw(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, metrics.Exchange) {
	return s.run(ctx, &call{method: method, name: nameParam(method, params)}, params, false, false)
}

// nameParam is what Mcp-Name repeats for the three methods that have it.
func nameParam(method string, params json.RawMessage) string {
	var p struct{ Name, URI string }
	switch method {
	case "tools/call", "prompts/get", "resources/read":
		_ = json.Unmarshal(params, &p) // a call without a name goes out without the header
	}
	return orElse(p.Name, p.URI)
}

func (s *Session) run(ctx context.Context, c *call, params json.RawMessage, tool, keep bool) (json.RawMessage, metrics.Exchange) {
	var x metrics.Exchange
	h, err := s.current(ctx, &x)
	if err != nil {
		return nil, x
	}
	c.session = h
	result, y := s.c.run(ctx, s.c.current(), c, params, s.c.cfg.Timeout, tool, keep)
	y.Notes = append(x.Notes, y.Notes...)
	s.settle(h, &y)
	return result, y
}

// current returns the handle, opening a new session for one that was lost. That
// takes no part in the latency of the call. When it fails x says how.
func (s *Session) current(ctx context.Context, x *metrics.Exchange) (*handle, error) {
	if h := s.handle.Load(); h != nil {
		return h, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.handle.Load(); h != nil {
		return h, nil // another goroutine was faster
	}
	if losses := s.losses.Load(); losses >= maxLosses {
		x.Executed = metrics.No
		s.c.fail(x, metrics.SessionLost, fmt.Sprintf("%d sessions in a row were lost before their first answer: does every replica know every session?", losses))
		return nil, errGivenUp
	}
	began := time.Now()
	h, y, err := s.c.openHandle(ctx, s.c.current())
	if err != nil {
		*x = *y
		x.Message = s.c.cfg.Redactor.Line("session could not be opened anew: "+x.Message, messageShown)
		x.Executed, x.Delivered = metrics.No, false
		return nil, err
	}
	s.c.reopened.Add(1)
	x.Notes = append(x.Notes, fmt.Sprintf("lost session opened anew in %v", time.Since(began).Round(time.Microsecond)))
	s.handle.Store(h)
	return h, nil
}

// settle draws the consequence of a call for the session.
func (s *Session) settle(h *handle, x *metrics.Exchange) {
	if x.Outcome == metrics.SessionLost {
		if s.handle.CompareAndSwap(h, nil) { // the first of several calls that see it
			s.losses.Add(1)
			s.c.forget(h)
		}
		return
	}
	if x.Delivered && s.losses.Load() != 0 {
		s.losses.Store(0)
	}
}

// Close ends a session that the server knows, within StopGrace and also after ctx
// has ended. Where all sessions share what there is it does nothing. No call may
// follow.
func (s *Session) Close(ctx context.Context) {
	h := s.handle.Load()
	l, web := s.c.current().(*httpLink)
	if !web || !h.known() {
		return
	}
	s.c.forget(h)
	l.deleteSession(ctx, h.header)
}
