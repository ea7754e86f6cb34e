package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ordeal/controller/result"
)

const twinSchema = `{"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
	"query": {"type": "string", "minLength": 1, "maxLength": 100, "examples": ["hello"]},
	"limit": {"type": "integer", "minimum": 1, "maximum": 50},
	"sort": {"enum": ["new", "old"]},
	"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}}`

// twin serves one tool over the official Go SDK. A strict twin rejects every
// call its schema forbids with a JSON-RPC error, before any tool runs; a lax one
// answers everything.
func twin(t *testing.T, strict bool) string {
	t.Helper()
	schema := compile(t, twinSchema)
	srv := mcp.NewServer(&mcp.Implementation{Name: "twin", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "search", Description: "find things", InputSchema: json.RawMessage(twinSchema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	srv.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.Params.Arguments)))
		if err == nil {
			err = schema.Validate(v)
		}
		if strict && err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	t.Cleanup(h.Close)
	return h.URL
}

func compile(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("twin.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("twin.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dimension(t *testing.T, doc *result.Document, name string) result.Dimension {
	t.Helper()
	for _, d := range doc.Breakdown {
		if d.Dimension == name {
			return d
		}
	}
	t.Fatalf("no dimension %s", name)
	return result.Dimension{}
}

func TestStrictTwinScoresAndLaxTwinDoesNot(t *testing.T) {
	scan := func(url string) *result.Document {
		doc, err := scanJSON(t, "scan", url, "--probes", "contract,latency", "--requests", "20")
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	strict := dimension(t, scan(twin(t, true)), "contract")
	if strict.Points == nil || *strict.Points != strict.Weight {
		t.Errorf("strict twin: %+v, want full points: every rejection is clean", strict)
	}
	doc := scan(twin(t, false))
	lax := dimension(t, doc, "contract")
	if lax.Points == nil || *lax.Points >= lax.Weight {
		t.Errorf("lax twin: %+v, want points lost", lax)
	}
	if n := number(t, doc, "contract", "accepted_invalid"); n < 8 {
		t.Errorf("accepted_invalid %v, want every forbidden call", n)
	}
	if n := number(t, doc, "contract", "crash_rate"); n != 0 {
		t.Errorf("crash_rate %v, want 0", n)
	}
}

// TestSecretsStayInside plants secrets in a header, the query and the user info,
// lets the server repeat them in every way it can, and looks for them in all
// that a scan writes.
func TestSecretsStayInside(t *testing.T) {
	const header, query = "H3ADER-s3cret-value", "S3CRET+query/value"
	var mu sync.Mutex
	seen := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("X-Team-Key")+"|"+r.URL.RawQuery] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m) // a malformed body has no id and is answered 202
		reply := func(v string) { _, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + v + `}`)) }
		switch {
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			reply(`"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"leaky ` + header + `","version":"1"}}`)
		case m.Method == "tools/list":
			reply(`"result":{"tools":[{"name":"search","description":"` + header + `","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
		case m.Method == "tools/call":
			reply(`"result":{"isError":true,"content":[{"type":"text","text":"denied for ` + header + ` at ` + r.URL.String() + `"}]}`)
		default:
			reply(`"error":{"code":-32601,"message":"no ` + header + `"}`)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TEAM_KEY", header)
	url := strings.Replace(srv.URL, "http://", "http://user:pa55w0rd-x@", 1) + "/mcp?api_key=S3CRET%2Bquery%2Fvalue&mode=a&mode=b"
	out, err := scanJSONErr(t, "scan", url, "--header", "X-Team-Key: $TEAM_KEY", "--tool", "search", "--tool-args", "{}", "--requests", "12",
		"--timeout", "200ms", "--output", "all", "--json-out", "out.json")
	if err != nil {
		t.Fatal(err)
	}
	if !seen[header+"|api_key=S3CRET%2Bquery%2Fvalue&mode=a&mode=b"] {
		t.Errorf("the server saw %v: the header or the query did not arrive as written", seen)
	}
	everything := out
	for _, name := range []string{"out.json", "REPORT.md", "AGENTS.md"} {
		everything += readFile(t, name)
	}
	if !strings.Contains(everything, "X-Team-Key: $TEAM_KEY") {
		t.Error("the command to run it again lost the header's reference")
	}
	for _, secret := range []string{header, query, "S3CRET%2Bquery%2Fvalue", "pa55w0rd-x", "SDNBREVSLXMzY3JldC12YWx1Z"} {
		if i := strings.Index(everything, secret); i >= 0 {
			t.Errorf("%q leaked: …%s…", secret, everything[max(0, i-80):min(len(everything), i+80)])
		}
	}
}
