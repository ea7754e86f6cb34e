package llm_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"
)

// The client's clock against the server's trace of the same call, in one
// process and so on one clock. TTFT and gaps can be off only by what lies
// between a write on one side and the return of the read on the other. On a
// machine that is not idle the median of that was measured as 0.25 ms for TTFT
// (it holds the way of the request, too) and 0.03 ms for gaps; the bounds leave
// room for a very busy one, and still fail for a client that reads tokens in
// lumps, late, or from the wrong start.
func TestTimesAgreeWithTheServer(t *testing.T) {
	const (
		calls, tokens = 6, 6
		ttft, gap     = 60 * time.Millisecond, 25 * time.Millisecond
		median, worst = 12 * time.Millisecond, time.Second
	)
	for _, w := range bothWires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(tokens), TTFT: ttft, Gap: gap}))
			c := dial(t, s, w, nil)
			var heads, firsts, gaps []time.Duration
			for op := range uint64(calls) {
				r := c.Chat(context.Background(), op)
				trace := s.Journal()[op]
				if r.Outcome != metrics.OK || len(r.Gaps) != tokens-1 || len(trace.Tokens) != tokens {
					t.Fatalf("call %d: %v %s, %d gaps, %d in the trace", op, r.Outcome, r.Message, len(r.Gaps), len(trace.Tokens))
				}
				if r.TTFT < ttft || r.FirstByte > r.TTFT {
					t.Errorf("call %d: first byte %v, TTFT %v, but the server sent the token after %v", op, r.FirstByte, r.TTFT, ttft)
				}
				heads = append(heads, (r.FirstByte - trace.Headers.Sub(trace.Received)).Abs())
				firsts = append(firsts, r.TTFT-trace.Tokens[0].Before.Sub(trace.Received))
				for i, g := range r.Gaps {
					gaps = append(gaps, (g - trace.Tokens[i+1].Before.Sub(trace.Tokens[i].Before)).Abs())
				}
			}
			for name, errs := range map[string][]time.Duration{"first byte": heads, "TTFT": firsts, "gap": gaps} {
				slices.Sort(errs)
				low, mid, high := errs[0], errs[len(errs)/2], errs[len(errs)-1]
				t.Logf("%s error: median %v, worst %v", name, mid, high)
				if low < 0 || mid > median || high > worst {
					t.Errorf("%s error: least %v, median %v (limit %v), worst %v (limit %v)", name, low, mid, median, high, worst)
				}
			}
		})
	}
}

func TestManyStreamsAtOnce(t *testing.T) {
	const streams, tokens = 100, 20
	for _, w := range bothWires {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(tokens), Gap: time.Millisecond}))
		c := dial(t, s, w, nil)
		replies := make([]llm.Reply, streams)
		var all sync.WaitGroup
		for i := range replies {
			all.Go(func() { replies[i] = c.Chat(context.Background(), uint64(i)) })
		}
		all.Wait()
		for i, r := range replies {
			if r.Outcome != metrics.OK || len(r.Gaps) != tokens-1 || r.TokensOut != tokens {
				t.Errorf("%s: stream %d: %v %s, %d gaps, %d tokens", w, i, r.Outcome, r.Message, len(r.Gaps), r.TokensOut)
			}
		}
	}
}
