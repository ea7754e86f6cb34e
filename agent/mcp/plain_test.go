package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

// Calls on the fast way over stdio that come to no good end.
func TestPlainCallsThatFail(t *testing.T) {
	call := func(ctx context.Context, s *mcp.Session, text string) metrics.Exchange {
		return s.Call(ctx, "echo", json.RawMessage(fmt.Sprintf(`{"text":%q}`, text)), false)
	}
	t.Run("limit and context", func(t *testing.T) {
		s := start(t, "hang", func(c *mcp.Config) { c.Timeout = 150 * time.Millisecond })
		session := s.session(t)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				x := call(t.Context(), session, "x")
				if x.Outcome != metrics.Timeout || x.Latency < 150*time.Millisecond || x.Latency > time.Second || x.BytesOut == 0 {
					t.Errorf("%v after %v, %d bytes", x.Outcome, x.Latency, x.BytesOut)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		wantOutcome(t, "context", call(ctx, session, "x"), metrics.Cancelled, "")
		eventually(t, s.journal, "got", "notifications/cancelled", 21)
	})
	t.Run("crash", func(t *testing.T) {
		session := start(t, "crash").session(t)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				wantOutcome(t, "crash", call(t.Context(), session, "x"), metrics.Connection, "panic: out of luck")
			})
		}
		wg.Wait()
		x := call(t.Context(), session, "x")
		wantOutcome(t, "after", x, metrics.Connection, "panic: out of luck")
		if x.Executed != metrics.No {
			t.Errorf("executed %v", x.Executed)
		}
	})
	t.Run("blocked", func(t *testing.T) {
		s := start(t, "noread", func(c *mcp.Config) { c.Timeout = 300 * time.Millisecond })
		session := s.session(t)
		wantOutcome(t, "first", call(t.Context(), session, "x"), metrics.OK, "")
		var wg sync.WaitGroup
		for range 5 { // more than a pipe holds, then lines that wait behind
			wg.Go(func() {
				wantOutcome(t, "blocked", call(t.Context(), session, strings.Repeat("y", 300<<10)), metrics.Timeout, "")
			})
		}
		wg.Wait()
		eventually(t, s.journal, "got", "tools/call", 2) // the server reads again
		wantOutcome(t, "after", call(t.Context(), session, "z"), metrics.OK, "")
		if n := count(notes(t, s.journal), "garbage", ""); n != 0 {
			t.Errorf("%d damaged lines at the server", n)
		}
	})
}
