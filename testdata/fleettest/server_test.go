package fleettest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a client of the official SDK.
func session(t *testing.T, s *Server) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

func call(ctx context.Context, cs *mcp.ClientSession, message string) (string, error) {
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]string{"message": message}})
	if err != nil {
		return "", err
	}
	return res.Content[0].(*mcp.TextContent).Text, nil
}

func TestServerEchoesAndTraces(t *testing.T) {
	s := MCPServer(t, MCPOptions{Latency: 30 * time.Millisecond})
	cs := session(t, s)
	tools, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || !tools.Tools[0].Annotations.ReadOnlyHint {
		t.Fatalf("tools %+v, %v; want one that only reads", tools, err)
	}
	if s.Calls() != 0 {
		t.Errorf("%d calls before the first", s.Calls())
	}
	begin := s.Now()
	for _, op := range []string{"a", "b", "a"} {
		if got, err := call(t.Context(), cs, op); got != op || err != nil {
			t.Errorf("echo %q, %v; want %q", got, err, op)
		}
	}
	end := s.Now()
	if took := end - begin; took < 90*time.Millisecond {
		t.Errorf("three calls of 30ms took %v", took)
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 1}, s.Seen()); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	last, ok := s.Last()
	if s.Repeated() != 1 || s.Between(begin, end) != 3 || s.Between(end, s.Now()) != 0 || !ok || last > end-30*time.Millisecond {
		t.Errorf("repeated %d, %d calls in all, last at %v of %v", s.Repeated(), s.Between(begin, end), last, end)
	}
	s.SetLatency(0)
	begin = s.Now()
	if _, err := call(t.Context(), cs, "fast"); err != nil {
		t.Error(err)
	}
	if s.Calls() != 4 || s.Rate(begin, begin+2*time.Second) != 0.5 {
		t.Errorf("%d calls, rate %v; want 4 and 0.5", s.Calls(), s.Rate(begin, begin+2*time.Second))
	}
}

func TestTraceBuckets(t *testing.T) {
	tr := newTrace()
	tr.arrivals = []time.Duration{0, 99 * time.Millisecond, 100 * time.Millisecond, 350 * time.Millisecond}
	if diff := cmp.Diff([]int{2, 1, 0, 1}, tr.Buckets()); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
	if got := tr.At(tr.began.Add(time.Second)); got != time.Second {
		t.Errorf("a second after the beginning is %v", got)
	}
}

func TestServerFails(t *testing.T) {
	s := MCPServer(t, MCPOptions{})
	cs := session(t, s)
	s.Fail(http.StatusServiceUnavailable)
	if got, err := call(t.Context(), cs, "a"); err == nil {
		t.Errorf("answered %q", got)
	}
	s.Fail(0)
	if got, err := call(t.Context(), cs, "b"); got != "b" || err != nil {
		t.Errorf("echo %q, %v after the failure", got, err)
	}
	if s.Calls() != 2 || s.Failed() != 1 {
		t.Errorf("%d calls, %d failed; want 2 and 1", s.Calls(), s.Failed())
	}
}

// TestServerLimits calls as fast as it can for a while: no more is served than
// the rate and the burst allow, and not much less. (A busy machine may not call
// when a token is there; TestTokens counts them.)
func TestServerLimits(t *testing.T) {
	const rate, burst = 50, 10
	s := MCPServer(t, MCPOptions{})
	cs := session(t, s)
	s.Limit(rate, burst)
	start := time.Now()
	served := 0
	for time.Since(start) < 800*time.Millisecond {
		if _, err := call(t.Context(), cs, "a"); err == nil {
			served++
		}
	}
	allowed := burst + rate*time.Since(start).Seconds()
	if float64(served) > allowed || served < burst {
		t.Errorf("%d served, want %.1f at the most", served, allowed)
	}
	if refused := s.Refused(); refused == 0 || refused != s.Calls()-served {
		t.Errorf("%d refused of %d, %d served", refused, s.Calls(), served)
	}
	s.Limit(0, 0)
	if _, err := call(t.Context(), cs, "a"); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestRefusalSaysWhenToComeBack(t *testing.T) {
	s := MCPServer(t, MCPOptions{})
	s.Limit(0.25, 1)
	post := func() *http.Response {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"a"}}}`
		res, err := http.Post(s.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	if first := post(); first.StatusCode == http.StatusTooManyRequests {
		t.Error("the first call was refused")
	}
	res := post()
	after, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if res.StatusCode != http.StatusTooManyRequests || after != 4 || err != nil {
		t.Errorf("status %d, Retry-After %q; want 429 and 4 s", res.StatusCode, res.Header.Get("Retry-After"))
	}
}

func TestTokens(t *testing.T) {
	var b tokens
	now := time.Unix(0, 0)
	if _, ok := b.take(now); !ok {
		t.Error("the zero value refuses")
	}
	b.set(2, 3, now)
	for i, tc := range []struct {
		after time.Duration
		ok    bool
		wait  time.Duration
	}{
		{0, true, 0}, {0, true, 0}, {0, true, 0}, {0, false, 500 * time.Millisecond},
		{250 * time.Millisecond, false, 250 * time.Millisecond},
		{250 * time.Millisecond, true, 0}, {0, false, 500 * time.Millisecond},
		{time.Hour, true, 0}, {0, true, 0}, {0, true, 0}, {0, false, 500 * time.Millisecond},
	} {
		now = now.Add(tc.after)
		if wait, ok := b.take(now); ok != tc.ok || wait != tc.wait {
			t.Errorf("take %d: %v, %v; want %v, %v", i, wait, ok, tc.wait, tc.ok)
		}
	}
}
