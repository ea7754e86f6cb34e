package llm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"unicode/utf8"

	"ordeal/metrics"
)

// canned answers every request with the same response.
type canned struct {
	contentType string
	body        []byte
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, req.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.contentType}},
		Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

func cannedClient(t testing.TB, w Wire, contentType string, body []byte) *Client {
	t.Helper()
	c, err := New(Config{Wire: w, Base: "http://canned.test", Model: "m", MaxAnswer: 1 << 20, Transport: canned{contentType, body}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	openaiStream = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":3,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
	anthropicStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	mislabelled = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n"
)

// FuzzAnswer feeds bytes as an answer on both wires: no panic, a coherent
// exchange, and nothing called a success without a marker in the bytes.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{openaiStream, anthropicStream, mislabelled, `{"error":"text"}`, "{}", "", "<html>", ":\n\n", "data: [DONE]\n\n",
		`{"choices":[{"message":{"content":"x"},"finish_reason":"length"}]}`, `{"type":"message","stop_reason":"end_turn","content":[{"type":"tool_use","name":"f","input":{}}]}`,
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-9000000000000000000}]}}]}\n\n", "data: {\"usage\":{\"prompt_tokens\":-5}}\n\n"} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, labelled bool) {
		contentType := "application/json"
		if labelled {
			contentType = "text/event-stream"
		}
		for _, w := range []Wire{OpenAI, Anthropic} {
			r := cannedClient(t, w, contentType, body).Chat(context.Background(), 0)
			if r.Outcome == metrics.OK && !marked(w, body) {
				t.Fatalf("%s: a success without an end marker: %q", w, body)
			}
			if (r.Outcome == metrics.OK) != (r.Message == "") || r.TokensIn < 0 || r.TokensOut < 0 || r.CachedIn < 0 {
				t.Fatalf("%s: incoherent %+v", w, r.Exchange)
			}
			if !utf8.ValidString(r.Message) || utf8.RuneCountInString(r.Message) > maxMessage || len(r.Tools) > maxTools {
				t.Fatalf("%s: message %q, %d tools", w, r.Message, len(r.Tools))
			}
			if len(r.Gaps) > 0 && r.TTFT == 0 || r.Latency <= 0 || r.Outcome == metrics.HarnessError || r.Outcome == metrics.Timeout {
				t.Fatalf("%s: %v, TTFT %v, latency %v", w, r.Outcome, r.TTFT, r.Latency)
			}
		}
	})
}

// marked says whether the bytes hold any of the words a success depends on. A
// JSON text may spell them with escapes, or with keys in another case.
func marked(w Wire, body []byte) bool {
	lower := bytes.ToLower(body)
	words := []string{"[done]", "finish_reason", "\\u"}
	if w == Anthropic {
		words = []string{"message_stop", "stop_reason", "\\u"}
	}
	for _, word := range words {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	// encoding/json also folds ſ and K (Kelvin) into keys.
	return bytes.ContainsAny(body, "ſK")
}

// A stream cut anywhere is never a success, unless all that is missing comes
// after the end of the generation.
func TestEveryCutIsSeen(t *testing.T) {
	for w, stream := range map[Wire]string{OpenAI: openaiStream, Anthropic: anthropicStream} {
		enough := map[Wire]string{OpenAI: "\"finish_reason\":\"stop\"}]}\n\n", Anthropic: "\"message_stop\"}\n\n"}[w]
		complete := bytes.Index([]byte(stream), []byte(enough)) + len(enough)
		for n := range len(stream) + 1 {
			r := cannedClient(t, w, "text/event-stream", []byte(stream[:n])).Chat(context.Background(), 0)
			if got, want := r.Outcome == metrics.OK, n >= complete; got != want {
				t.Errorf("%s cut at byte %d of %d: %v %q", w, n, len(stream), r.Outcome, r.Message)
			}
			if r.Outcome != metrics.OK && n > 0 && !r.Truncated {
				t.Errorf("%s cut at byte %d: not marked as truncated", w, n)
			}
		}
	}
}

func FuzzErrorBody(f *testing.F) {
	for _, body := range []string{`{"error":{"message":"m","type":"t","param":null,"code":429}}`, `{"type":"error","error":{"type":"overloaded_error"}}`,
		`{"object":"error","message":"m","code":400}`, `{"error":"text"}`, `{"error":[1]}`, `{"error":null}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		bad, ok := parseError(body)
		if !ok && bad != (apiError{}) {
			t.Fatalf("%q: no error, but %+v", body, bad)
		}
		if o := bad.outcome(); o == metrics.OK || o == metrics.HarnessError || o == metrics.Cancelled {
			t.Fatalf("%q: outcome %v", body, o)
		}
	})
}
