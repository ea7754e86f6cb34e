package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"ordeal/agent/web"
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

// flight is one call under way. Its goroutine owns it, but for the silence that a
// timer watches.
type flight struct {
	Reply
	c      *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	trip   web.Trip
	total  *time.Timer
	quiet  silence

	said     completion
	lastSeen time.Duration // last event of any kind
	lastTok  time.Duration
	tokens   int
}

// silence ends a stream between whose tokens there is none for too long. A token
// only says when it came: setting a timer for each would cost more than reading it.
type silence struct {
	timer atomic.Pointer[time.Timer] // nil before the first token
	last  atomic.Int64               // token, after the start
}

func (c *Client) depart(ctx context.Context) (*flight, context.Context) {
	f := &flight{c: c}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	f.total = time.AfterFunc(c.cfg.Timeout, func() { f.cancel(errTotal) })
	return f, f.trip.Begin(f.ctx, f.cancel)
}

// land releases timers and connection, whatever happened.
func (f *flight) land() {
	f.total.Stop()
	if t := f.quiet.timer.Load(); t != nil {
		t.Stop()
	}
	f.cancel(errDrained)
}

func (f *flight) elapsed() time.Duration { return f.trip.Elapsed() }

// token records an event with generated content.
func (f *flight) token(at time.Duration) {
	f.quiet.last.Store(int64(at))
	switch {
	case f.tokens == 0:
		f.TTFT = at
		f.watch(f.c.cfg.GapTimeout)
	case len(f.Gaps) < maxGaps:
		f.Gaps = append(f.Gaps, at-f.lastTok)
	case len(f.Gaps) == f.tokens-1:
		f.note(fmt.Sprintf("only the first %d gaps are kept", maxGaps))
	}
	f.tokens++
	f.lastTok = at
}

// watch looks after a while whether a token has come since, and if so, looks again
// when the one that came last will have been too long ago.
func (f *flight) watch(after time.Duration) {
	f.quiet.timer.Store(time.AfterFunc(after, func() {
		left := f.c.cfg.GapTimeout - (f.elapsed() - time.Duration(f.quiet.last.Load()))
		switch {
		case f.ctx.Err() != nil:
		case left <= 0:
			f.cancel(errGap)
		default:
			f.watch(left)
		}
	}))
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
	f.Executed = metrics.Unknown // without a complete request there was nothing to carry out
	if f.Status == 0 && f.trip.Unsent(err) {
		f.Executed = metrics.No
	}
	switch cause := context.Cause(f.ctx); {
	case errors.Is(cause, web.ErrCrossed):
		f.Executed, f.Recycled = metrics.Unknown, true
		f.conclude(metrics.Connection, f.connectionReason(cause))
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
	case web.Ours(err):
		f.Origin = metrics.FromGenerator
		f.conclude(metrics.HarnessError, err.Error())
	default:
		f.conclude(metrics.Connection, f.connectionReason(err))
	}
	f.Truncated = f.Status == http.StatusOK && f.Outcome == metrics.Connection
}

func (f *flight) connectionReason(err error) string {
	return f.trip.Reason(err, f.Status != 0)
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
