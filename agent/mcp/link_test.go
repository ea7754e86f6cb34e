package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"ordeal/metrics"
)

func TestTransportFailure(t *testing.T) {
	live := context.Background()
	cancelled, cancel := context.WithCancel(live)
	cancel()
	limited, done := context.WithTimeoutCause(live, 0, errCallLimit)
	defer done()
	over, done2 := context.WithDeadline(live, time.Now().Add(-time.Second)) // the end of a run is no limit of a call
	defer done2()
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	tests := []struct {
		name     string
		ctx      context.Context
		err      error
		want     metrics.Outcome
		origin   metrics.Origin
		executed metrics.Tri
	}{
		{"refused", live, dial(syscall.ECONNREFUSED), metrics.Connection, metrics.FromTarget, metrics.No},
		{"reset", live, fmt.Errorf("read: %w", syscall.ECONNRESET), metrics.Connection, metrics.FromTarget, metrics.Unknown},
		{"end", live, io.EOF, metrics.Connection, metrics.FromTarget, metrics.Unknown},
		{"out of ports", live, dial(syscall.EADDRNOTAVAIL), metrics.HarnessError, metrics.FromGenerator, metrics.No},
		{"out of descriptors", live, dial(syscall.EMFILE), metrics.HarnessError, metrics.FromGenerator, metrics.No},
		{"limit", limited, context.DeadlineExceeded, metrics.Timeout, metrics.FromTarget, metrics.Unknown},
		{"limit while dialing", limited, dial(syscall.ETIMEDOUT), metrics.Timeout, metrics.FromTarget, metrics.No},
		{"stopped", cancelled, context.Canceled, metrics.Cancelled, metrics.FromTarget, metrics.Unknown},
		{"run over", over, context.DeadlineExceeded, metrics.Cancelled, metrics.FromTarget, metrics.Unknown},
		{"POST refused", live, &postRefused{status: 500}, metrics.ServerError, metrics.FromTarget, metrics.Unknown},
		{"unknown", live, errors.New("odd"), metrics.Connection, metrics.FromTarget, metrics.Unknown},
	}
	for _, tc := range tests {
		c := &Client{cfg: Config{}.withDefaults()}
		var x metrics.Exchange
		c.transportFailure(tc.ctx, tc.err, &x)
		if x.Outcome != tc.want || x.Origin != tc.origin || x.Executed != tc.executed || x.Message == "" {
			t.Errorf("%s: %v from %v, executed %v, %q", tc.name, x.Outcome, x.Origin, x.Executed, x.Message)
		}
	}
}
