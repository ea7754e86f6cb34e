package spec

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

func TestParseTarget(t *testing.T) {
	tests := []struct {
		text string
		want wire.Target
	}{
		{"mock", wire.Target{Kind: wire.Mock, URI: "mock:healthy", Profile: "healthy"}},
		{"mock:failing", wire.Target{Kind: wire.Mock, URI: "mock:failing", Profile: "failing"}},
		{"https://h/mcp", wire.Target{Kind: wire.MCP, URI: "https://h/mcp", Transport: wire.StreamableHTTP, Endpoint: "https://h/mcp"}},
		{"sse+https://h/sse", wire.Target{Kind: wire.MCP, URI: "sse+https://h/sse", Transport: wire.SSE, Endpoint: "https://h/sse"}},
		{"sse://h:1/sse", wire.Target{Kind: wire.MCP, URI: "sse://h:1/sse", Transport: wire.SSE, Endpoint: "http://h:1/sse"}},
		{"openai:gpt-4o", wire.Target{Kind: wire.OpenAI, URI: "openai:gpt-4o", Model: "gpt-4o"}},
		{"stdio://./server", wire.Target{Kind: wire.MCP, URI: "stdio://./server", Transport: wire.Stdio, Command: []string{"./server"}}},
		{`npx -y "a b" 'c\d' e\ f`, wire.Target{Kind: wire.MCP, URI: `npx -y "a b" 'c\d' e\ f`, Transport: wire.Stdio,
			Command: []string{"npx", "-y", "a b", `c\d`, "e f"}}},
		{"https://u:p@h/mcp?key=S3&mode=a", wire.Target{Kind: wire.MCP, URI: "https://REDACTED@h/mcp?key=REDACTED&mode=REDACTED",
			Transport: wire.StreamableHTTP, Endpoint: "https://u:p@h/mcp?key=S3&mode=a"}},
		{"http-get:http://h:1/a?b=c", wire.Target{Kind: wire.HTTP, URI: "http-get:http://h:1/a?b=REDACTED", Method: "GET", Endpoint: "http://h:1/a?b=c"}},
		{"http-post:https://u:p@h/a", wire.Target{Kind: wire.HTTP, URI: "http-post:https://REDACTED@h/a", Method: "POST", Endpoint: "https://u:p@h/a"}},
	}
	for _, tt := range tests {
		got, err := ParseTarget(tt.text)
		if err != nil {
			t.Errorf("ParseTarget(%q): %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseTarget(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestParseTargetErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "target is empty"},
		{"mock:degarded", "did you mean degraded?"},
		{"openai:", "names no model"},
		{"ftp://h/x", `scheme "ftp" is unknown`},
		{"agent:./a", "scan does not do yet"},
		{`npx "a`, "unclosed double quote"},
		{"https:///mcp", "has no host"},
		{"http://user:s3cret@[bad", "not a valid URL"},
		{"http-get:", "write http-get:http://HOST/PATH"},
		{"http-post:h/s3cret", "write http-post:http://HOST/PATH"},
		{"http-post:ftp://h/x", "write http-post:http://HOST/PATH"},
		{"http-get:https:///x", "has no host"},
		{"http-post:http://user:s3cret@[bad", "not a valid URL"},
	}
	for _, tt := range tests {
		_, err := ParseTarget(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseTarget(%q) = %v, want %q", tt.text, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ParseTarget(%q) shows the password: %v", tt.text, err)
		}
	}
}

func TestValidateFills(t *testing.T) {
	s := Default()
	s.TargetText = "anthropic:m"
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Requests != 5 || s.ScanTimeout != 600*time.Second || s.FaultRatePPB != 200_000_000 {
		t.Errorf("requests %d, scan timeout %v, ppb %d; want 5, 10m0s, 200000000", s.Requests, s.ScanTimeout, s.FaultRatePPB)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	s := Default()
	s.TargetText = "mock"
	s.Probes = []string{"latncy"}
	s.FaultRate = 1.5
	s.MaxRetries = -1
	s.ToolArgs = []byte(`[1]`)
	s.VerifyCount = "a.b"
	s.Target.Headers = []wire.Header{{Name: "A", Value: "b"}}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"did you mean latency?", "--fault-rate is 1.5", "--max-retries is -1", "--tool-args is a JSON array",
		"--tool-args needs --tool", "need --verify-tool", "--header is for http"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	rows := []struct {
		name string
		set  func(*Spec)
		want string
	}{
		{"InfinitePrice", func(s *Spec) { s.PriceIn, s.PriceOut = math.Inf(1), 1 }, "--price-in is +Inf"},
		{"PriceNaN", func(s *Spec) { s.PriceIn, s.PriceOut = 1, math.NaN() }, "--price-out is NaN"},
		{"RateNaN", func(s *Spec) { s.Rate = math.NaN() }, "--rate is NaN"},
		{"InfiniteRate", func(s *Spec) { s.Rate = math.Inf(1) }, "--rate is +Inf"},
		{"FaultRateNaN", func(s *Spec) { s.FaultRate = math.NaN() }, "--fault-rate is NaN"},
		{"MaxInFlight", func(s *Spec) { s.MaxInFlight = 1e6 + 1 }, "--max-in-flight is 1000001"},
		{"Warmup", func(s *Spec) { s.Warmup = 1e6 + 1 }, "--warmup is 1000001"},
		{"ContractCases", func(s *Spec) { s.ContractCases = 1e5 + 1 }, "--contract-cases is 100001"},
		{"ContractTools", func(s *Spec) { s.ContractTools = 1e4 + 1 }, "--contract-tools is 10001"},
		{"StartTimeout", func(s *Spec) { s.Target.StartTimeout = 0 }, "--start-timeout is 0s"},
		{"StrayBrace", func(s *Spec) { s.Tool, s.ToolArgs = "echo", []byte(`{"query":"x"}}`) }, "--tool-args has text after the object at byte 13"},
		{"SecondObject", func(s *Spec) { s.Tool, s.ToolArgs = "echo", []byte(`{} {}`) }, "--tool-args has text after the object"},
		{"KeyForMock", func(s *Spec) { s.Target.APIKey = "${env:K}" }, "--api-key is for openai: and anthropic:"},
		{"PromptForMock", func(s *Spec) { s.Target.Prompt = "hi" }, "--prompt is for openai: and anthropic:"},
		{"ProtocolForMock", func(s *Spec) { s.Target.Protocol = "2025-11-25" }, "--protocol pins a revision of mcp"},
		{"ProtocolForLLM", func(s *Spec) { s.TargetText, s.Target.Protocol = "openai:m", "2025-11-25" }, "--protocol pins a revision of mcp"},
		{"BaseURLForMock", func(s *Spec) { s.Target.Endpoint = "http://h" }, "--base-url is for openai: and anthropic:"},
		{"BaseURLForURL", func(s *Spec) { s.TargetText, s.Target.Endpoint = "http://h/mcp", "http://other" }, "--base-url is for openai: and anthropic:"},
		{"KeyForServer", func(s *Spec) { s.TargetText, s.Target.APIKey = "./server", "k" }, "--api-key is for openai: and anthropic:"},
		{"ToolArgsForLLM", func(s *Spec) { s.TargetText, s.ToolArgs = "openai:m", []byte(`{}`) }, "--tool-args is for mcp and mock"},
		{"ToolForHTTP", func(s *Spec) { s.TargetText, s.Tool = "http-get:http://h", "x" }, "--tool is for mcp and mock"},
		{"ToolArgsForHTTP", func(s *Spec) { s.TargetText, s.ToolArgs = "http-post:http://h", []byte(`{}`) }, "use --body"},
		{"BodyOfAGet", func(s *Spec) { s.TargetText, s.Target.Body = "http-get:http://h", "x" }, "--body is for http-post"},
		{"BodyForMCP", func(s *Spec) { s.TargetText, s.Target.Body = "http://h/mcp", "x" }, "--body is for http-post"},
		{"BaseURLForHTTP", func(s *Spec) { s.TargetText, s.Target.Endpoint = "http-get:http://h", "http://other" }, "--base-url is for openai"},
		{"BehaviorAlone", func(s *Spec) { s.Probes = []string{"behavior"} }, "add fault to --probes"},
		{"BehaviorWithoutChaos", func(s *Spec) { s.Phases = []string{"baseline", "behavior"} }, "chaos to --phases"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := Default()
			s.TargetText = "mock"
			r.set(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v, want %q", err, r.want)
			}
		})
	}
}

func TestValidateHTTP(t *testing.T) {
	s := Default()
	s.TargetText, s.Target.Body, s.Target.Headers = "http-post:http://u:pw@h/x?k=v", `{"a":1}`, []wire.Header{{Name: "X-A", Value: "$A"}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []string{"http", "POST", "http://u:pw@h/x?k=v", "http-post:http://REDACTED@h/x?k=REDACTED"}
	if diff := cmp.Diff(want, []string{string(s.Target.Kind), s.Target.Method, s.Target.Endpoint, s.TargetText}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScanTimeout(t *testing.T) {
	rows := []struct {
		timeout, level, want time.Duration
		requests             int
	}{
		{time.Second, 0, time.Minute, 10},
		{30 * time.Second, 0, 200 * time.Minute, 100},
		{time.Second, time.Minute, 17 * time.Minute, 10},
		{24 * time.Hour, 0, math.MaxInt64, 1e9},
		{24 * time.Hour, time.Minute, math.MaxInt64, 1e9},
		{time.Second, math.MaxInt64, math.MaxInt64, 10},
	}
	for _, r := range rows {
		s := Default()
		s.TargetText, s.Timeout, s.LevelDuration, s.Requests = "mock", r.timeout, r.level, r.requests
		if err := s.Validate(); err != nil || s.ScanTimeout != r.want {
			t.Errorf("timeout %v, %d requests, level %v: scan timeout %v, err %v; want %v", r.timeout, r.requests, r.level, s.ScanTimeout, err, r.want)
		}
	}
}

// The arguments of a report are the ones that were sent, digit for digit.
func TestJSONKeepsIntegers(t *testing.T) {
	s := Default()
	s.TargetText, s.Tool, s.ToolArgs = "mock", "echo", []byte(`{"id":9007199254740993}`)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	raw, err := s.JSON()
	if err != nil || !strings.Contains(string(raw), `{"id":9007199254740993}`) {
		t.Errorf("err %v, spec %s", err, raw)
	}
}

func TestOneOfKeepsShort(t *testing.T) {
	var many []string
	for i := range listed + 1 {
		many = append(many, fmt.Sprintf("word-%c", 'a'+i))
	}
	for _, r := range []struct {
		word  string
		valid []string
		want  string
	}{
		{"wrd-c", many, `unknown key "wrd-c" (did you mean word-c?)`},
		{"wrd-b", many[:2], `unknown key "wrd-b" (did you mean word-b?): want one of word-a, word-b`},
		{"entirely", many[:2], `unknown key "entirely": want one of word-a, word-b`},
	} {
		if err := oneOf("key", r.word, r.valid); err == nil || err.Error() != r.want {
			t.Errorf("%v, want %s", err, r.want)
		}
	}
	if err := oneOf("key", "entirely", many); err == nil || !strings.Contains(err.Error(), "want one of word-a, ") {
		t.Errorf("%v: nothing is near, so all are listed", err)
	}
}

func TestFile(t *testing.T) {
	known := []string{"target", "requests", "header", "env", "tool-args", "probes", "timeout"}
	got, err := File("scan.yaml", []byte(`target: mock:degraded
requests: 40
timeout: 2s
header:
  Authorization: Bearer $TOKEN
env: [A=b, C=d]
tool_args: {query: hello, n: 3}
`), known)
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"target", []string{"mock:degraded"}, 1}, {"requests", []string{"40"}, 2}, {"timeout", []string{"2s"}, 3},
		{"header", []string{"Authorization: Bearer $TOKEN"}, 4}, {"env", []string{"A=b", "C=d"}, 6},
		{"tool-args", []string{`{"n":3,"query":"hello"}`}, 7},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = File("scan.yaml", []byte("reqests: 4\nprobes:\nrequests: 1\nrequests: 2\n"), known)
	for _, want := range []string{`scan.yaml:1: unknown key "reqests" (did you mean requests?)`, "scan.yaml:2: key \"probes\": has no value", "scan.yaml:4: key \"requests\" is given twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"mock", "mock:x", "https://u:p@h/?a=b", `npx "a b"`, `a\`, "sse://", "stdio://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		target, err := ParseTarget(s)
		if err == nil && target.Transport == wire.Stdio && len(target.Command) == 0 {
			t.Errorf("%q parsed to an empty command", s)
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("requests: 40\n"))
	f.Add([]byte("a: &x [1, *x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := File("f", data, []string{"requests", "header", "env"})
		if err != nil {
			return
		}
		for _, s := range settings {
			if s.Key != "requests" && s.Key != "header" && s.Key != "env" {
				t.Errorf("unknown key %q accepted", s.Key)
			}
		}
	})
}
