package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ordeal/agent/mcp"
	"ordeal/metrics"
)

// sdkOutcome is what the official Go client lets a caller see of a call, as an
// outcome; ok is false where it tells too little.
func sdkOutcome(r *sdk.CallToolResult, err error) (o metrics.Outcome, ok bool) {
	var rpc *jsonrpc.Error
	switch {
	case err == nil && r.IsError:
		return metrics.ToolError, true
	case err == nil:
		return metrics.OK, true
	case errors.Is(err, context.DeadlineExceeded):
		return metrics.Timeout, true
	case errors.Is(err, sdk.ErrSessionMissing):
		return metrics.SessionLost, true
	case errors.As(err, &rpc) && rpc.Code != -32005:
		return metrics.ProtocolError, true
	case strings.Contains(err.Error(), "Too Many Requests"):
		return metrics.RateLimited, true
	case strings.Contains(err.Error(), "Internal Server Error"), strings.Contains(err.Error(), "Bad Gateway"), strings.Contains(err.Error(), "Service Unavailable"):
		return metrics.ServerError, true
	case strings.Contains(err.Error(), "Unauthorized"), strings.Contains(err.Error(), "Forbidden"):
		return metrics.AuthRequired, true
	case strings.Contains(err.Error(), "connection reset"), strings.Contains(err.Error(), "terminated without response"):
		return metrics.Connection, true
	case strings.Contains(err.Error(), "unsupported content type"):
		return metrics.InvalidResponse, true
	}
	return 0, false
}

// The same canned answers go to both clients. Where the SDK says what happened,
// we say the same; where it does not, our outcome is still what it was. A dead
// session of the SDK is part of the record: it is why ordeal has its own client.
func TestAgainstGoSDKClient(t *testing.T) {
	const js, ev = "Content-Type: application/json", "Content-Type: text/event-stream"
	answers := []struct {
		name, header, body string
		status             int
		ours               metrics.Outcome
		silent             bool // the SDK does not say what happened
	}{
		{"ok", js, okReply, 200, metrics.OK, false},
		{"ok over SSE", ev, "data: " + okReply + "\n\n", 200, metrics.OK, false},
		{"tool error", js, `{"jsonrpc":"2.0","id":$ID,"result":{"isError":true,"content":[]}}`, 200, metrics.ToolError, false},
		{"protocol error", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"x"}}`, 200, metrics.ProtocolError, false},
		{"own code", js, `{"jsonrpc":"2.0","id":$ID,"error":{"code":7,"message":"x"}}`, 200, metrics.ProtocolError, false},
		{"429", "", "", 429, metrics.RateLimited, false},
		{"500", "", "", 500, metrics.ServerError, false},
		{"502", "", "", 502, metrics.ServerError, false},
		{"503", "", "", 503, metrics.ServerError, false},
		{"401", "", "", 401, metrics.AuthRequired, false},
		{"403", "", "", 403, metrics.AuthRequired, false},
		{"404", "", "", 404, metrics.SessionLost, false},
		{"SSE without a reply", ev, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n", 200, metrics.Connection, false},
		{"HTML", "Content-Type: text/html", "<html>", 200, metrics.InvalidResponse, false},
		{"garbage", js, "oops", 200, metrics.InvalidResponse, true},
		{"empty", js, "", 200, metrics.InvalidResponse, true},
		{"other id", js, `{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`, 200, metrics.ProtocolError, true},
	}
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t, map[string]func(http.ResponseWriter, *http.Request, rpc){"tools/call": answerWith(tc.status, tc.header, tc.body)})
			ours := say(t, dialWeb(t, f).session(t), "x")
			if ours.Outcome != tc.ours {
				t.Errorf("ours: %v %s, want %v", ours.Outcome, ours.Message, tc.ours)
			}
			client := sdk.NewClient(&sdk.Implementation{Name: "differential", Version: "1"}, nil)
			s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.URL + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1},
				&sdk.ClientSessionOptions{ProtocolVersion: mcp.LatestLegacy})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, done := context.WithTimeout(t.Context(), time.Second)
			defer done()
			theirs, ok := sdkOutcome(s.CallTool(ctx, &sdk.CallToolParams{Name: "echo"}))
			switch {
			case tc.silent && ok && theirs == metrics.OK:
				t.Errorf("the SDK takes this for a success, we for %v", ours.Outcome)
			case !tc.silent && (!ok || theirs != ours.Outcome):
				t.Errorf("the SDK says %v (known %v), we %v", theirs, ok, ours.Outcome)
			}
		})
	}
}
