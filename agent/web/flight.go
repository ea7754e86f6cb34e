package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"ordeal/metrics"
)

// messageShown is the length of the excerpt an exchange carries.
const messageShown = 200

// What ends a call; each is the cause of its context.
var (
	errTotal    = errors.New("no complete answer within the limit")
	errDone     = errors.New("the call is over")
	errTooLarge = errors.New("answer larger than the limit")
)

// flight is one call under way.
type flight struct {
	metrics.Exchange
	c      *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	trip   Trip
	keep   bool
	last   time.Duration // event of a stream, after the start
	seen   int           // events of a stream
}

// conclude sets the outcome and its reason, redacted.
func (f *flight) conclude(o metrics.Outcome, reason string) {
	f.Outcome, f.Message = o, f.c.cfg.Redact.Line(reason, messageShown)
}

func (f *flight) note(text string) {
	f.Notes = append(f.Notes, f.c.cfg.Redact.Line(text, messageShown))
}

// RecycledNote is what an exchange says about connections that were found closed.
const RecycledNote = "the server closed a kept connection before the request was on it: it went out on another"

func (f *flight) recycled() {
	for range f.trip.Recycled() {
		f.Notes = append(f.Notes, RecycledNote)
	}
}

// broken handles a call whose transport failed before or within the answer.
func (f *flight) broken(err error) {
	f.Latency = f.trip.Elapsed()
	f.Executed = metrics.Unknown
	if f.Status == 0 && f.trip.Unsent(err) {
		f.Executed = metrics.No
	}
	switch cause := context.Cause(f.ctx); {
	case errors.Is(cause, ErrCrossed):
		f.Executed, f.Exchange.Recycled = metrics.Unknown, true
		f.conclude(metrics.Connection, ErrCrossed.Error())
	case errors.Is(cause, errTotal):
		f.conclude(metrics.Timeout, fmt.Sprintf("no complete answer within %v", f.c.cfg.Timeout))
	case errors.Is(cause, context.DeadlineExceeded):
		f.conclude(metrics.Timeout, "no complete answer before the deadline")
	case cause != nil:
		f.conclude(metrics.Cancelled, "the run ended while the call was in flight")
	case errors.Is(err, errTooLarge):
		f.conclude(metrics.InvalidResponse, fmt.Sprintf("answer larger than %d bytes", f.c.cfg.MaxAnswer))
	case Ours(err):
		f.Origin = metrics.FromGenerator
		f.conclude(metrics.HarnessError, "this machine is out of resources: "+err.Error())
	default:
		f.conclude(metrics.Connection, f.trip.Reason(err, f.Status != 0))
	}
	f.Truncated = f.Status != 0 && f.Outcome == metrics.Connection
}

// Reason says how a connection failed, in the words of a message.
func (t *Trip) Reason(err error, begun bool) string {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "tls: " + strings.TrimPrefix(err.Error(), "tls: ")
	case !begun && t.Crossed():
		return ErrCrossed.Error() + ": " + err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed in the middle of the answer"
	}
	return err.Error()
}

// Ours reports an error that says something about this machine, not about the
// target: no ports, no descriptors, no memory for sockets.
func Ours(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "socket"
}

// statusText is "503 Service Unavailable".
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}
