package mcp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"ordeal/agent/http1"
	"ordeal/metrics"
)

// link carries requests to one server.
type link interface {
	// roundTrip sends c and waits for its answer, at most as long as ctx. It
	// fills what the transport knows into x. Without a message the outcome is
	// decided, and is in x.
	roundTrip(ctx context.Context, c *call, x *metrics.Exchange) (message, bool)
	// notify sends a notification, body complete.
	notify(ctx context.Context, s *handle, method string, body []byte) error
	// broken says why no call can succeed any more; empty while one can.
	broken() string
	// close ends the link within its bounds.
	close(ctx context.Context) ShutdownReport
}

// call is one request on its way.
type call struct {
	id      int64
	method  string
	name    string // of the tool, for Mcp-Name
	body    []byte
	session *handle       // nil before there is one
	params  []paramHeader // of the tool
	args    []byte
	answers clientTime
	steps   progress

	sessionID string      // Mcp-Session-Id of the response to initialize
	header    http.Header // of the response; only kept for a handshake
}

// clientTime adds up what we spent answering the server in the middle of a
// call. It is safe for concurrent use.
type clientTime struct {
	mu      sync.Mutex
	total   time.Duration
	running map[*time.Time]struct{}
}

func (t *clientTime) start() (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := time.Now()
	if t.running == nil {
		t.running = map[*time.Time]struct{}{}
	}
	t.running[&began] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, open := t.running[&began]; open {
			delete(t.running, &began)
			t.total += time.Since(began)
		}
	}
}

// idle reports that nothing was spent.
func (t *clientTime) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total == 0 && len(t.running) == 0
}

// sum closes the account: an answer still under way counts until now.
func (t *clientTime) sum() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for began := range t.running {
		t.total += time.Since(*began)
	}
	t.running = nil
	return t.total
}

// transportFailure classifies an error of a send or receive. Faults of our own
// machine are the generator's, not the target's.
func (c *Client) transportFailure(ctx context.Context, err error, x *metrics.Exchange) {
	var refused *postRefused
	if errors.As(err, &refused) {
		c.postRefused(refused, x)
		return
	}
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	if dialing {
		x.Executed = metrics.No
	}
	for _, ours := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, ours) {
			x.Origin = metrics.FromGenerator
			c.fail(x, metrics.HarnessError, "this machine is out of resources: "+err.Error())
			return
		}
	}
	var recycled *http1.RecycledError
	switch {
	case c.expired(ctx, x):
		if dialing {
			x.Message = "no connection within the limit of this call"
		}
	case errors.As(err, &recycled):
		x.Notes, x.Recycled = append(x.Notes, recycledNote), true
		c.fail(x, metrics.Connection, "connection closed before an answer ("+err.Error()+")")
	case errors.Is(err, io.EOF), errors.Is(err, fs.ErrClosed):
		c.fail(x, metrics.Connection, "connection closed before an answer ("+err.Error()+")")
	default:
		c.fail(x, metrics.Connection, err.Error())
	}
}

// recycledNote marks a call that met the end of an idle connection: the server may
// have seen it, so it is not made again.
const recycledNote = "recycled: the server closed an idle connection as the call was sent"

// expired sets timeout or cancelled when ctx has ended: the call's own limit is
// the only deadline with the cause errCallLimit.
func (c *Client) expired(ctx context.Context, x *metrics.Exchange) bool {
	if ctx.Err() == nil {
		return false
	}
	if errors.Is(context.Cause(ctx), errCallLimit) {
		c.fail(x, metrics.Timeout, "no complete answer within the limit of this call")
	} else {
		c.fail(x, metrics.Cancelled, "the run stopped while the call was in flight")
	}
	return true
}

var errCallLimit = errors.New("limit of the call")
