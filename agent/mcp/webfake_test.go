package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/agent/secret"
	"ordeal/agent/wire"
)

// webFake is a server of the handshake era over HTTP. Hooks replace the answer
// to one method; every request is in the journal.
type webFake struct {
	*httptest.Server
	mu       sync.Mutex
	journal  []webNote
	sessions map[string]bool
	next     int
	before   func(w http.ResponseWriter, r *http.Request) bool // true: answered
	hooks    map[string]func(w http.ResponseWriter, r *http.Request, m rpc)
}

type webNote struct {
	Verb, Method, Session, URI string
	Header                     http.Header
	At                         time.Time
	Body                       string
}

func serve(t testing.TB, hooks map[string]func(http.ResponseWriter, *http.Request, rpc)) *webFake {
	t.Helper()
	f := &webFake{sessions: map[string]bool{}, hooks: hooks}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *webFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m rpc
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	f.journal = append(f.journal, webNote{r.Method, m.Method, r.Header.Get("Mcp-Session-Id"), r.RequestURI, r.Header.Clone(), time.Now(), string(body)})
	f.mu.Unlock()
	if f.before != nil && f.before(w, r) {
		return
	}
	switch r.Method {
	case http.MethodDelete:
		f.mu.Lock()
		delete(f.sessions, r.Header.Get("Mcp-Session-Id"))
		f.mu.Unlock()
		return
	case http.MethodGet:
		if h := f.hooks["GET"]; h != nil {
			h(w, r, m)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if h := f.hooks[m.Method]; h != nil {
		h(w, r, m)
		return
	}
	switch m.Method {
	case "initialize":
		f.mu.Lock()
		f.next++
		id := fmt.Sprintf("session-%d", f.next)
		f.sessions[id] = true
		f.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
		result(w, m, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`, m.Params.Version))
	case "tools/list":
		result(w, m, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		result(w, m, text(m.Params.Arguments["text"]))
	case "ping":
		result(w, m, "{}")
	default:
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
	}
}

func result(w http.ResponseWriter, m rpc, r string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, r)
}

func (f *webFake) seen(verb, method string) []webNote {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []webNote
	for _, n := range f.journal {
		if n.Verb == verb && (method == "" || n.Method == method) {
			all = append(all, n)
		}
	}
	return all
}

func webConfig(endpoint string) mcp.Config {
	return mcp.Config{Transport: wire.StreamableHTTP, Endpoint: endpoint, Redactor: new(secret.Redactor),
		Timeout: 2 * time.Second, StartTimeout: 5 * time.Second, StopGrace: 500 * time.Millisecond, ProbeTimeout: 300 * time.Millisecond}
}

func dialWeb(t testing.TB, f *webFake, change ...func(*mcp.Config)) *server {
	t.Helper()
	cfg := webConfig(f.URL + "/mcp")
	for _, c := range change {
		c(&cfg)
	}
	c, err := mcp.Dial(context.Background(), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return &server{Client: c}
}

// hijack gives a hook the bare connection.
func hijack(w http.ResponseWriter) (net.Conn, *http.ResponseController) {
	c := http.NewResponseController(w)
	conn, _, err := c.Hijack()
	if err != nil {
		panic(err)
	}
	return conn, c
}

func answerWith(status int, header, body string) func(http.ResponseWriter, *http.Request, rpc) {
	return func(w http.ResponseWriter, _ *http.Request, m rpc) {
		for line := range strings.SplitSeq(header, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				w.Header().Add(name, value)
			}
		}
		w.WriteHeader(status)
		io.WriteString(w, strings.ReplaceAll(body, "$ID", string(m.ID)))
	}
}

func unmarshal(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
