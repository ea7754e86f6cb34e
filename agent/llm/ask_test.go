package llm_test

import (
	"context"
	"strings"
	"testing"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// What a call's own arguments replace, and only that.
func TestAsk(t *testing.T) {
	rows := []struct{ name, args, want string }{
		{"Nothing", ``, `"max_tokens":9,"messages":[{"role":"user","content":"ours"}]}`},
		{"Null", `null`, `"max_tokens":9,"messages":[{"role":"user","content":"ours"}]}`},
		{"Empty", `{}`, `"max_tokens":9,"messages":[{"role":"user","content":"ours"}]}`},
		{"Prompt", `{"prompt":"say \"hi\""}`, `"max_tokens":9,"messages":[{"role":"user","content":"say \"hi\""}]}`},
		{"Limit", `{"max_tokens":3}`, `"max_tokens":3,"messages":[{"role":"user","content":"ours"}]}`},
		{"Messages", `{"max_tokens":4,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"}, {"role":"user","content":"c"}]}`,
			`"max_tokens":4,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`},
	}
	for _, r := range rows {
		for _, w := range bothWires {
			t.Run(r.name+"/"+string(w), func(t *testing.T) {
				s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
				c := dial(t, s, w, func(cfg *llm.Config) { cfg.Prompts, cfg.MaxTokens = []string{"ours"}, 9 })
				got := c.Ask(context.Background(), 0, []byte(r.args))
				body := string(s.Journal()[0].Body)
				body = strings.Replace(body, `"stream_options":{"include_usage":true},`, "", 1)
				if diff := cmp.Diff(`{"model":"test-model","stream":true,`+r.want, body); diff != "" || got.Outcome != metrics.OK {
					t.Errorf("%v %s (-want +got):\n%s", got.Outcome, got.Message, diff)
				}
			})
		}
	}
}

// Arguments that say nothing known are our own failure, and nothing is sent: the
// target must not be loaded with another prompt than was meant.
func TestAskRefuses(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	c := dial(t, s, llm.OpenAI, nil)
	for _, args := range []string{`"text"`, `[]`, `{"promt":"x"}`, `{"prompt":1}`, `{"messages":{}}`, `{"messages":[]}`, `{"max_tokens":0}`, `{"prompt":"x","messages":[1]}`, `{`} {
		got := c.Ask(context.Background(), 0, []byte(args))
		if got.Outcome != metrics.HarnessError || got.Origin != metrics.FromGenerator || got.Executed != metrics.No || !strings.Contains(got.Message, `want an object with "prompt"`) {
			t.Errorf("%s: %v of %v, %q", args, got.Outcome, got.Origin, got.Message)
		}
	}
	if n := len(s.Journal()); n != 0 {
		t.Errorf("%d requests sent", n)
	}
}

// Prompt-cache hits in the words of both providers, in a stream and in one piece.
func TestCachedTokens(t *testing.T) {
	for _, w := range bothWires {
		for _, fault := range []llmtest.Fault{llmtest.NoFault, llmtest.JSONBody} {
			s := llmtest.New(t, llmtest.Always(llmtest.Answer{Input: 1000, Cached: 768, Output: 2, Fault: fault}))
			got := dial(t, s, w, nil).Chat(context.Background(), 0)
			if diff := cmp.Diff([]int64{1000, 768, 2}, []int64{got.TokensIn, got.CachedIn, got.TokensOut}); diff != "" || !got.Usage {
				t.Errorf("%s %s: input, cached, output (-want +got):\n%s", w, fault, diff)
			}
		}
	}
}
