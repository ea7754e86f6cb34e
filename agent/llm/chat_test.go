package llm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

var bothWires = []llm.Wire{llm.OpenAI, llm.Anthropic}

// dial returns a client of the server; change may alter its configuration.
func dial(t testing.TB, s *llmtest.Server, w llm.Wire, change func(*llm.Config)) *llm.Client {
	t.Helper()
	cfg := llm.Config{Wire: w, Base: s.URL, Model: "test-model", Key: "sk-test-0123456789", Timeout: 20 * time.Second}
	if w == llm.OpenAI {
		cfg.Base += "/v1"
	}
	if change != nil {
		change(&cfg)
	}
	c, err := llm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestChatOK(t *testing.T) {
	for _, w := range bothWires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{
				Text: []string{"Hel", "lo", " 🌍"}, Input: 1000, Cached: 900, Output: 3}))
			s.RequireKey("sk-test-0123456789")
			r := dial(t, s, w, nil).Chat(context.Background(), 0)
			got := summary(r)
			want := row{outcome: metrics.OK, text: "Hello 🌍", tokens: 3, executed: metrics.Yes, delivered: true,
				in: 1000, out: 3, cached: 900}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, r)
			}
			if !r.Usage || r.Status != 200 || r.Model != "test-model" || r.RequestID != "req_000000" || len(r.Notes) != 0 {
				t.Errorf("got %+v", r)
			}
			if r.FirstByte <= 0 || r.TTFT < r.FirstByte || r.Latency < r.TTFT || r.BytesOut == 0 || r.BytesIn == 0 {
				t.Errorf("times or bytes out of order: %+v", r.Exchange)
			}
		})
	}
}

// row is what the fault tables compare.
type row struct {
	outcome         metrics.Outcome
	text            string
	tokens          int // events with generated content
	truncated       bool
	delivered       bool
	executed        metrics.Tri
	in, out, cached int64
}

func summary(r llm.Reply) row {
	tokens := len(r.Gaps)
	if r.TTFT > 0 {
		tokens++
	}
	return row{r.Outcome, r.Text, tokens, r.Truncated, r.Delivered, r.Executed, r.TokensIn, r.TokensOut, r.CachedIn}
}

func TestToolCallsAreAssembledPerIndex(t *testing.T) {
	first := `{"city":"Paris","days":[1,2,3],"note":"a \"quoted\" ümlaut 🌍"}`
	second := `{"query":"SELECT *","limit":10}`
	tools := []llmtest.ToolCall{{ID: "call_a", Name: "weather", Arguments: first, Parts: 20}, {ID: "call_b", Name: "query", Arguments: second, Parts: 13}, {ID: "call_c", Name: "ping", Arguments: "{}"}}
	for _, w := range bothWires {
		t.Run(string(w), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{Tools: tools}))
			c := dial(t, s, w, func(cfg *llm.Config) {
				cfg.Tools = json.RawMessage(`[{"type":"function","function":{"name":"weather"}}]`)
			})
			r := c.Chat(context.Background(), 0)
			want := []llm.ToolCall{{"call_a", "weather", first}, {"call_b", "query", second}, {"call_c", "ping", "{}"}}
			if diff := cmp.Diff(want, r.Tools); diff != "" || r.Outcome != metrics.OK || len(r.Gaps) < 30 {
				t.Errorf("outcome %v %s, %d gaps (-want +got):\n%s", r.Outcome, r.Message, len(r.Gaps), diff)
			}
			if body := string(s.Journal()[0].Body); !strings.Contains(body, `"tools":[{"type":"function"`) {
				t.Errorf("request lacks the tools: %s", body)
			}
		})
	}
}
