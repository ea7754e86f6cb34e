package llm

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"
)

// BenchmarkClient is the client's own cost of a streamed call of 50 tokens:
// request, decoding, measuring; no network.
func BenchmarkClient(b *testing.B) {
	for _, w := range []Wire{OpenAI, Anthropic} {
		b.Run(string(w), func(b *testing.B) {
			c := cannedClient(b, w, "text/event-stream", tokenStream(w, 50))
			b.ReportAllocs()
			for op := range uint64(b.N) {
				if r := c.Chat(context.Background(), op); r.Outcome != metrics.OK || len(r.Gaps) != 49 {
					b.Fatalf("%v %s, %d gaps", r.Outcome, r.Message, len(r.Gaps))
				}
			}
		})
	}
}

func tokenStream(w Wire, n int) []byte {
	old, token := `"content":"Hi"`, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"
	stream := strings.Replace(openaiStream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\"", "data: {\"choices\":[{\"index\":0,\"x\":{\"tool_calls\"", 1)
	if w == Anthropic {
		old, stream = `"text":"Hi"`, anthropicStream
		token = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n"
	}
	end := strings.Index(stream, old)
	end += strings.Index(stream[end:], "\n\n") + len("\n\n")
	return []byte(stream[:end] + strings.Repeat(token, n-1) + stream[end:])
}

// An event of a stream costs one allocation at most (its name on the Anthropic
// wire), however much a call costs.
func TestAllocationsPerEvent(t *testing.T) {
	const few, many = 100, 1100
	for _, w := range []Wire{OpenAI, Anthropic} {
		calls := map[int]float64{}
		for _, n := range []int{few, many} {
			c := cannedClient(t, w, "text/event-stream", tokenStream(w, n))
			calls[n] = testing.AllocsPerRun(10, func() {
				if r := c.Chat(context.Background(), 0); len(r.Gaps) != n-1 {
					t.Fatalf("%v %s, %d gaps", r.Outcome, r.Message, len(r.Gaps))
				}
			})
		}
		perEvent := (calls[many] - calls[few]) / (many - few)
		t.Logf("%s: %.0f allocations for %d events, %.3f for each further one", w, calls[few], few, perEvent)
		if perEvent > 1.1 {
			t.Errorf("%s: %.2f allocations per event", w, perEvent)
		}
	}
}

// BenchmarkStreams runs 100 streams of 50 tokens at a time over loopback, the
// test server in the same process: its cost is inside.
func BenchmarkStreams(b *testing.B) {
	for _, gap := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprintf("gap=%v", gap), func(b *testing.B) {
			s := llmtest.New(b, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(50), Gap: gap}))
			c, err := New(Config{Wire: OpenAI, Base: s.URL + "/v1", Model: "m"})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			b.SetParallelism(max(1, 100/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for op := uint64(0); pb.Next(); op++ {
					if r := c.Chat(context.Background(), op); r.Outcome != metrics.OK {
						b.Errorf("%v %s", r.Outcome, r.Message)
					}
				}
			})
		})
	}
}
