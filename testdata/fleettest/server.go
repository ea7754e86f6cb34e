package fleettest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBody bounds a request.
const maxBody = 16 << 20

// MCPOptions are the settings of a target.
type MCPOptions struct {
	Latency time.Duration // of every call; SetLatency changes it
}

// Server is an MCP server over Streamable HTTP, of the official Go SDK, in the
// test's process. It has one read-only tool, echo, which answers with its
// argument "message"; scan it with --tool echo --tool-args
// '{"message": "{op_id}"}' to have operations told apart. What it can be switched
// to concerns tools/call alone: sessions and catalogues are always served.
type Server struct {
	*Trace
	URL string // ends in /mcp

	mcp     http.Handler
	latency atomic.Int64 // ns
	status  atomic.Int64 // HTTP status of every call; 0 is none
	limit   tokens
}

const echoSchema = `{"type": "object", "required": ["message"], "properties": {"message": {"type": "string", "minLength": 1, "examples": ["hello"]}}}`

// MCPServer starts a target.
func MCPServer(t testing.TB, opt MCPOptions) *Server {
	t.Helper()
	s := &Server{Trace: newTrace()}
	s.SetLatency(opt.Latency)
	srv := mcp.NewServer(&mcp.Implementation{Name: "fleettest", Version: "1"}, nil)
	srv.AddTool(&mcp.Tool{Name: "echo", Description: "Says it again.", InputSchema: json.RawMessage(echoSchema),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.echo)
	s.mcp = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	h := httptest.NewServer(s)
	s.URL = h.URL + "/mcp"
	t.Cleanup(func() {
		h.CloseClientConnections() // Close alone would wait for streams of clients that are stopped
		h.Close()
		if t.Failed() {
			t.Logf("MCP server: %d calls, %d refused, %d failed, %d operations more than once; per %v: %v", s.Calls(), s.Refused(), s.Failed(), s.Repeated(), Bucket, s.Buckets())
		}
	})
	return s
}

// SetLatency makes calls that arrive from now on take this long.
func (s *Server) SetLatency(d time.Duration) { s.latency.Store(int64(d)) }

// Fail answers every call with an HTTP status, such as 503; 0 ends that.
func (s *Server) Fail(status int) { s.status.Store(int64(status)) }

// Limit lets perSecond calls through, and burst (at least 1) at once after a
// pause; others get 429 with a Retry-After of whole seconds. 0 ends that.
func (s *Server) Limit(perSecond float64, burst int) {
	s.limit.set(perSecond, max(burst, 1), time.Now())
}

// ServeHTTP is for the HTTP server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if op, ok := operation(body); ok {
		s.arrive(op)
		if !s.admit(w) {
			return
		}
	}
	s.mcp.ServeHTTP(w, r)
}

// admit answers a call that is not to be served.
func (s *Server) admit(w http.ResponseWriter) bool {
	if status := int(s.status.Load()); status != 0 {
		s.fail()
		http.Error(w, http.StatusText(status), status)
		return false
	}
	wait, ok := s.limit.take(time.Now())
	if !ok {
		s.refuse()
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		http.Error(w, "slow down", http.StatusTooManyRequests)
	}
	return ok
}

// operation names the operation of a tools/call; false for any other request.
func operation(body []byte) (string, bool) {
	var req struct {
		Method string `json:"method"`
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &req) != nil || req.Method != "tools/call" {
		return "", false
	}
	var args struct {
		Message *string `json:"message"`
	}
	if json.Unmarshal(req.Params.Arguments, &args) != nil || args.Message == nil {
		return string(req.Params.Arguments), true
	}
	return *args.Message, true
}

func (s *Server) echo(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if d := time.Duration(s.latency.Load()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	text := string(req.Params.Arguments)
	if op := struct{ Message *string }{}; json.Unmarshal(req.Params.Arguments, &op) == nil && op.Message != nil {
		text = *op.Message
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}
