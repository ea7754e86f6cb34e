package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

// stub answers as fast as net/http can, so that the client is what is measured.
func stub(events bool) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(body, &m)
		var result string
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "s")
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"hello there"}]}`
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if events && m.Method == "tools/call" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
}

var benchArgs = json.RawMessage(`{"text":"hello there"}`)

func benchOurs(b *testing.B, cfg mcp.Config) {
	cfg.Protocol = mcp.LatestLegacy
	c, err := mcp.Dial(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	s, err := c.NewSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if x := s.Call(context.Background(), "echo", benchArgs, false); x.Outcome != metrics.OK {
			b.Fatal(x.Outcome, x.Message)
		}
	}
}

func benchSDK(b *testing.B, t sdk.Transport) {
	client := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := client.Connect(b.Context(), t, &sdk.ClientSessionOptions{ProtocolVersion: mcp.LatestLegacy})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: benchArgs}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHTTP(b *testing.B) {
	for name, events := range map[string]bool{"json": false, "sse": true} {
		web := stub(events)
		b.Run(name+"/ours", func(b *testing.B) { benchOurs(b, webConfig(web.URL)) })
		b.Run(name+"/sdk", func(b *testing.B) {
			benchSDK(b, &sdk.StreamableClientTransport{Endpoint: web.URL, DisableStandaloneSSE: true})
		})
		web.Close()
	}
}

func BenchmarkStdio(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		cfg, _ := fakeConfig(b, "bench")
		benchOurs(b, cfg)
	})
	b.Run("sdk", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "ORDEAL_FAKE=bench")
		benchSDK(b, &sdk.CommandTransport{Command: cmd})
	})
}

// bench is the fastest server on stdio: it finds the id and answers.
func (f *fake) bench() {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		_, rest, found := strings.Cut(line, `"id":`)
		if !found {
			continue
		}
		id, _, _ := strings.Cut(rest, ",")
		id = strings.TrimRight(strings.TrimSpace(id), "}")
		result := `{"content":[{"type":"text","text":"hello there"}]}`
		if strings.Contains(line, `"method":"initialize"`) {
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		out.Flush()
	}
}
