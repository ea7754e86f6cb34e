package mcp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Codes of the stateless revision.
const (
	codeHeaderMismatch = -32020
	codeCapability     = -32021
	codeVersion        = -32022
)

// Keys of the _meta every request of the stateless revision carries.
const metaPrefix = "io.modelcontextprotocol/"

// era is the negotiated revision.
type era struct{ version string }

func (e era) modern() bool { return e.version == Stateless }

// metaOf renders the inside of _meta: version, capabilities (none) and client.
func metaOf(name, version string) string {
	client, _ := json.Marshal(map[string]string{"name": name, "version": version}) // strings always marshal
	return `"` + metaPrefix + `protocolVersion":"` + Stateless + `","` + metaPrefix + `clientCapabilities":{},"` +
		metaPrefix + `clientInfo":` + string(client)
}

// headerText encodes a value for Mcp-Name and Mcp-Param: as it is when it is
// plain ASCII, in the base64 sentinel otherwise.
func headerText(s string) string {
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, "=?base64?") && strings.HasSuffix(s, "?="))
	for i := range len(s) {
		plain = plain && s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// paramHeader is one argument a tool wants repeated as a header.
type paramHeader struct {
	header string   // Mcp-Param-...
	path   []string // through properties
}

// maxSchemaDepth bounds the search for annotations.
const maxSchemaDepth = 16

// paramHeaders reads the x-mcp-header annotations of an input schema.
func paramHeaders(schema json.RawMessage) []paramHeader {
	if !strings.Contains(string(schema), "x-mcp-header") {
		return nil
	}
	return annotated(schema, nil)
}

func annotated(schema json.RawMessage, path []string) []paramHeader {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Header     string                     `json:"x-mcp-header"`
	}
	if len(path) > maxSchemaDepth || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var all []paramHeader
	if s.Header != "" && len(path) > 0 && token(s.Header) {
		all = append(all, paramHeader{http.CanonicalHeaderKey("Mcp-Param-" + s.Header), slices.Clone(path)})
	}
	for name, property := range s.Properties {
		all = append(all, annotated(property, append(slices.Clone(path), name))...)
	}
	return all
}

func token(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return true
}

// value reads the argument; null, absent and non-scalar ones have no header.
func (p paramHeader) value(args json.RawMessage) (string, bool) {
	for _, name := range p.path {
		var level map[string]json.RawMessage
		if json.Unmarshal(args, &level) != nil {
			return "", false
		}
		args = level[name]
	}
	var v any
	if len(args) == 0 || json.Unmarshal(args, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return headerText(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if n, err := strconv.ParseInt(string(args), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), true
		}
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
