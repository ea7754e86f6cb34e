package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ordeal/agent/secret"
)

// Wire is the protocol to speak.
type Wire string

const (
	OpenAI    Wire = "openai"
	Anthropic Wire = "anthropic"
)

// Defaults of Config.
const (
	DefaultPrompt     = "Reply with one word: ready"
	DefaultMaxTokens  = 256
	DefaultTimeout    = 60 * time.Second
	DefaultGapTimeout = 20 * time.Second
	DefaultMaxAnswer  = 64 << 20
)

// anthropicVersion is the revision of the messages API we speak.
const anthropicVersion = "2023-06-01"

// Config says whom to call and how. Values are final: references to secrets
// have been resolved.
type Config struct {
	Wire   Wire
	Base   string // URL before /chat/completions or /v1/messages; empty = the provider's own
	Model  string
	Key    string      // empty = send none
	Header http.Header // added to each request; replaces ours of the same name

	// Prompts holds the user messages; operation n sends Prompts[n mod len], so
	// several prompts of different length show what part of the input is
	// constant. Empty = DefaultPrompt.
	Prompts []string
	Tools   json.RawMessage // a JSON array in the provider's own shape; nil = none

	MaxTokens  int           // tokens the model may generate; 0 = DefaultMaxTokens
	Timeout    time.Duration // of the whole call; 0 = DefaultTimeout
	GapTimeout time.Duration // between two generated events; 0 = DefaultGapTimeout
	MaxAnswer  int64         // bytes of one answer; 0 = DefaultMaxAnswer
	Insecure   bool          // accept any TLS certificate

	Redact    *secret.Redactor  // applied to messages and notes; nil = one that knows Key and Base
	Transport http.RoundTripper // nil = a pool of connections of the client's own
}

// withDefaults fills what was left open, and reports everything that is wrong.
func (cfg Config) withDefaults() (Config, error) {
	var problems []error
	if cfg.Wire != OpenAI && cfg.Wire != Anthropic {
		problems = append(problems, fmt.Errorf("unknown wire %q: want openai or anthropic", cfg.Wire))
	}
	if cfg.Model == "" {
		problems = append(problems, errors.New("no model: name one"))
	}
	if cfg.Tools != nil && !json.Valid(cfg.Tools) {
		problems = append(problems, errors.New("tools are not JSON"))
	}
	if cfg.MaxTokens < 0 || cfg.Timeout < 0 || cfg.GapTimeout < 0 || cfg.MaxAnswer < 0 {
		problems = append(problems, errors.New("a limit is negative: want 0 for the default, or more"))
	}
	if len(cfg.Prompts) == 0 {
		cfg.Prompts = []string{DefaultPrompt}
	}
	cfg.MaxTokens = orDefault(cfg.MaxTokens, DefaultMaxTokens)
	cfg.Timeout = orDefault(cfg.Timeout, DefaultTimeout)
	cfg.GapTimeout = orDefault(cfg.GapTimeout, DefaultGapTimeout)
	cfg.MaxAnswer = orDefault(cfg.MaxAnswer, DefaultMaxAnswer)
	if cfg.Base == "" {
		cfg.Base = map[Wire]string{OpenAI: "https://api.openai.com/v1", Anthropic: "https://api.anthropic.com"}[cfg.Wire]
	}
	if cfg.Redact == nil {
		cfg.Redact = new(secret.Redactor)
	}
	cfg.Redact.Add(cfg.Key)
	cfg.Redact.AddURL(cfg.Base)
	return cfg, errors.Join(problems...)
}

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// endpoints returns the URL for calls and the one that lists models. The query
// of the base is kept byte for byte. On the Anthropic wire a base that ends in
// /v1 means the same as one without.
func endpoints(cfg Config) (chat, models *url.URL, err error) {
	base, err := url.Parse(cfg.Base)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, nil, errors.New("base URL is not http://host or https://host") // the text may hold a key
	}
	base.Fragment = ""
	if cfg.Wire == OpenAI {
		return below(base, "/chat/completions"), below(base, "/models"), nil
	}
	prefix := "/v1"
	if strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/v1") {
		prefix = ""
	}
	return below(base, prefix+"/messages"), below(base, prefix+"/models"), nil
}

func below(base *url.URL, path string) *url.URL {
	u := *base
	u.Path = strings.TrimRight(u.Path, "/") + path
	if u.RawPath != "" {
		u.RawPath = strings.TrimRight(u.RawPath, "/") + path
	}
	return &u
}

// headers returns what every request carries. A header of the user's comes
// before the credentials of the URL, and those come before the key.
func headers(cfg Config, base *url.URL) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"text/event-stream, application/json"},
		"User-Agent":   {"ordeal"},
	}
	if cfg.Wire == Anthropic {
		h.Set("Anthropic-Version", anthropicVersion)
	}
	switch {
	case cfg.Key == "":
	case cfg.Wire == Anthropic:
		h.Set("X-Api-Key", cfg.Key)
	default:
		h.Set("Authorization", "Bearer "+cfg.Key)
	}
	if base.User != nil {
		password, _ := base.User.Password()
		basic := http.Request{Header: h}
		basic.SetBasicAuth(base.User.Username(), password)
	}
	for name, values := range cfg.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// quote encodes a string, which cannot fail.
func quote(s string) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return data
}
