package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ordeal/agent/quota"
	"ordeal/metrics"
)

// messageShown is the length of the excerpt an exchange carries.
const messageShown = 200

// judge decides what a complete reply amounts to. x already holds the facts of
// the transport; a refusal that the HTTP status decided stays.
func (c *Client) judge(m *message, x *metrics.Exchange, tool, keep bool) {
	x.Delivered = true
	if s := strings.Trim(string(m.version), `"`); s != "2.0" {
		x.Notes = append(x.Notes, "reply without jsonrpc 2.0")
	}
	switch {
	case m.result != nil && m.fault != nil && !isNull(m.fault):
		x.Notes = append(x.Notes, "reply holds both result and error")
		c.fail(x, metrics.InvalidResponse, "reply holds both result and error")
	case m.fault != nil && !isNull(m.fault):
		c.judgeFault(m.fault, x)
	case m.result == nil || isNull(m.result):
		c.fail(x, metrics.InvalidResponse, "reply with neither a result nor an error")
	case x.Status >= 400:
		x.Notes = append(x.Notes, fmt.Sprintf("a result with HTTP status %d", x.Status))
		c.fail(x, metrics.InvalidResponse, fmt.Sprintf("HTTP %d carries a result", x.Status))
	default:
		c.judgeResult(m.result, x, tool, keep)
	}
}

// fail sets outcome and message; the message is the one place where text of the
// other side enters an exchange, and is redacted here.
func (c *Client) fail(x *metrics.Exchange, o metrics.Outcome, text string) {
	x.Outcome, x.Message = o, c.cfg.Redactor.Line(text, messageShown)
}

func (c *Client) judgeFault(raw json.RawMessage, x *metrics.Exchange) {
	var fault struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &fault) != nil {
		c.fail(x, metrics.InvalidResponse, "error member is no object: "+string(raw))
		return
	}
	var text string
	if json.Unmarshal(fault.Message, &text) != nil {
		x.Notes = append(x.Notes, "error without a message")
		text = string(fault.Data)
	}
	if json.Unmarshal(fault.Code, &x.Code) != nil {
		x.Notes = append(x.Notes, "error code is no integer")
	}
	if q := quota.FromFields(raw); q.Limited {
		c.limited(x, q, text)
		return
	}
	c.fail(x, metrics.ProtocolError, fmt.Sprintf("%d: %s", x.Code, text))
	if refusedBefore(x.Code) {
		x.Executed = metrics.No
	}
}

// refusedBefore reports codes by which a server says that it did not begin:
// parse error, invalid request, unknown method, invalid params, and the three
// of the stateless revision.
func refusedBefore(code int) bool {
	switch code {
	case -32700, -32600, -32601, -32602, codeHeaderMismatch, codeCapability, codeVersion:
		return true
	}
	return false
}

// limited books a refusal for quota.
func (c *Client) limited(x *metrics.Exchange, q quota.Finding, text string) {
	c.fail(x, metrics.RateLimited, text)
	c.noteQuota(x, q)
	if !q.ByText {
		x.Executed = metrics.No
	}
}

func (c *Client) noteQuota(x *metrics.Exchange, q quota.Finding) {
	x.Quota, x.ByText = q.Seen, q.ByText
	if q.Wait > 0 {
		x.RetryAfter = q.Wait
	}
	if q.Limit > 0 {
		x.QuotaLimit = q.Limit
	}
	if q.Window > 0 {
		x.QuotaWindow = q.Window
	}
	for _, note := range q.Notes {
		x.Notes = append(x.Notes, c.cfg.Redactor.Line(note, messageShown))
	}
}

// toolResult is what of a tool's result decides the outcome.
type toolResult struct {
	Type       *string         `json:"resultType"`
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    json.RawMessage `json:"isError"`
	Legacy     json.RawMessage `json:"toolResult"` // of revision 2024-10-07
	Inputs     map[string]struct {
		Method string `json:"method"`
	} `json:"inputRequests"`
}

func (c *Client) judgeResult(raw json.RawMessage, x *metrics.Exchange, tool, keep bool) {
	var r toolResult
	if err := json.Unmarshal(raw, &r); err != nil {
		c.fail(x, metrics.InvalidResponse, "result of a foreign shape: "+err.Error())
		return
	}
	if !c.complete(&r, x) || !tool {
		return
	}
	text, ok := contentText(r.Content)
	switch {
	case !ok:
		c.fail(x, metrics.InvalidResponse, "content is no list of content blocks")
		return
	case r.Content == nil && r.Structured == nil && r.Legacy == nil && r.IsError == nil:
		c.fail(x, metrics.InvalidResponse, "a tool result without content")
		return
	case r.Content == nil:
		x.Notes = append(x.Notes, "tool result without content")
	}
	if keep {
		x.Text, x.Structured = text, r.Structured
	}
	c.judgeTool(&r, text, x)
}

// complete handles the result types of the stateless revision. It reports
// whether the result is one to look into.
func (c *Client) complete(r *toolResult, x *metrics.Exchange) bool {
	if r.Type == nil {
		if c.era().modern() {
			x.Notes = append(x.Notes, "result without resultType")
		}
		x.Executed = metrics.Yes
		return true
	}
	switch *r.Type {
	case "complete":
		x.Executed = metrics.Yes
		return true
	case "input_required":
		asked := []string{}
		for _, in := range r.Inputs {
			asked = append(asked, in.Method)
		}
		c.fail(x, metrics.ProtocolError, "input_required: the tool asks for "+orElse(strings.Join(asked, ", "), "another round")+", which this client did not offer")
		return false
	}
	c.fail(x, metrics.InvalidResponse, "unknown resultType "+*r.Type)
	return false
}

func (c *Client) judgeTool(r *toolResult, text string, x *metrics.Exchange) {
	isError := string(r.IsError) == "true"
	if r.IsError != nil && !isError && string(r.IsError) != "false" {
		x.Notes = append(x.Notes, "isError is no boolean")
	}
	if !isError {
		payload, found := errorPayload(text)
		if !found {
			return
		}
		x.Notes = append(x.Notes, "a success whose text holds an error object")
		c.fail(x, metrics.ToolError, text)
		if q := quota.FromFields(payload); q.Limited {
			c.limited(x, q, text)
		}
		x.ByText, x.Executed = true, metrics.Unknown
		return
	}
	x.Executed = metrics.Unknown
	if q := quota.FromToolResult(true, r.Structured, text); q.Limited {
		c.limited(x, q, orElse(text, string(r.Structured)))
		return
	}
	c.fail(x, metrics.ToolError, orElse(text, string(r.Structured)))
}

// contentText joins the text blocks. ok is false when content is no list of
// objects.
func contentText(raw json.RawMessage) (text string, ok bool) {
	if raw == nil {
		return "", true
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if isNull(raw) || json.Unmarshal(raw, &blocks) != nil {
		return "", false
	}
	if len(blocks) == 1 && blocks[0].Type == "text" {
		return blocks[0].Text, true
	}
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n"), true
}

// errorPayload finds a meaningful error member at the top of a text that is a
// JSON object, or in the first objects of a list.
func errorPayload(text string) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' || !strings.Contains(text, `"error`) || !json.Valid([]byte(text)) {
		return nil, false
	}
	candidates := []json.RawMessage{json.RawMessage(text)}
	if text[0] == '[' {
		candidates = nil
		_ = json.Unmarshal([]byte(text), &candidates) // valid, and a list
	}
	for _, raw := range candidates[:min(len(candidates), 8)] {
		if len(raw) == 0 || raw[0] != '{' {
			continue
		}
		found := false
		members(raw, func(key string, value []byte) {
			switch key {
			case "error", "error_type", "error_message", "error_code":
				found = found || meaningful(value)
			}
		})
		if found {
			return raw, true
		}
	}
	return nil, false
}

func meaningful(value []byte) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "null", "false", `""`, "[]", "{}", "0":
		return false
	}
	return true
}

func orElse(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}

// statusText is "503 Service Unavailable".
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}
