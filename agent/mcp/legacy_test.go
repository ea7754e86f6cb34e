package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// sseFake is a server of the older HTTP transport. post answers the POST of a
// tools/call; the reply goes to the stream unless it returns false.
func sseFake(t *testing.T, place string, post func(w http.ResponseWriter, stream chan<- string) bool) *httptest.Server {
	t.Helper()
	stream := make(chan string, 16)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", place)
		http.NewResponseController(w).Flush()
		for {
			select {
			case m := <-stream:
				if m == "end" {
					return
				}
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", m)
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		var m rpc
		_ = json.NewDecoder(r.Body).Decode(&m)
		reply := ""
		switch m.Method {
		case "initialize":
			reply = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"old","version":"1"}}`, "2024-11-05")
		case "ping":
			reply = `{}`
		case "tools/call":
			if post != nil && !post(w, stream) {
				return
			}
			reply = text("hi")
		}
		w.WriteHeader(http.StatusAccepted)
		if reply != "" {
			stream <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, reply)
		}
	})
	web := httptest.NewServer(mux)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web
}

func TestOlderTransport(t *testing.T) {
	refuse := func(status int, header string) func(http.ResponseWriter, chan<- string) bool {
		return func(w http.ResponseWriter, _ chan<- string) bool {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			return false
		}
	}
	tests := []struct {
		name  string
		post  func(http.ResponseWriter, chan<- string) bool
		want  metrics.Outcome
		text  string
		check func(metrics.Exchange) bool
	}{
		{"ok", nil, metrics.OK, "", func(x metrics.Exchange) bool { return x.Text == "hi" && x.Latency > 0 }},
		{"429", refuse(429, "Retry-After: 3"), metrics.RateLimited, "429", func(x metrics.Exchange) bool { return x.RetryAfter == 3*time.Second && x.Executed == metrics.No }},
		{"401", refuse(401, "WWW-Authenticate: Bearer realm=x"), metrics.AuthRequired, "Bearer realm=x", nil},
		{"404", refuse(404, ""), metrics.SessionLost, "", nil},
		{"400", refuse(400, ""), metrics.ProtocolError, "", nil},
		{"500", refuse(500, ""), metrics.ServerError, "", func(x metrics.Exchange) bool { return x.Status == 500 && x.Executed == metrics.Unknown }},
		{"stream ends", func(_ http.ResponseWriter, s chan<- string) bool { s <- "end"; return false }, metrics.Connection, "the event stream ended", nil},
		{"damaged", func(_ http.ResponseWriter, s chan<- string) bool { s <- `{"jsonrpc":"2.0","id":2,"res`; return false }, metrics.InvalidResponse, "damaged frame", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cfg := webConfig(sseFake(t, "/messages?session=1", tc.post).URL + "/sse")
			cfg.Transport = wire.SSE
			c, err := mcp.Dial(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			s, err := c.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			x := say(t, s, "x")
			wantOutcome(t, tc.name, x, tc.want, tc.text)
			if x.Latency > time.Second || tc.check != nil && !tc.check(x) {
				t.Errorf("%+v", x)
			}
			if tc.want == metrics.Connection {
				if _, err := c.Restart(t.Context()); err != nil || !c.Alive(t.Context()) {
					t.Errorf("restart: %v", err)
				}
			}
		})
	}
}

func TestOlderTransportAtStart(t *testing.T) {
	web := sseFake(t, "http://127.0.0.2:7/messages", nil)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/closed" {
			w.WriteHeader(401)
			return
		}
		fmt.Fprint(w, "<html>")
	}))
	defer page.Close()
	for _, tc := range []struct {
		url   string
		class mcp.StartClass
		text  string
	}{
		{web.URL + "/sse", mcp.NotMCP, "another origin"},
		{page.URL, mcp.NotMCP, "HTML"},
		{page.URL + "/closed", mcp.AuthRequired, "401"},
		{"http://127.0.0.1:1/sse", mcp.Unreachable, "refused"},
		{"ftp://127.0.0.1/sse", mcp.Unreachable, "no http or https URL"},
	} {
		cfg := webConfig(tc.url)
		cfg.Transport = wire.SSE
		_, err := mcp.Dial(t.Context(), cfg)
		var start *mcp.StartError
		if !errors.As(err, &start) || start.Class != tc.class || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", tc.url, err)
		}
	}
}
