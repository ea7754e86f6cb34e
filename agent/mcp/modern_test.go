package mcp_test

import (
	"context"
	"net/http"
	"testing"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

// A server of the stateless era: what its results may say, and what every
// request must carry.
func TestStatelessEra(t *testing.T) {
	const js = "Content-Type: application/json"
	discover := answerWith(200, js, `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"3"}}}}`)
	tests := []struct {
		name, body string
		status     int
		want       metrics.Outcome
		text, note string
	}{
		{"complete", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}`, 200, metrics.OK, "", ""},
		{"no type", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}`, 200, metrics.OK, "", "without resultType"},
		{"unknown type", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"maybe","content":[]}}`, 200, metrics.InvalidResponse, "unknown resultType maybe", ""},
		{"input required", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}},"requestState":"x"}}`, 200, metrics.ProtocolError, "asks for elicitation/create", ""},
		{"another round", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"x"}}`, 200, metrics.ProtocolError, "another round", ""},
		{"capability", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"needs sampling"}}`, 400, metrics.ProtocolError, "-32021: needs sampling", ""},
		{"404", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"what"}}`, 404, metrics.ProtocolError, "-32601", ""},
		{"404 page", `not here`, 404, metrics.ProtocolError, "HTTP 404", ""},
		{"request in the stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[]}}\n\n", 200, metrics.OK, "", "which this revision forbids"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			header := js
			if tc.body[0] == 'd' {
				header = "Content-Type: text/event-stream"
			}
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"server/discover": discover, "tools/call": answerWith(tc.status, header, tc.body)})
			s := dialWeb(t, f)
			if info := s.Info(); info.Protocol != mcp.Stateless || info.Name != "new" || info.Version != "3" {
				t.Errorf("info %+v", info)
			}
			x := say(t, s.session(t), "x")
			wantOutcome(t, "call", x, tc.want, tc.text)
			if tc.note != "" {
				wantNote(t, "call", x.Notes, tc.note)
			}
			s.Alive(t.Context())
			s.Close(context.Background())
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, n := range f.journal {
				name := map[string]string{"tools/call": "echo"}[n.Method]
				if n.Verb != "POST" || n.Session != "" || n.Header.Get("Mcp-Protocol-Version") != mcp.Stateless ||
					n.Header.Get("Mcp-Method") != n.Method || n.Header.Get("Mcp-Name") != name {
					t.Errorf("%s %s: headers %v", n.Verb, n.Method, n.Header)
				}
				var m rpc
				unmarshal(t, n.Body, &m)
				if m.Params.Meta["io.modelcontextprotocol/protocolVersion"] != mcp.Stateless || m.Params.Meta["io.modelcontextprotocol/clientCapabilities"] == nil ||
					m.Params.Meta["io.modelcontextprotocol/clientInfo"] == nil || m.Method == "ping" || m.Method == "initialize" {
					t.Errorf("body %s", n.Body)
				}
			}
		})
	}
}
