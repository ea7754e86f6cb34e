package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/controller/result"
)

// loadTarget is the Go SDK's server with one read-only tool, behind a door that a
// test can hold, and that counts sessions.
type loadTarget struct {
	url string

	mu      sync.Mutex
	opened  int
	deleted int
	calls   int
}

// serveLoad serves a tool that answers as work does. gate, when set, may answer a
// POST of a call itself, and says whether it did.
func serveLoad(t *testing.T, work func(ctx context.Context), gate func(http.ResponseWriter, *http.Request) bool) *loadTarget {
	t.Helper()
	srv := mcp.NewServer(&mcp.Implementation{Name: "loaded", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "search", InputSchema: json.RawMessage(`{"type": "object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	lt := &loadTarget{}
	srv.AddTool(tool, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		lt.mu.Lock()
		lt.calls++
		lt.mu.Unlock()
		if work != nil {
			work(ctx)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lt.count(r)
		if gate != nil && r.Method == http.MethodPost && gate(w, r) {
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	lt.url = s.URL
	return lt
}

func (lt *loadTarget) count(r *http.Request) {
	opens := false
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		opens = bytes.Contains(body, []byte(`"initialize"`))
	}
	lt.mu.Lock()
	defer lt.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
		lt.deleted++
	case opens:
		lt.opened++
	}
}

func (lt *loadTarget) sessions() (opened, deleted, calls int) {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.opened, lt.deleted, lt.calls
}

// crowded is how often a load is sent again on a machine whose other users leave
// our own side too little, which the report says.
const crowded = 6

// load runs a load and returns its document.
func load(t *testing.T, url string, args ...string) (doc *result.Document, err error) {
	t.Helper()
	for range crowded {
		doc, err = scanJSON(t, append([]string{"load", url, "--tool", "search", "--tool-args", `{}`}, args...)...)
		if doc.Load == nil || !level(t, doc).Generator.Saturated {
			break
		}
		t.Logf("sent again: %s", level(t, doc).Why)
	}
	return doc, err
}

// tookTurns answers one call at a time, each in d.
func tookTurns(d time.Duration) func(context.Context) {
	var lock sync.Mutex
	return func(context.Context) {
		lock.Lock()
		defer lock.Unlock()
		time.Sleep(d)
	}
}
