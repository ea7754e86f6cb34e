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
			c := cannedClient(b, w, "text/event-stream", fiftyTokens(w))
			b.ReportAllocs()
			for op := range uint64(b.N) {
				if r := c.Chat(context.Background(), op); r.Outcome != metrics.OK || len(r.Gaps) != 49 {
					b.Fatalf("%v %s, %d gaps", r.Outcome, r.Message, len(r.Gaps))
				}
			}
		})
	}
}

func fiftyTokens(w Wire) []byte {
	old, token := `"content":"Hi"`, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"
	stream := strings.Replace(openaiStream, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\"", "data: {\"choices\":[{\"index\":0,\"x\":{\"tool_calls\"", 1)
	if w == Anthropic {
		old, stream = `"text":"Hi"`, anthropicStream
		token = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n"
	}
	end := strings.Index(stream, old)
	end += strings.Index(stream[end:], "\n\n") + len("\n\n")
	return []byte(stream[:end] + strings.Repeat(token, 49) + stream[end:])
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
