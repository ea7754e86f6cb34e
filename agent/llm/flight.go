package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"ordeal/metrics"
)

const (
	maxGaps    = 4096
	maxMessage = 200                    // characters of Exchange.Message
	drainTime  = 100 * time.Millisecond // for the end of an answer whose outcome is known
	drainBytes = 256 << 10
)

// What a limit of ours ends a call with; each is the cause of its context.
var (
	errTotal    = errors.New("no complete answer within the limit")
	errGap      = errors.New("the stream fell silent")
	errDrained  = errors.New("nothing more to learn")
	errTooLarge = errors.New("answer larger than the limit")
)

// flight is one call under way. Its goroutine owns it, but for the fields that
// connection hooks write.
type flight struct {
	Reply
	c      *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time
	total  *time.Timer
	gap    *time.Timer // nil before the first token

	firstByte atomic.Int64 // after start
	wrote     atomic.Bool  // the whole request is with the kernel
	dialled   atomic.Bool  // there was a connection
	reused    atomic.Bool

	said     completion
	lastSeen time.Duration // last event of any kind
	lastTok  time.Duration
	tokens   int
}

func (c *Client) depart(ctx context.Context) (*flight, context.Context) {
	f := &flight{c: c, start: time.Now()}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	f.total = time.AfterFunc(c.cfg.Timeout, func() { f.cancel(errTotal) })
	return f, httptrace.WithClientTrace(f.ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			f.dialled.Store(true)
			f.reused.Store(info.Reused)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				f.wrote.Store(true)
			}
		},
		GotFirstResponseByte: func() { f.firstByte.Store(int64(time.Since(f.start))) },
	})
}

// land releases timers and connection, whatever happened.
func (f *flight) land() {
	f.total.Stop()
	if f.gap != nil {
		f.gap.Stop()
	}
	f.cancel(errDrained)
}

func (f *flight) elapsed() time.Duration { return time.Since(f.start) }

// token records an event with generated content.
func (f *flight) token(at time.Duration) {
	if f.tokens == 0 {
		f.TTFT = at
		f.gap = time.AfterFunc(f.c.cfg.GapTimeout, func() { f.cancel(errGap) })
	} else {
		f.gap.Reset(f.c.cfg.GapTimeout)
		if len(f.Gaps) < maxGaps {
			f.Gaps = append(f.Gaps, at-f.lastTok)
		} else if len(f.Gaps) == f.tokens-1 {
			f.note(fmt.Sprintf("only the first %d gaps are kept", maxGaps))
		}
	}
	f.tokens++
	f.lastTok = at
}

// conclude sets the outcome and its reason, redacted.
func (f *flight) conclude(o metrics.Outcome, reason string) {
	f.Outcome = o
	f.Message = f.c.cfg.Redact.Line(reason, maxMessage)
}

func (f *flight) note(text string) {
	f.Notes = append(f.Notes, f.c.cfg.Redact.Line(text, maxMessage))
}

// broken handles a call whose transport failed before or within the answer.
func (f *flight) broken(err error) {
	f.Latency = f.elapsed()
	f.Executed = f.executedOnFailure()
	switch cause := context.Cause(f.ctx); {
	case errors.Is(cause, errGap):
		f.conclude(metrics.Timeout, fmt.Sprintf("no token for %v after %d tokens, connection open", f.c.cfg.GapTimeout, f.tokens))
	case errors.Is(cause, errTotal):
		f.conclude(metrics.Timeout, fmt.Sprintf("no complete answer within %v", f.c.cfg.Timeout))
	case errors.Is(cause, context.DeadlineExceeded):
		f.conclude(metrics.Timeout, "no complete answer before the deadline")
	case cause != nil:
		f.conclude(metrics.Cancelled, "the run ended while the call was in flight")
	case errors.Is(err, errTooLarge):
		f.conclude(metrics.InvalidResponse, fmt.Sprintf("answer larger than %d bytes", f.c.cfg.MaxAnswer))
	case ours(err):
		f.Origin = metrics.FromGenerator
		f.conclude(metrics.HarnessError, err.Error())
	default:
		f.conclude(metrics.Connection, f.connectionReason(err))
	}
	f.Truncated = f.Status == http.StatusOK && f.Outcome == metrics.Connection
}

func (f *flight) connectionReason(err error) string {
	reason := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "connection closed in the middle of the answer"
	}
	if f.reused.Load() && f.Status == 0 {
		reason += " (on a connection kept from an earlier call)"
	}
	return reason
}

// executedOnFailure says what is known about the target's side: without a
// complete request there was nothing to carry out, otherwise nobody can tell.
func (f *flight) executedOnFailure() metrics.Tri {
	if f.Status == 0 && (!f.dialled.Load() || !f.wrote.Load()) {
		return metrics.No
	}
	return metrics.Unknown
}

// ours reports an error that says something about this machine, not about the
// target: no ports, no descriptors, no memory for sockets.
func ours(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "socket"
}

// meter counts and bounds what is read, and remembers how the source ended:
// the event reader reports a cut event and a cut connection alike.
type meter struct {
	src  io.Reader
	n    int64
	max  int64
	last error
}

func (m *meter) Read(p []byte) (int, error) {
	if m.n >= m.max {
		m.last = errTooLarge
		return 0, errTooLarge
	}
	n, err := m.src.Read(p[:min(int64(len(p)), m.max-m.n)])
	m.n += int64(n)
	if err != nil {
		m.last = err
	}
	return n, err
}

// drain reads what is left, so that the connection can be used again. It takes
// no more than drainTime: a server that holds the connection open is left.
func (f *flight) drain(m *meter) {
	if m.last != nil {
		return
	}
	timer := time.AfterFunc(drainTime, func() { f.cancel(errDrained) })
	defer timer.Stop()
	io.CopyN(io.Discard, m, drainBytes)
}
