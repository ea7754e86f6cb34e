package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
	"ordeal/testdata/peers"
)

// peer is a server of others and a call that works there.
type peer struct {
	name, tool, args string
	want             string // part of the answer
	tools            []string
}

func checkPeer(t *testing.T, cfg mcp.Config, p peer, protocol string) {
	t.Helper()
	cfg.Timeout, cfg.StartTimeout, cfg.StopGrace = 20*time.Second, 60*time.Second, 3*time.Second
	c, err := mcp.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if info := c.Info(); info.Protocol != protocol || info.Name == "" || info.Capabilities == nil {
		t.Errorf("info %+v, want protocol %s", info, protocol)
	}
	s, err := c.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools, found, err := s.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if !json.Valid(tool.InputSchema) {
			t.Errorf("tool %s: schema %s", tool.Name, tool.InputSchema)
		}
	}
	for _, want := range append(p.tools, p.tool) {
		if !slices.Contains(names, want) {
			t.Errorf("no tool %s in %q", want, names)
		}
	}
	for range 3 {
		x := s.Call(t.Context(), p.tool, json.RawMessage(p.args), true)
		if x.Outcome != metrics.OK || !strings.Contains(x.Text, p.want) || x.Executed != metrics.Yes || x.Latency <= 0 || x.BytesIn == 0 {
			t.Errorf("call: %+v", x)
		}
		if len(x.Notes) > 0 {
			t.Errorf("notes %q", x.Notes)
		}
	}
	x := s.Call(t.Context(), "no-such-tool", nil, false)
	if x.Outcome != metrics.ProtocolError && x.Outcome != metrics.ToolError {
		t.Errorf("unknown tool: %+v", x)
	}
	if !c.Alive(t.Context()) {
		t.Error("not alive")
	}
	if len(found) > 0 {
		t.Errorf("catalogue: %q", found)
	}
	report := c.Close(context.Background())
	if cfg.Transport == wire.Stdio && (report.Step == "" || report.Step == "sigkill" || report.Step == "survived") {
		t.Errorf("shut-down %+v", report)
	}
	t.Logf("%s %s, start %v, call %v, shut-down %+v, notes %q", c.Info().Name, c.Info().Protocol, c.Info().Startup.Round(time.Millisecond), x.Latency, report, c.Notes())
}

func TestPeersOnStdio(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("good morning"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first light"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	quote := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }
	tests := []struct {
		peer
		command  []string
		env      []wire.EnvVar
		protocol string
	}{
		{peer{"server-everything", "echo", `{"message":"hi there"}`, "hi there", []string{"get-sum"}},
			peers.Node(t, "server-everything"), nil, mcp.LatestLegacy},
		{peer{"server-filesystem", "read_text_file", `{"path":` + quote(filepath.Join(dir, "hello.txt")) + `}`, "good morning", []string{"list_directory"}},
			append(peers.Node(t, "server-filesystem"), dir), nil, mcp.LatestLegacy},
		{peer{"server-memory", "read_graph", `{}`, "entities", []string{"search_nodes"}},
			peers.Node(t, "server-memory"), []wire.EnvVar{{Name: "MEMORY_FILE_PATH", Value: filepath.Join(dir, "memory.json")}}, mcp.LatestLegacy},
		{peer{"mcp-server-git", "git_log", `{"repo_path":` + quote(repo) + `}`, "first light", []string{"git_status"}},
			append(peers.Python(t, "mcp-server-git"), "--repository", repo), nil, mcp.Stateless},
		{peer{"mcp-server-time", "get_current_time", `{"timezone":"Europe/Warsaw"}`, "Europe/Warsaw", []string{"convert_time"}},
			append(peers.Python(t, "mcp-server-time"), "--local-timezone", "UTC"), nil, mcp.Stateless},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			checkPeer(t, mcp.Config{Transport: wire.Stdio, Command: tc.command, Env: tc.env}, tc.peer, tc.protocol)
		})
	}
}

// freePort is free at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestEverythingOverHTTP(t *testing.T) {
	for mode, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(mode, func(t *testing.T) {
			port := freePort(t)
			runPeer(t, append(peers.Node(t, "server-everything"), mode), []string{fmt.Sprint("PORT=", port)})
			awaitPort(t, port)
			cfg := mcp.Config{Transport: wire.StreamableHTTP, Endpoint: fmt.Sprintf("http://127.0.0.1:%d%s", port, path)}
			if mode == "sse" {
				cfg.Transport = wire.SSE
			}
			checkPeer(t, cfg, peer{"server-everything", "echo", `{"message":"hi there"}`, "hi there", nil}, mcp.LatestLegacy)
		})
	}
}

// pythonServer is a server of the official Python SDK, over all three transports
// and in both eras. Its tool has a name that does not fit a header.
const pythonServer = `
import sys
from mcp.server import MCPServer

server = MCPServer("snake")

@server.tool(name="powitanie-żółw")
def greet(text: str) -> str:
    return "witaj " + text

@server.tool()
def fail() -> str:
    raise ValueError("no luck")

port = int(sys.argv[2])
args = {} if sys.argv[1] == "stdio" else {"host": "127.0.0.1", "port": port}
if sys.argv[1] == "streamable-http":
    args["json_response"] = sys.argv[3] == "json"
server.run(transport=sys.argv[1], **args)
`

func TestPythonSDKOverHTTP(t *testing.T) {
	for _, tc := range []struct{ transport, form, pinned, want, path string }{
		{"streamable-http", "json", "", mcp.Stateless, "/mcp"},
		{"streamable-http", "sse", "", mcp.Stateless, "/mcp"},
		{"streamable-http", "sse", mcp.LatestLegacy, mcp.LatestLegacy, "/mcp"},
		{"sse", "", "", mcp.LatestLegacy, "/sse"},
	} {
		t.Run(tc.transport+" "+tc.form+" "+tc.pinned, func(t *testing.T) {
			port := freePort(t)
			runPeer(t, append(peers.PythonScript(t, pythonServer), tc.transport, fmt.Sprint(port), tc.form), nil)
			awaitPort(t, port)
			cfg := mcp.Config{Transport: wire.StreamableHTTP, Endpoint: fmt.Sprintf("http://127.0.0.1:%d%s", port, tc.path), Protocol: tc.pinned}
			if tc.transport == "sse" {
				cfg.Transport = wire.SSE
			}
			checkPeer(t, cfg, peer{"snake", "powitanie-żółw", `{"text":"świecie"}`, "witaj świecie", []string{"fail"}}, tc.want)
		})
	}
}

// runPeer starts a server of others and ends it with its children.
func runPeer(t *testing.T, args, env []string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if mcp.GroupAlive(cmd.Process.Pid) {
			t.Error("server is still there")
		}
	})
}

func awaitPort(t *testing.T, port int) {
	t.Helper()
	for range 600 {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing listens on port %d", port)
}

// sdkServer is a server of the official Go SDK. Tool region repeats an argument
// as a header.
func sdkServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil
		})
	s.AddTool(&sdk.Tool{Name: "slow", InputSchema: json.RawMessage(`{"type":"object","properties":{"where":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}},"n":{"type":"integer","x-mcp-header":"N"}}}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "slow"}}}, nil
		})
	return s
}

func sdkHandler(stateless, jsonAnswers bool) http.Handler {
	s := sdkServer()
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless, JSONResponse: jsonAnswers})
}

func TestGoSDKServer(t *testing.T) {
	for _, tc := range []struct {
		stateless, json bool
		pinned, want    string
	}{
		{false, false, "", mcp.LatestLegacy}, {false, true, "", mcp.LatestLegacy},
		{true, false, "", mcp.Stateless}, {true, true, "", mcp.Stateless},
		{true, true, "2025-06-18", "2025-06-18"}, {false, false, "2024-11-05", "2024-11-05"},
	} {
		t.Run(fmt.Sprintf("stateless=%v,json=%v,pinned=%s", tc.stateless, tc.json, tc.pinned), func(t *testing.T) {
			web := httptest.NewServer(sdkHandler(tc.stateless, tc.json))
			defer web.Close()
			cfg := webConfig(web.URL)
			cfg.Protocol = tc.pinned
			checkPeer(t, cfg, peer{"sdk", "echo", `{"text":"hi\nthere"}`, "hi\nthere", nil}, tc.want)
			c, err := mcp.Dial(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(context.Background())
			s, err := c.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.ListTools(t.Context()); err != nil {
				t.Fatal(err)
			}
			// Arguments that must be repeated, encoded, in headers.
			x := s.Call(t.Context(), "slow", json.RawMessage(`{"where":{"region":" łódź "},"n":42}`), true)
			if x.Outcome != metrics.OK || x.Text != "slow" {
				t.Errorf("headers from arguments: %+v", x)
			}
		})
	}
}

func TestGoSDKServerOnSSE(t *testing.T) {
	s := sdkServer()
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	defer web.CloseClientConnections()
	cfg := webConfig(web.URL)
	cfg.Transport = wire.SSE
	checkPeer(t, cfg, peer{"sdk", "echo", `{"text":"hi"}`, "hi", nil}, mcp.LatestLegacy)
}

// Every goroutine of a client ends with it.
func TestNoGoroutineIsLeft(t *testing.T) {
	web := httptest.NewServer(sdkHandler(false, false))
	defer web.Close()
	before := runtime.NumGoroutine()
	for range 5 {
		for _, cfg := range []mcp.Config{webConfig(web.URL), func() mcp.Config { c, _ := fakeConfig(t, "asks"); return c }()} {
			cfg.Timeout = 100 * time.Millisecond
			c, err := mcp.Dial(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			say(t, s, "ping")
			c.Close(context.Background())
		}
	}
	web.CloseClientConnections()
	after := 0
	for range 100 {
		if after = runtime.NumGoroutine(); after <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
}
