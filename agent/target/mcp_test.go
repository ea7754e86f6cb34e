package target

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
	"ordeal/testdata/peers"
)

// mcpTestTarget has limits that suit a test.
func mcpTestTarget(t wire.Target) wire.Target {
	t.Kind, t.Timeout, t.StartTimeout, t.StopGrace = wire.MCP, 10*time.Second, time.Minute, 2*time.Second
	return t
}

func openTest(t *testing.T, w wire.Target) Target {
	t.Helper()
	open, err := Open(t.Context(), mcpTestTarget(w))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := open.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return open
}

// countingSDK is a server of the official Go SDK behind a handler that counts.
func countingSDK(t *testing.T, seen func(*http.Request)) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1.2"}, &sdk.ServerOptions{Instructions: "ask nicely"})
	s.AddTool(&sdk.Tool{Name: "echo", Description: "says it again", InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web
}

func TestMCPTargetOverHTTP(t *testing.T) {
	t.Setenv("ORDEAL_TEST_TOKEN", "t0psecret-value")
	var mu sync.Mutex
	sessions := map[string]bool{}
	var ended, unauthorized atomic.Int64
	web := countingSDK(t, func(r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0psecret-value" || r.URL.Query().Get("k") != "t0psecret-value" {
			unauthorized.Add(1)
		}
		if r.Method == http.MethodDelete {
			ended.Add(1)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			sessions[id] = true
		}
	})
	m := openTest(t, wire.Target{Transport: wire.StreamableHTTP, Endpoint: web.URL + "?k=${env:ORDEAL_TEST_TOKEN}",
		Headers: []wire.Header{{Name: "Authorization", Value: "Bearer $ORDEAL_TEST_TOKEN"}}})
	survey, err := m.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if survey.Name != "sdk" || survey.Version != "1.2" || survey.ProtocolVersion != mcp.LatestLegacy || survey.Instructions != "ask nicely" ||
		survey.StartupUS <= 0 || len(survey.Tools) != 1 || survey.Tools[0].Name != "echo" || !*survey.Tools[0].ReadOnly || survey.Virtual || len(survey.Notes) > 0 {
		t.Errorf("survey %+v", survey)
	}
	if survey.Tools[0].Args != nil || survey.Tools[0].Required != 0 || survey.Tools[0].Issues != nil {
		t.Errorf("schema-derived fields are set: %+v", survey.Tools[0])
	}
	var wg sync.WaitGroup
	for user := range 4 {
		for range 3 {
			wg.Go(func() {
				s, err := m.Session(t.Context(), user)
				if err != nil {
					t.Error(err)
					return
				}
				x := s.Call(t.Context(), Call{Tool: "echo", Args: json.RawMessage(`{"a":1}`), Keep: true})
				if x.Outcome != metrics.OK || x.Text != `{"a":1}` {
					t.Errorf("call %+v", x)
				}
			})
		}
	}
	wg.Wait()
	if alive, restarted, exit := m.Alive(t.Context()); !alive || restarted || exit != "" {
		t.Errorf("alive %v, restarted %v, exit %q", alive, restarted, exit)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(sessions) != 4 || ended.Load() != 4 || unauthorized.Load() != 0 || m.Virtual() {
		t.Errorf("%d sessions for 4 users, %d ended, %d requests without credentials", len(sessions), ended.Load(), unauthorized.Load())
	}
}

func TestMCPTargetOnStdio(t *testing.T) {
	m := openTest(t, wire.Target{Transport: wire.Stdio, Command: peers.Node(t, "server-everything")})
	survey, err := m.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if survey.Language != "typescript" || len(survey.Tools) < 5 || survey.ProtocolVersion != mcp.LatestLegacy {
		t.Errorf("survey: language %q, %d tools, %s", survey.Language, len(survey.Tools), survey.ProtocolVersion)
	}
	s, err := m.Session(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	call := Call{Tool: "echo", Args: json.RawMessage(`{"message":"hi"}`)}
	if x := s.Call(t.Context(), call); x.Outcome != metrics.OK || x.Text != "" {
		t.Errorf("call %+v", x)
	}
	// The server dies; the next look at it starts another, for the same session.
	pid := childOf(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var x metrics.Exchange
	for range 100 {
		if x = s.Call(t.Context(), call); x.Outcome != metrics.OK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if x.Outcome != metrics.Connection || !strings.Contains(x.Message, "killed") {
		t.Errorf("call on a dead server: %+v", x)
	}
	if alive, restarted, exit := m.Alive(t.Context()); !alive || !restarted || exit != "signal: killed" {
		t.Errorf("alive %v, restarted %v, exit %q", alive, restarted, exit)
	}
	if x := s.Call(t.Context(), call); x.Outcome != metrics.OK {
		t.Errorf("call after the restart %+v", x)
	}
}

// childOf finds the one child process of this test.
func childOf(t *testing.T) int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range tasks {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(raw)) {
			var pid int
			if err := json.Unmarshal([]byte(word), &pid); err != nil || found != 0 {
				t.Fatalf("children %q: want one", raw)
			}
			found = pid
		}
	}
	if found == 0 {
		t.Fatal("no child process")
	}
	return found
}

func TestMCPTargetErrors(t *testing.T) {
	var refused *OpenError
	_, err := Open(t.Context(), mcpTestTarget(wire.Target{Transport: wire.Stdio, Command: []string{"/no/such/server"}}))
	if !errors.As(err, &refused) || refused.Cause.Class != string(mcp.Startup) || refused.Cause.Remedy == "" {
		t.Errorf("no such command: %v", err)
	}
	_, err = Open(t.Context(), mcpTestTarget(wire.Target{Transport: wire.StreamableHTTP, Endpoint: "http://127.0.0.1:1/",
		Headers: []wire.Header{{Name: "A", Value: "$ORDEAL_NOT_SET"}}, Env: []wire.EnvVar{{Name: "B", Value: "${file:/no/such}"}}}))
	if err == nil || !strings.Contains(err.Error(), "header A: ") || !strings.Contains(err.Error(), "environment variable B: ") {
		t.Errorf("unresolved references: %v", err)
	}
}

func TestLanguage(t *testing.T) {
	script := filepath.Join(t.TempDir(), "serve")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env python3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		command []string
		info    mcp.Info
		stderr  string
		want    string
	}{
		{command: []string{"npx", "-y", "thing"}, want: "typescript"},
		{command: []string{"/usr/bin/env", "node", "x"}, want: "typescript"},
		{command: []string{"./dist/index.mjs"}, want: "typescript"},
		{command: []string{"/opt/venv/bin/python3.11", "-m", "x"}, want: "python"},
		{command: []string{"uvx", "x"}, want: "python"},
		{command: []string{script}, want: "python"},
		{command: []string{"go", "run", "."}, want: "go"},
		{command: []string{"/bin/sleep"}, want: ""},
		{info: mcp.Info{Software: "uvicorn"}, want: "python"},
		{info: mcp.Info{Software: "nginx, Express"}, want: "typescript"},
		{stderr: "Traceback (most recent call last):", want: "python"},
		{info: mcp.Info{Name: "thing"}, want: ""},
	}
	for _, tc := range tests {
		if got := language(tc.command, tc.info, tc.stderr); got != tc.want {
			t.Errorf("language(%q, %+v, %q) = %q, want %q", tc.command, tc.info, tc.stderr, got, tc.want)
		}
	}
}
