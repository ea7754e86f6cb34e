package mcp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

const okReply = `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hi"}]}}`

func TestAnswersOverHTTP(t *testing.T) {
	const js, ev = "Content-Type: application/json", "Content-Type: text/event-stream"
	zip := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, s)
		z.Close()
		return b.String()
	}
	tests := []struct {
		name, header, body string
		status             int
		want               metrics.Outcome
		message, note      string
		check              func(metrics.Exchange) bool
	}{
		{"JSON", js, okReply, 200, metrics.OK, "", "", func(x metrics.Exchange) bool {
			return x.Executed == metrics.Yes && x.Delivered && x.Status == 200 && x.Text == "hi" && x.BytesIn > 50 && x.BytesOut > 50 && x.FirstByte > 0 && x.Latency >= x.FirstByte
		}},
		{"SSE", ev, "event: message\ndata: " + okReply + "\n\n", 200, metrics.OK, "", "", nil},
		{"SSE, second event is ours", ev, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: " + okReply + "\n\n", 200, metrics.OK, "", "", nil},
		{"SSE, bad event before ours", ev, "data: {\"jsonrpc\n\ndata: " + okReply + "\n\n", 200, metrics.OK, "", "no JSON-RPC message", nil},
		{"server timing", js + "\nServer-Timing: db;dur=1.5, total;dur=12.25", okReply, 200, metrics.OK, "", "",
			func(x metrics.Exchange) bool { return x.ServerTime == 12250*time.Microsecond }},
		{"quota announced", js + "\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 5", okReply, 200, metrics.OK, "", "",
			func(x metrics.Exchange) bool { return x.Quota == "header" && x.QuotaLimit == 60 }},
		{"bad gateway page", "Content-Type: text/html", strings.Repeat("<p>502</p>", 4000), 502, metrics.ServerError, "HTTP 502 Bad Gateway: <p>", "",
			func(x metrics.Exchange) bool { return len([]rune(x.Message)) <= 200 && x.Executed == metrics.Unknown }},
		{"login page", "Content-Type: text/html", "<html>log in</html>", 200, metrics.InvalidResponse, "an HTML page: <html>", "", nil},
		{"500 with our error", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"boom"}}`, 500, metrics.ProtocolError, "-32603: boom", "",
			func(x metrics.Exchange) bool { return x.Code == -32603 && x.Status == 500 }},
		{"other envelope", js, `{"data":{"x":1}}`, 200, metrics.InvalidResponse, "no reply", "", nil},
		{"SSE sent as JSON", js, "data: " + okReply + "\n\n", 200, metrics.OK, "", "an event stream in a response of type application/json", nil},
		{"JSON sent as SSE", ev, okReply, 200, metrics.OK, "", "JSON in a response of type text/event-stream", nil},
		{"no content type", "Content-Type: ", okReply, 200, metrics.OK, "", "content type (none)", nil},
		{"empty", js, "", 200, metrics.InvalidResponse, "an empty body", "", nil},
		{"garbage", js, "oops", 200, metrics.InvalidResponse, "not JSON: oops", "", nil},
		{"cut JSON", js, okReply[:30], 200, metrics.InvalidResponse, "not JSON", "", nil},
		{"both", js, `{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}`, 200, metrics.InvalidResponse, "both", "both", nil},
		{"no jsonrpc", js, `{"id":$ID,"result":{"content":[]}}`, 200, metrics.OK, "", "without jsonrpc", nil},
		{"null result", js, `{"jsonrpc":"2.0","id":$ID,"result":null}`, 200, metrics.InvalidResponse, "neither", "", nil},
		{"empty result", js, `{"jsonrpc":"2.0","id":$ID,"result":{}}`, 200, metrics.InvalidResponse, "without content", "", nil},
		{"content of a foreign type", js, `{"jsonrpc":"2.0","id":$ID,"result":{"content":"hi"}}`, 200, metrics.InvalidResponse, "no list", "", nil},
		{"structured only", js, `{"jsonrpc":"2.0","id":$ID,"result":{"structuredContent":{"a":1}}}`, 200, metrics.OK, "", "without content",
			func(x metrics.Exchange) bool { return string(x.Structured) == `{"a":1}` }},
		{"id as string", js, `{"jsonrpc":"2.0","id":"$ID","result":{"content":[]}}`, 200, metrics.ProtocolError, "reply id has type string", "", nil},
		{"foreign id", js, `{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`, 200, metrics.ProtocolError, "reply has id 4711", "", nil},
		{"error without id", js, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}`, 200, metrics.ProtocolError, "-32600: bad", "id missing", nil},
		{"accepted", "", "", 202, metrics.InvalidResponse, "HTTP 202 Accepted to a request", "", nil},
		{"no content", "", "", 204, metrics.InvalidResponse, "HTTP 204", "", nil},
		{"other origin", "Location: http://127.0.0.2:9/mcp?api_key=abcdef12", "", 307, metrics.InvalidResponse, "redirects to http://127.0.0.2:9/mcp?api_key=[redacted], which is not followed", "", nil},
		{"see other", "Location: /login", "", 303, metrics.InvalidResponse, "redirects to /login", "", nil},
		{"unauthorized, bare", "", "", 401, metrics.AuthRequired, "without a challenge", "", func(x metrics.Exchange) bool { return x.Executed == metrics.No }},
		{"unauthorized", `WWW-Authenticate: Bearer resource_metadata="https://h/.well-known/x", error="invalid_token"`, "", 401, metrics.AuthRequired, "resource_metadata=", "", nil},
		{"forbidden", `WWW-Authenticate: Bearer error="insufficient_scope", scope="files:write"`, "", 403, metrics.AuthRequired, `scope="files:write"`, "", nil},
		{"unauthorized as text", js, `{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[{"type":"text","text":"unauthorized"}]}}`, 200, metrics.ToolError, "unauthorized", "", nil},
		{"rate limited", "Retry-After: 2", "slow down", 429, metrics.RateLimited, "HTTP 429 Too Many Requests: slow down", "",
			func(x metrics.Exchange) bool {
				return x.RetryAfter == 2*time.Second && x.Quota == "http_status" && x.Executed == metrics.No && !x.ByText
			}},
		{"unavailable with a hint", "Retry-After: 0.5", "", 503, metrics.RateLimited, "", "", func(x metrics.Exchange) bool { return x.RetryAfter == 500*time.Millisecond }},
		{"unavailable", "", "", 503, metrics.ServerError, "HTTP 503", "", nil},
		{"nonsense hint", "Retry-After: NaN", "", 429, metrics.RateLimited, "", "not a number", func(x metrics.Exchange) bool { return x.RetryAfter == 0 }},
		{"rate limit in a tool error, fields", js, `{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[],"structuredContent":{"status":429,"retry_after":3}}}`, 200, metrics.RateLimited, "", "",
			func(x metrics.Exchange) bool {
				return x.RetryAfter == 3*time.Second && x.Quota == "tool_error_structured" && !x.ByText
			}},
		{"rate limit in a tool error, text", js, `{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[{"type":"text","text":"429 Too Many Requests, retry in 2s"}]}}`, 200, metrics.RateLimited, "", "",
			func(x metrics.Exchange) bool { return x.RetryAfter == 2*time.Second && x.ByText }},
		{"rate limit in a protocol error", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"slow","data":{"status":429}}}`, 200, metrics.RateLimited, "slow", "", nil},
		{"429 rows", js, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"found 429 rows"}]}}`, 200, metrics.OK, "", "", nil},
		{"5000 characters", js, `{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[{"type":"text","text":"text is over the 5000-character limit"}]}}`, 200, metrics.ToolError, "5000", "", nil},
		{"error in a success", js, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"{\"error\":\"no such file\"}"}]}}`, 200, metrics.ToolError, "no such file", "a success whose text holds an error",
			func(x metrics.Exchange) bool { return x.ByText }},
		{"error in a success, list", js, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"[1,{\"error_code\":7}]"}]}}`, 200, metrics.ToolError, "", "", nil},
		{"no error in a success", js, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"{\"error\":null,\"errors\":[],\"a\":{\"error\":1}}"}]}}`, 200, metrics.OK, "", "", nil},
		{"gzip nobody asked for", js + "\nContent-Encoding: gzip", zip(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`), 200, metrics.ProtocolError, "reply has id 2", "gzip although identity", nil},
		{"truncated gzip", js + "\nContent-Encoding: gzip", zip(okReply)[:40], 200, metrics.Connection, "truncated body", "", nil},
		{"brotli", js + "\nContent-Encoding: br", "xx", 200, metrics.InvalidResponse, "unsupported content-encoding br", "", nil},
		{"gzip bomb", js + "\nContent-Encoding: gzip", zip(strings.Repeat(" ", 3<<20)), 200, metrics.InvalidResponse, "message too large", "", nil},
		{"too large", js, strings.Repeat(" ", 2<<20) + okReply, 200, metrics.InvalidResponse, "message too large", "", nil},
		{"wrong length", js + "\nContent-Length: 500", okReply, 200, metrics.Connection, "truncated body", "", nil},
		{"SSE without a reply", ev, ": nothing\n\n", 200, metrics.Connection, "stream ended without a reply", "", nil},
		{"SSE cut in an event", ev, "data: {\"jsonrpc", 200, metrics.Connection, "in the middle of an event", "", nil},
		{"session lost", "", "", 404, metrics.SessionLost, "does not know this session", "", func(x metrics.Exchange) bool { return x.Executed == metrics.No }},
		{"session lost, said in JSON-RPC", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`, 404, metrics.SessionLost, "does not know this session", "", nil},
		{"unknown method with 404", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no such method"}}`, 404, metrics.ProtocolError, "no such method", "", nil},
		{"session refused with 400", js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, 400, metrics.SessionLost, "session ID", "", func(x metrics.Exchange) bool { return x.ByText }},
		{"bad request", js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`, 400, metrics.ProtocolError, "-32600: no", "", nil},
		{"method not allowed", "", "", 405, metrics.ProtocolError, "HTTP 405", "", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": answerWith(tc.status, tc.header, tc.body)})
			s := dialWeb(t, f, func(c *mcp.Config) { c.MaxMessage = 1 << 20 })
			x := say(t, s.session(t), "hi")
			wantOutcome(t, "call", x, tc.want, tc.message)
			if tc.note != "" {
				wantNote(t, "call", x.Notes, tc.note)
			} else if tc.want == metrics.OK && len(x.Notes) > 0 {
				t.Errorf("notes %q", x.Notes)
			}
			if tc.check != nil && !tc.check(x) {
				t.Errorf("exchange %+v", x)
			}
			if n := len(f.seen("POST", "tools/call")); n != 1 {
				t.Errorf("%d executions, want 1", n)
			}
			// One bad reply fails one call.
			f.mu.Lock()
			f.hooks = nil
			f.mu.Unlock()
			wantOutcome(t, "next call", say(t, s.session(t), "ho"), metrics.OK, "")
		})
	}
}

func TestBrokenConnections(t *testing.T) {
	tests := []struct {
		name string
		hook func(net.Conn, rpc)
		text string
	}{
		{"reset", func(c net.Conn, _ rpc) { c.(*net.TCPConn).SetLinger(0) }, "reset"},
		{"closed", func(net.Conn, rpc) {}, "closed before an answer"},
		{"chunked, cut before the last chunk", func(c net.Conn, m rpc) {
			body := strings.ReplaceAll(okReply, "$ID", string(m.ID))
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)
		}, "truncated body"},
		{"stream, reset", func(c net.Conn, _ rpc) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n")
			time.Sleep(50 * time.Millisecond)
			c.(*net.TCPConn).SetLinger(0)
		}, "reset"},
		{"stream, clean end", func(c net.Conn, _ rpc) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n")
		}, "stream ended without a reply"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc) {
				c, _ := hijack(w)
				tc.hook(c, m)
				c.Close()
			}})
			s := dialWeb(t, f)
			x := say(t, s.session(t), "hi")
			wantOutcome(t, "call", x, metrics.Connection, tc.text)
			if n := len(f.seen("POST", "tools/call")); n != 1 || x.Latency > time.Second {
				t.Errorf("%d executions in %v", n, x.Latency)
			}
		})
	}
	refused := webConfig("http://127.0.0.1:1/mcp")
	var start *mcp.StartError
	if _, err := mcp.Dial(t.Context(), refused); !errors.As(err, &start) || start.Class != mcp.Unreachable || !strings.Contains(err.Error(), "refused") {
		t.Errorf("refused: %v", err)
	}
}

// A server that closes an idle connection just when the next request comes: the
// call fails once, visibly, and is not sent again.
func TestClosedKeepAlive(t *testing.T) {
	var f *webFake
	n := 0
	f = serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc) {
		if n++; n%2 == 0 {
			c, _ := hijack(w)
			c.Close()
			return
		}
		result(w, m, text("x"))
	}})
	session := dialWeb(t, f).session(t)
	for i, want := range []metrics.Outcome{metrics.OK, metrics.Connection, metrics.OK, metrics.Connection} {
		wantOutcome(t, fmt.Sprint(i), say(t, session, "x"), want, "")
	}
	if got := len(f.seen("POST", "tools/call")); got != 4 {
		t.Errorf("%d requests for 4 calls", got)
	}
}

func TestAnswersToNotifications(t *testing.T) {
	tests := []struct {
		name, header, body string
		status             int
		note               string
	}{
		{"202", "", "", 202, ""},
		{"200 empty", "", "", 200, "HTTP 200 instead of 202"},
		{"200 null", "Content-Type: application/json", "null", 200, "HTTP 200"},
		{"204", "", "", 204, "HTTP 204"},
		{"202 with text", "Content-Type: text/plain", "Accepted", 202, "with a body"},
		{"400", "", "", 400, "refused with HTTP 400"},
		{"500", "", "", 500, "refused with HTTP 500"},
		{"stream", "Content-Type: text/event-stream", ": open\n\n", 200, "event stream"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"notifications/initialized": func(w http.ResponseWriter, r *http.Request, m rpc) {
				answerWith(tc.status, tc.header, tc.body)(w, r, m)
				if tc.name == "stream" {
					http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			}})
			began := time.Now()
			s := dialWeb(t, f)
			wantOutcome(t, "call", say(t, s.session(t), "x"), metrics.OK, "")
			if time.Since(began) > time.Second {
				t.Errorf("held up for %v", time.Since(began))
			}
			if tc.note == "" && len(s.Notes()) > 0 {
				t.Errorf("notes %q", s.Notes())
			} else if tc.note != "" {
				wantNote(t, "client", s.Notes(), tc.note)
			}
		})
	}
}

func TestAuthorizationAtStart(t *testing.T) {
	f := serve(t, nil)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer t0psecret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://h/x"`)
		w.WriteHeader(401)
		return true
	}
	_, err := mcp.Dial(t.Context(), webConfig(f.URL))
	var start *mcp.StartError
	if !errors.As(err, &start) || start.Class != mcp.AuthRequired || start.Status != 401 || !strings.Contains(err.Error(), "resource_metadata") {
		t.Errorf("without a token: %v", err)
	}
	s := dialWeb(t, f, func(c *mcp.Config) { c.Headers = []wire.Header{{Name: "authorization", Value: "Bearer t0psecret"}} })
	wantOutcome(t, "with a token", say(t, s.session(t), "x"), metrics.OK, "")
}

func TestEraOverHTTP(t *testing.T) {
	page := answerWith(200, "Content-Type: text/html", "<html>")
	tests := []struct {
		name  string
		hooks map[string]func(http.ResponseWriter, *http.Request, rpc)
		want  string
		class mcp.StartClass
	}{
		{"unknown method, 200", nil, mcp.LatestLegacy, ""},
		{"400 without a body", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(400, "", "")}, mcp.LatestLegacy, ""},
		{"404 page", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(404, "Content-Type: text/html", "<html>")}, mcp.LatestLegacy, ""},
		{"500", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(500, "", "")}, mcp.LatestLegacy, ""},
		{"modern without discovery", map[string]func(http.ResponseWriter, *http.Request, rpc){
			"server/discover": answerWith(404, "Content-Type: application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}`)}, mcp.Stateless, ""},
		{"header mismatch", map[string]func(http.ResponseWriter, *http.Request, rpc){
			"server/discover": answerWith(400, "Content-Type: application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"x"}}`)}, mcp.Stateless, ""},
		{"version refused", map[string]func(http.ResponseWriter, *http.Request, rpc){
			"server/discover": answerWith(400, "Content-Type: application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"x","data":{"supported":["2025-11-25"]}}}`)}, mcp.LatestLegacy, ""},
		{"hangs on unknown methods", map[string]func(http.ResponseWriter, *http.Request, rpc){
			"server/discover": func(_ http.ResponseWriter, r *http.Request, _ rpc) { <-r.Context().Done() }}, mcp.LatestLegacy, ""},
		{"HTML everywhere", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": page, "initialize": page}, "", mcp.NotMCP},
		{"404 everywhere", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(404, "", ""), "initialize": answerWith(404, "", "")}, "", mcp.NotMCP},
		{"500 everywhere", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(500, "", ""), "initialize": answerWith(500, "", "")}, "", mcp.Unreachable},
		{"elsewhere", map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": answerWith(307, "Location: http://127.0.0.2:1/", ""), "initialize": answerWith(307, "Location: http://127.0.0.2:1/", "")}, "", mcp.NotMCP},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t, tc.hooks)
			cfg := webConfig(f.URL)
			cfg.StartTimeout = 2 * time.Second
			c, err := mcp.Dial(t.Context(), cfg)
			var start *mcp.StartError
			if errors.As(err, &start); tc.class != "" {
				if start == nil || start.Class != tc.class || start.Remedy == "" {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			if c.Info().Protocol != tc.want {
				t.Errorf("protocol %q, want %q", c.Info().Protocol, tc.want)
			}
		})
	}
}

func TestRedirectWithinTheOrigin(t *testing.T) {
	f := serve(t, nil)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/mcp/" {
			http.Redirect(w, r, "/mcp/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	s := dialWeb(t, f)
	x := say(t, s.session(t), "x")
	wantOutcome(t, "redirected", x, metrics.OK, "")
	wantNote(t, "redirected", x.Notes, "redirected by HTTP 307 to http")
}

func TestVersionHeader(t *testing.T) {
	f := serve(t, nil)
	s := dialWeb(t, f)
	say(t, s.session(t), "x")
	for _, n := range f.seen("POST", "") {
		want := mcp.LatestLegacy
		switch n.Method {
		case "server/discover":
			want = mcp.Stateless
		case "initialize":
			want = ""
		}
		if got := n.Header.Get("Mcp-Protocol-Version"); got != want {
			t.Errorf("%s: version header %q, want %q", n.Method, got, want)
		}
		if n.Header.Get("Accept-Encoding") != "identity" || !strings.Contains(n.Header.Get("Accept"), "text/event-stream") {
			t.Errorf("%s: headers %v", n.Method, n.Header)
		}
	}
}

func TestSecretsOverHTTP(t *testing.T) {
	const query = "api_key=S3CRET%2Bx&mode=a&mode=b"
	f := serve(t, nil)
	f.hooks = map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc) {
		leak := r.RequestURI + " S3CRET+x " + r.Header.Get("X-Team-Key") + " " + base64.StdEncoding.EncodeToString([]byte("S3CRET+x")) + " " + r.Header.Get("Authorization")
		switch m.Params.Arguments["text"] {
		case "redirect":
			w.Header().Set("Location", "http://127.0.0.3/?"+query)
			w.WriteHeader(302)
		case "tool":
			result(w, m, `{"isError":true,"content":[{"type":"text","text":`+fmt.Sprintf("%q", leak)+`}]}`)
		default:
			http.Error(w, leak, 500)
		}
	}}
	u, err := url.Parse(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := dialWeb(t, f, func(c *mcp.Config) {
		c.Endpoint = "http://joe:hunter22@" + u.Host + "/mcp?" + query
		c.Headers = []wire.Header{{Name: "X-Team-Key", Value: "H3ADER"}}
	})
	session := s.session(t)
	for _, variant := range []string{"500", "tool", "redirect"} {
		x := say(t, session, variant)
		x.Text = "" // the answer itself is not redacted: it is not shown
		said := fmt.Sprintf("%+v", x)
		for _, bad := range []string{"S3CRET", "H3ADER", "hunter22", base64.StdEncoding.EncodeToString([]byte("joe:hunter22"))[:10], "UzNDUkVU"} {
			if strings.Contains(said, bad) {
				t.Errorf("%s: %q in %s", variant, bad, said)
			}
		}
	}
	for _, n := range f.seen("POST", "") {
		if n.URI != "/mcp?"+query || n.Header.Get("X-Team-Key") != "H3ADER" || !strings.HasPrefix(n.Header.Get("Authorization"), "Basic ") {
			t.Fatalf("request %q %v", n.URI, n.Header)
		}
	}
	broken := webConfig("http://joe:hunter22@127.0.0.1:1/mcp?" + query)
	if _, err := mcp.Dial(t.Context(), broken); err == nil || strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("refused: %v", err)
	}
}

func TestCatalogue(t *testing.T) {
	pages := map[string]string{
		`{}`:              `{"tools":[{"name":"a","inputSchema":true},{"name":7},null],"nextCursor":"p2"}`,
		`{"cursor":"p2"}`: `{"tools":[{"name":"b","description":[],"annotations":{"readOnlyHint":false}},{"name":"a"}],"nextCursor":"p3"}`,
		`{"cursor":"p3"}`: `{"tools":[{"name":"c"}],"nextCursor":"p2"}`,
	}
	f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/list": func(w http.ResponseWriter, r *http.Request, m rpc) {}})
	f.hooks["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m rpc) {
		f.mu.Lock()
		body := f.journal[len(f.journal)-1].Body
		f.mu.Unlock()
		var in struct{ Params json.RawMessage }
		_ = json.Unmarshal([]byte(body), &in)
		if in.Params == nil {
			in.Params = json.RawMessage("{}")
		}
		result(w, m, pages[string(in.Params)])
	}
	tools, found, err := dialWeb(t, f).session(t).ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || string(tools[0].InputSchema) != "true" || tools[1].ReadOnly == nil || *tools[1].ReadOnly {
		t.Errorf("tools %+v", tools)
	}
	for _, part := range []string{"without a name", "description is no string", "listed twice", "repeats a cursor"} {
		wantNote(t, "catalogue", found, part)
	}
}

// Callers reuse connections, whatever form the answers have.
func TestConnectionsAreReused(t *testing.T) {
	for _, form := range []string{"json", "sse"} {
		f := serve(t, nil)
		if form == "sse" {
			f.hooks = map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, text("x"))
				http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond) // the end trails the reply
			}}
		}
		var opened sync.Map
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			opened.Store(r.RemoteAddr, true)
			return false
		}
		session := dialWeb(t, f, func(c *mcp.Config) { c.Concurrency = 16 }).session(t)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 25 {
					if x := say(t, session, "x"); x.Outcome != metrics.OK {
						t.Errorf("%v %s", x.Outcome, x.Message)
					}
				}
			})
		}
		wg.Wait()
		n := 0
		opened.Range(func(any, any) bool { n++; return true })
		if n > 100 || n == 0 {
			t.Errorf("%s: %d connections for 400 calls of 16 callers", form, n)
		}
	}
}
