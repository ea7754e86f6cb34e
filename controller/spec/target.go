package spec

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"ordeal/agent/wire"
)

// MockProfiles are the built-in mock targets.
var MockProfiles = []string{"healthy", "degraded", "failing", "saturating", "bloated"}

// ParseTarget reads a TARGET word as PRODUCT-level users write it:
//
//	mock, mock:PROFILE                    built-in mock
//	http(s)://host/path                   MCP over Streamable HTTP
//	sse+http(s)://host/path, sse://host   MCP over the deprecated HTTP+SSE
//	openai:MODEL, anthropic:MODEL         LLM endpoint
//	http-get:URL, http-post:URL           plain HTTP, of an agent or anything else
//	stdio://COMMAND, or any other words   MCP over stdio, split like a shell would
func ParseTarget(text string) (wire.Target, error) {
	t := wire.Target{URI: text}
	head, rest, _ := strings.Cut(text, ":")
	switch {
	case strings.TrimSpace(text) == "":
		return t, errors.New("target is empty: give a URL, a command, mock:PROFILE, openai:MODEL, anthropic:MODEL, http-get:URL or http-post:URL")
	case text == "mock" || head == "mock":
		return parseMock(t, rest)
	case head == "openai" || head == "anthropic":
		return parseModel(t, wire.TargetKind(head), rest)
	case head == "http-get":
		return parsePlain(t, "GET", rest)
	case head == "http-post":
		return parsePlain(t, "POST", rest)
	case head == "agent":
		return t, fmt.Errorf("target %q: agents are tested by a fault proxy, which scan does not do yet", text)
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		return parseURL(t, wire.StreamableHTTP, text)
	case strings.HasPrefix(text, "sse+http://"), strings.HasPrefix(text, "sse+https://"):
		return parseURL(t, wire.SSE, strings.TrimPrefix(text, "sse+"))
	case strings.HasPrefix(text, "sse://"):
		return parseURL(t, wire.SSE, "http://"+strings.TrimPrefix(text, "sse://"))
	}
	return parseCommand(t, strings.TrimPrefix(text, "stdio://"))
}

func parseMock(t wire.Target, profile string) (wire.Target, error) {
	if profile == "" {
		profile = "healthy"
	}
	if err := oneOf("mock profile", profile, MockProfiles); err != nil {
		return t, err
	}
	t.Kind, t.Profile, t.URI = wire.Mock, profile, "mock:"+profile
	return t, nil
}

func parseModel(t wire.Target, kind wire.TargetKind, model string) (wire.Target, error) {
	if model == "" {
		return t, fmt.Errorf("target %q names no model: write %s:MODEL", t.URI, kind)
	}
	t.Kind, t.Model = kind, model
	return t, nil
}

func parseURL(t wire.Target, transport wire.Transport, raw string) (wire.Target, error) {
	if err := checkURL(raw); err != nil {
		return t, err
	}
	t.Kind, t.Transport, t.Endpoint = wire.MCP, transport, raw
	t.URI = Display(t.URI)
	return t, nil
}

// parsePlain reads the URL of a plain HTTP target. The text is not repeated in an
// error: it may hold credentials.
func parsePlain(t wire.Target, method, raw string) (wire.Target, error) {
	if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		word := "http-" + strings.ToLower(method)
		return t, fmt.Errorf("target %s: names no URL of its own: write %s:http://HOST/PATH, or https", word, word)
	}
	if err := checkURL(raw); err != nil {
		return t, err
	}
	t.Kind, t.Method, t.Endpoint = wire.HTTP, method, raw
	t.URI = Display(t.URI)
	return t, nil
}

func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error repeats the whole text, credentials included.
		return errors.New("target is not a valid URL: check the host, port and percent-encoding")
	}
	if u.Host == "" {
		return fmt.Errorf("target URL has no host: write %s://HOST/PATH", u.Scheme)
	}
	return nil
}

// toolless reports a target that offers nothing to choose from: its one operation
// is to ask it.
func toolless(k wire.TargetKind) bool { return isModel(k) || k == wire.HTTP }

func parseCommand(t wire.Target, line string) (wire.Target, error) {
	argv, err := words(line)
	if err != nil {
		return t, fmt.Errorf("target command %q: %w", line, err)
	}
	if len(argv) == 0 {
		return t, errors.New("target command is empty: write stdio://COMMAND or the command itself")
	}
	if scheme, _, ok := strings.Cut(argv[0], "://"); ok {
		return t, fmt.Errorf("target scheme %q is unknown: use https, http, sse+https, sse+http or stdio", scheme)
	}
	t.Kind, t.Transport, t.Command = wire.MCP, wire.Stdio, argv
	return t, nil
}

// Display is a URL fit for reports: user info and query values are replaced,
// since either may be a credential; other targets are returned as they are.
func Display(raw string) string {
	prefix := ""
	for _, p := range []string{"sse+", "http-get:", "http-post:"} {
		if rest, ok := strings.CutPrefix(raw, p); ok {
			prefix, raw = p, rest
			break
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return prefix + raw
	}
	if u.User != nil {
		u.User = url.User("REDACTED")
	}
	if u.RawQuery != "" {
		u.RawQuery = hideValues(u.RawQuery)
	}
	return prefix + u.String()
}

func hideValues(query string) string {
	parts := strings.Split(query, "&")
	for i, p := range parts {
		if name, _, ok := strings.Cut(p, "="); ok {
			parts[i] = name + "=REDACTED"
		}
	}
	return strings.Join(parts, "&")
}
