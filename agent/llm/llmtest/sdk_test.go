package llmtest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"ordeal/agent/llm/llmtest"
	"ordeal/testdata/peers"

	"github.com/google/go-cmp/cmp"
)

// result is what a script says an SDK returned.
type result struct {
	Text  string     `json:"text"`
	Tools [][]string `json:"tools"` // id, name, arguments
	Usage []int64    `json:"usage"` // input, output, cached, in the SDK's own counting
	Stop  string     `json:"stop"`
	Error []any      `json:"error"` // class, status
}

// sdkCase is one call, in the form the scripts read.
type sdkCase struct {
	Wire   llmtest.Wire `json:"wire"`
	Model  string       `json:"model"`
	Stream bool         `json:"stream"`
	want   result
}

var sdkAnswers = map[string]llmtest.Answer{
	"text":   {Text: []string{"Grüße", ", ", "Welt 🌍"}, Input: 90, Cached: 40, Output: 12},
	"length": {Text: []string{"cut"}, Stop: llmtest.StopLength, Input: 5},
	"tools": {Text: []string{}, Input: 30, Output: 20, Tools: []llmtest.ToolCall{
		{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris","days":[1,2]}`, Parts: 20},
		{ID: "call_2", Name: "add", Arguments: `{"a":1,"b":2}`, Parts: 5}}},
	"noise":      {Text: []string{"a", "b", "c"}, Fault: llmtest.Noise, Input: 7},
	"no-data":    {Text: []string{"a"}, Fault: llmtest.NoData},
	"400":        {Status: 400},
	"401":        {Status: 401},
	"403":        {Status: 403},
	"404":        {Status: 404},
	"429":        {Status: 429},
	"500":        {Status: 500},
	"overloaded": {Status: 529},
	"midstream":  {Fault: llmtest.ErrorEvent, After: 1},
	"chunk-cut":  {Fault: llmtest.ChunkCut, After: 1},
}

var sdkTools = [][]string{{"call_1", "weather", `{"city":"Paris","days":[1,2]}`}, {"call_2", "add", `{"a":1,"b":2}`}}

// sdkCases are the calls both languages agree on; overloaded and broken streams
// differ by language.
func sdkCases() []sdkCase {
	var all []sdkCase
	for _, stream := range []bool{false, true} {
		all = append(all,
			sdkCase{llmtest.OpenAI, "text", stream, result{Text: "Grüße, Welt 🌍", Usage: []int64{90, 12, 40}, Stop: "stop"}},
			sdkCase{llmtest.Anthropic, "text", stream, result{Text: "Grüße, Welt 🌍", Usage: []int64{50, 12, 40}, Stop: "end_turn"}},
			sdkCase{llmtest.OpenAI, "length", stream, result{Text: "cut", Usage: []int64{5, 1, 0}, Stop: "length"}},
			sdkCase{llmtest.Anthropic, "length", stream, result{Text: "cut", Usage: []int64{5, 1, 0}, Stop: "max_tokens"}},
			sdkCase{llmtest.OpenAI, "tools", stream, result{Tools: sdkTools, Usage: []int64{30, 20, 0}, Stop: "tool_calls"}},
			sdkCase{llmtest.Anthropic, "tools", stream, result{Tools: sdkTools, Usage: []int64{30, 20, 0}, Stop: "tool_use"}},
			sdkCase{llmtest.OpenAI, "noise", stream, result{Text: "abc", Usage: []int64{7, 3, 0}, Stop: "stop"}},
			sdkCase{llmtest.Anthropic, "noise", stream, result{Text: "abc", Usage: []int64{7, 3, 0}, Stop: "end_turn"}},
		)
		for _, w := range []llmtest.Wire{llmtest.OpenAI, llmtest.Anthropic} {
			for _, e := range []struct {
				model, class string
				status       float64
			}{
				{"400", "BadRequestError", 400}, {"401", "AuthenticationError", 401}, {"403", "PermissionDeniedError", 403},
				{"404", "NotFoundError", 404}, {"429", "RateLimitError", 429}, {"500", "InternalServerError", 500},
			} {
				all = append(all, sdkCase{w, e.model, stream, result{Error: []any{e.class, e.status}}})
			}
		}
	}
	return all
}

func failure(w llmtest.Wire, model string, stream bool, class string, status any) sdkCase {
	return sdkCase{w, model, stream, result{Error: []any{class, status}}}
}

func TestOfficialSDKs(t *testing.T) {
	const js, py = "testdata/sdk.mjs", "testdata/sdk.py"
	own := map[string][]sdkCase{
		js: {
			failure(llmtest.OpenAI, "overloaded", false, "InternalServerError", 529.0),
			failure(llmtest.Anthropic, "overloaded", false, "OverloadedError", 529.0),
			failure(llmtest.OpenAI, "no-data", true, "SyntaxError", nil),
			failure(llmtest.OpenAI, "midstream", true, "APIError", nil),
			failure(llmtest.Anthropic, "midstream", true, "APIError", nil),
			failure(llmtest.OpenAI, "chunk-cut", true, "TypeError", nil),
			failure(llmtest.Anthropic, "chunk-cut", true, "AnthropicError", nil),
		},
		py: {
			failure(llmtest.OpenAI, "overloaded", false, "InternalServerError", 529.0),
			failure(llmtest.Anthropic, "overloaded", false, "OverloadedError", 529.0),
			failure(llmtest.OpenAI, "no-data", true, "JSONDecodeError", nil),
			failure(llmtest.OpenAI, "midstream", true, "APIError", nil),
			failure(llmtest.Anthropic, "midstream", true, "APIStatusError", 200.0),
			failure(llmtest.OpenAI, "chunk-cut", true, "APIConnectionError", nil),
			failure(llmtest.Anthropic, "chunk-cut", true, "RemoteProtocolError", nil),
		},
	}
	for path, more := range own {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			command := peers.PythonScript
			if path == js {
				command = peers.NodeScript
			}
			runSDK(t, command(t, string(source)), append(sdkCases(), more...))
		})
	}
}

func runSDK(t *testing.T, command []string, cases []sdkCase) {
	t.Helper()
	s := llmtest.New(t, llmtest.ByModel(sdkAnswers))
	s.RequireKey("sk-sdk-key")
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	// No other variable: the SDKs read keys, addresses and proxies from them.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LLMTEST_BASE=" + s.URL, "LLMTEST_CASES=" + string(input)}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command[0], err, stderr.Bytes())
	}
	var got []result
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%d results for %d cases, %v: %s", len(got), len(cases), err, out)
	}
	for i, c := range cases {
		if len(got[i].Tools) == 0 {
			got[i].Tools = nil
		}
		if diff := cmp.Diff(c.want, got[i]); diff != "" {
			t.Errorf("%s %s stream=%v (-want +got):\n%s", c.Wire, c.Model, c.Stream, diff)
		}
	}
	if n := len(s.Journal()); n != len(cases) {
		t.Errorf("the server saw %d requests for %d calls", n, len(cases))
	}
}
