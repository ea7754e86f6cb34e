package llm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ordeal/agent/llm"
	"ordeal/agent/llm/llmtest"
	"ordeal/agent/secret"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

func TestRequest(t *testing.T) {
	want := map[llm.Wire]string{
		llm.OpenAI:    `{"model":"test-model","stream":true,"max_tokens":7,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"say \"hi\""}]}`,
		llm.Anthropic: `{"model":"test-model","stream":true,"max_tokens":7,"messages":[{"role":"user","content":"say \"hi\""}]}`,
	}
	for _, w := range bothWires {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
		c := dial(t, s, w, func(cfg *llm.Config) {
			cfg.Prompts, cfg.MaxTokens = []string{`say "hi"`}, 7
			cfg.Header = http.Header{"x-team": {"blue"}, "User-Agent": {"mine"}}
		})
		c.Chat(context.Background(), 0)
		e := s.Journal()[0]
		if diff := cmp.Diff(want[w], string(e.Body)); diff != "" {
			t.Errorf("%s: body (-want +got):\n%s", w, diff)
		}
		if e.Header.Get("X-Team") != "blue" || e.Header.Get("User-Agent") != "mine" || e.Header.Get("Content-Type") != "application/json" || e.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s: headers %v", w, e.Header)
		}
		key := map[llm.Wire][2]string{llm.OpenAI: {"Authorization", "Bearer sk-test-0123456789"}, llm.Anthropic: {"X-Api-Key", "sk-test-0123456789"}}[w]
		if e.Header.Get(key[0]) != key[1] {
			t.Errorf("%s: %s is %q", w, key[0], e.Header.Get(key[0]))
		}
	}
}

func TestPromptsByOperation(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	c := dial(t, s, llm.OpenAI, func(cfg *llm.Config) { cfg.Prompts = []string{"short", strings.Repeat("long ", 40), "三"} })
	var tokens []int64
	for op := range uint64(7) {
		tokens = append(tokens, c.Chat(context.Background(), op).TokensIn)
	}
	if diff := cmp.Diff([]int64{2, 50, 1, 2, 50, 1, 2}, tokens); diff != "" {
		t.Errorf("input tokens (-want +got):\n%s", diff)
	}
	if got := s.Journal()[5].Prompt; got != "三" {
		t.Errorf("operation 5 sent %q", got)
	}
}

// A base URL keeps its query to the byte, and no secret of it comes back in a
// message, whatever the server does with it.
func TestSecretsStayOut(t *testing.T) {
	const query = "api_key=S3CRET%2Bx&mode=a&mode=b"
	echo := func(r llmtest.Request) llmtest.Answer {
		leak := fmt.Sprintf("%s %s %s %s", r.Path, r.Header.Get("X-Team-Key"), r.Header.Get("Authorization"), base64.StdEncoding.EncodeToString([]byte("H3ADER-value")))
		return llmtest.Answer{Status: 500, Error: &llmtest.APIError{Type: "server_error", Message: leak}}
	}
	s := llmtest.New(t, echo)
	redact := new(secret.Redactor)
	redact.Add("H3ADER-value")
	c := dial(t, s, llm.OpenAI, func(cfg *llm.Config) {
		cfg.Base = strings.Replace(s.URL, "http://", "http://us3r:p4ssw0rd@", 1) + "/v1/?" + query
		cfg.Header, cfg.Redact, cfg.Key = http.Header{"X-Team-Key": {"H3ADER-value"}}, redact, ""
	})
	got := c.Chat(context.Background(), 0)
	e := s.Journal()[0]
	if e.Path != "/v1/chat/completions?"+query {
		t.Errorf("path on the wire: %s", e.Path)
	}
	if user, pass, ok := (&http.Request{Header: e.Header}).BasicAuth(); !ok || user != "us3r" || pass != "p4ssw0rd" {
		t.Errorf("basic auth %q %q %v", user, pass, ok)
	}
	all := got.Message + strings.Join(got.Notes, "")
	for _, leak := range []string{"S3CRET", "H3ADER", "p4ssw0rd", base64.StdEncoding.EncodeToString([]byte("us3r:p4ssw0rd")), "SDNBREVSLXZhbHVl"} {
		if strings.Contains(all, leak) {
			t.Errorf("%q in the message: %s", leak, all)
		}
	}
	if got.Outcome != metrics.ServerError || !strings.Contains(all, "[redacted]") {
		t.Errorf("got %v %q", got.Outcome, all)
	}
}

func TestServersThatDoNotKnowAField(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	s.Reject("stream_options")
	c := dial(t, s, llm.OpenAI, nil)
	first, second := c.Chat(context.Background(), 0), c.Chat(context.Background(), 1)
	if first.Outcome != metrics.ProtocolError || len(first.Notes) != 1 || second.Outcome != metrics.OK || second.Usage {
		t.Errorf("stream_options: got %v %q, then %v, usage %v", first.Outcome, first.Notes, second.Outcome, second.Usage)
	}
	s.Reject("max_tokens")
	third, fourth := c.Chat(context.Background(), 2), c.Chat(context.Background(), 3)
	if third.Outcome != metrics.ProtocolError || len(third.Notes) != 1 || fourth.Outcome != metrics.OK {
		t.Errorf("max_tokens: got %v %q, then %v", third.Outcome, third.Notes, fourth.Outcome)
	}
	if e := s.Journal(); len(e) != 4 || !bytes.Contains(e[3].Body, []byte(`"max_completion_tokens":256`)) || e[3].MaxTokens != 256 {
		t.Errorf("%d requests, the last %s", len(e), e[len(e)-1].Body)
	}
}

// A server that closes a kept connection just as it is used again: net/http
// would repeat the request on a fresh one. The call must fail, or be the only
// one the server sees.
func TestNoHiddenRetry(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var requests atomic.Int32
	go serveThenClose(listener, &requests)
	c, err := llm.New(llm.Config{Wire: llm.OpenAI, Base: "http://" + listener.Addr().String(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := c.Chat(context.Background(), 0)
	second := c.Chat(context.Background(), 1)
	if first.Outcome != metrics.OK || second.Outcome != metrics.Connection || second.Delivered {
		t.Errorf("got %v, then %v %q", first.Outcome, second.Outcome, second.Message)
	}
	if !strings.Contains(second.Message, "as it was used again") {
		t.Errorf("message %q does not say that the connection was an old one", second.Message)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the server saw %d requests for 2 calls", n)
	}
}

// serveThenClose answers the first request of a connection and keeps it open,
// reads the second and closes without a word. It serves connections one by one.
func serveThenClose(listener net.Listener, requests *atomic.Int32) {
	const answer = `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		in := bufio.NewReader(conn)
		for n := range 2 {
			req, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			io.Copy(io.Discard, req.Body)
			requests.Add(1)
			if n == 0 {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			}
		}
		conn.Close()
	}
}

func TestConnectionRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	listener.Close()
	c, err := llm.New(llm.Config{Wire: llm.Anthropic, Base: base, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Chat(context.Background(), 0)
	if got.Outcome != metrics.Connection || got.Executed != metrics.No || got.Delivered || !strings.Contains(got.Message, "refused") {
		t.Errorf("got %v executed %v %q", got.Outcome, got.Executed, got.Message)
	}
	if c.Alive(context.Background()) {
		t.Error("alive without a server")
	}
}

func TestAlive(t *testing.T) {
	for _, w := range bothWires {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
		s.RequireKey("another key")
		c := dial(t, s, w, nil)
		if !c.Alive(context.Background()) {
			t.Errorf("%s: a server that answers 401 lives", w)
		}
		if n := len(s.Journal()); n != 0 {
			t.Errorf("%s: the check cost %d model calls", w, n)
		}
	}
}

func TestAliveByStatus(t *testing.T) {
	for status, want := range map[int]bool{200: true, 401: true, 404: true, 405: true, 500: true, 502: false, 503: false, 504: false} {
		answer := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		})
		c, err := llm.New(llm.Config{Wire: llm.OpenAI, Model: "m", Transport: answer})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Alive(context.Background()); got != want {
			t.Errorf("status %d: alive %v, want %v", status, got, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What this machine lacks is no failure of the target.
func TestOurOwnFailures(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		fail := roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		})
		c, err := llm.New(llm.Config{Wire: llm.OpenAI, Model: "m", Transport: fail})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Chat(context.Background(), 0); got.Outcome != metrics.HarnessError || got.Origin != metrics.FromGenerator || got.Executed != metrics.No {
			t.Errorf("%v: got %v from %v, executed %v", errno, got.Outcome, got.Origin, got.Executed)
		}
	}
}

// Usage arrives in parts on the Anthropic wire; a later part changes only the
// fields it names.
func TestUsageInParts(t *testing.T) {
	const stream = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"x\"}}\n\n" +
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":11,\"cache_read_input_tokens\":null,\"output_tokens\":9}}\n\n" +
		"data: {\"type\":\"message_stop\"}\n\n"
	answer := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream))}, nil
	})
	c, err := llm.New(llm.Config{Wire: llm.Anthropic, Model: "m", Transport: answer})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Chat(context.Background(), 0)
	if diff := cmp.Diff([]int64{18, 9, 5}, []int64{got.TokensIn, got.TokensOut, got.CachedIn}); diff != "" || got.Outcome != metrics.OK {
		t.Errorf("%v %s: input, output, cached (-want +got):\n%s", got.Outcome, got.Message, diff)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	for _, w := range bothWires {
		var conns atomic.Int32
		s := llmtest.New(t, llmtest.ByModel(map[string]llmtest.Answer{"test-model": {}}))
		dialer := &net.Dialer{}
		transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conns.Add(1)
			return dialer.DialContext(ctx, network, addr)
		}}
		defer transport.CloseIdleConnections()
		c := dial(t, s, w, func(cfg *llm.Config) { cfg.Transport = transport })
		for op := range uint64(20) {
			if r := c.Chat(context.Background(), op); r.Outcome != metrics.OK {
				t.Fatal(r.Message)
			}
		}
		if n := conns.Load(); n != 1 {
			t.Errorf("%s: 20 calls in a row took %d connections", w, n)
		}
	}
}

// The providers speak HTTP/2, where a stream can be cut and its connection live on.
func TestHTTP2(t *testing.T) {
	plan := llmtest.ByModel(map[string]llmtest.Answer{"good": {Text: fiveTokens}, "cut": {Text: fiveTokens, Fault: llmtest.ChunkCut, After: 3}, "limited": {Status: 429}})
	server := httptest.NewUnstartedServer(llmtest.NewHandler(plan))
	server.EnableHTTP2 = true
	protocols := make(chan string, 8)
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols <- r.Proto + " " + r.RemoteAddr
		inner.ServeHTTP(w, r)
	})
	server.StartTLS()
	defer server.Close()
	var got []metrics.Outcome
	seen := map[string]bool{}
	transport := server.Client().Transport // trusts the server's certificate
	for _, model := range []string{"good", "cut", "limited", "good"} {
		c, err := llm.New(llm.Config{Wire: llm.OpenAI, Base: server.URL + "/v1", Model: model, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Chat(context.Background(), 0)
		got = append(got, r.Outcome)
		if r.Truncated != (model == "cut") {
			t.Errorf("%s: truncated %v", model, r.Truncated)
		}
		seen[<-protocols] = true
	}
	want := []metrics.Outcome{metrics.OK, metrics.Connection, metrics.RateLimited, metrics.OK}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	for p := range seen {
		if len(seen) != 1 || !strings.HasPrefix(p, "HTTP/2.0") {
			t.Errorf("connections: %v, want one of HTTP/2.0", seen)
		}
	}
}

func TestOwnTransportSpeaksHTTP2(t *testing.T) {
	protocol := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol <- r.Proto
		llmtest.NewHandler(llmtest.Always(llmtest.Answer{})).ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one handshake is meant to break off
	server.StartTLS()
	defer server.Close()
	for _, insecure := range []bool{false, true} {
		c, err := llm.New(llm.Config{Wire: llm.Anthropic, Base: server.URL, Model: "m", Insecure: insecure})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Chat(context.Background(), 0)
		c.Close()
		switch {
		case !insecure && (r.Outcome != metrics.Connection || !strings.Contains(r.Message, "certificate") || r.Executed != metrics.No):
			t.Errorf("unknown certificate: %v %q, executed %v", r.Outcome, r.Message, r.Executed)
		case insecure && (r.Outcome != metrics.OK || <-protocol != "HTTP/2.0"):
			t.Errorf("insecure: %v %q", r.Outcome, r.Message)
		}
	}
}

func TestBounds(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(4500)}))
	wide := func(cfg *llm.Config) { cfg.MaxTokens = 10_000 }
	if r := dial(t, s, llm.Anthropic, wide).Chat(context.Background(), 0); len(r.Gaps) != 4096 || len(r.Notes) != 1 || r.TokensOut != 4500 {
		t.Errorf("got %d gaps, %d tokens, notes %q", len(r.Gaps), r.TokensOut, r.Notes)
	}
	for _, fault := range []llmtest.Fault{llmtest.NoFault, llmtest.JSONBody} {
		s := llmtest.New(t, llmtest.Always(llmtest.Answer{Text: llmtest.Tokens(1000), Fault: fault}))
		r := dial(t, s, llm.OpenAI, func(cfg *llm.Config) { cfg.MaxTokens, cfg.MaxAnswer = 10_000, 5_000 }).Chat(context.Background(), 0)
		if r.Outcome != metrics.InvalidResponse || !strings.Contains(r.Message, "larger than 5000 bytes") || r.BytesIn > 5_000 {
			t.Errorf("%q: got %v %q, %d bytes", fault, r.Outcome, r.Message, r.BytesIn)
		}
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := llm.New(llm.Config{Wire: "grpc", Tools: json.RawMessage("{"), Timeout: -time.Second})
	for _, want := range []string{`unknown wire "grpc"`, "no model", "tools are not JSON", "a limit is negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	for _, base := range []string{"api.example.com", "ftp://x", "http:///v1", "http://a b"} {
		if _, err := llm.New(llm.Config{Wire: llm.OpenAI, Model: "m", Base: base}); err == nil || strings.Contains(err.Error(), base) {
			t.Errorf("base %q: error %v", base, err)
		}
	}
}

func TestAnthropicBaseWithVersion(t *testing.T) {
	s := llmtest.New(t, llmtest.Always(llmtest.Answer{}))
	c := dial(t, s, llm.Anthropic, func(cfg *llm.Config) { cfg.Base = s.URL + "/v1/" })
	if r := c.Chat(context.Background(), 0); r.Outcome != metrics.OK {
		t.Errorf("got %v %s", r.Outcome, r.Message)
	}
}
