package web

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

// Defaults of Config.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxAnswer = 64 << 20
	DefaultIdle      = 512
)

// idleTime of a kept connection is below what common servers keep theirs for: one
// that is about to be closed is not used.
const idleTime = 4 * time.Second

// Config says whom to ask and how. Values are final: references to secrets have
// been resolved.
type Config struct {
	Method string // GET or POST
	URL    string
	Header http.Header // added to each request; replaces ours of the same name
	Body   string      // of a POST, where a call brings none of its own

	Timeout   time.Duration // of the whole call; 0 = DefaultTimeout
	MaxAnswer int64         // bytes of one answer; 0 = DefaultMaxAnswer
	Idle      int           // connections kept; 0 = DefaultIdle
	Insecure  bool          // accept any TLS certificate

	Redact    *secret.Redactor  // applied to messages and notes; nil = one that knows URL
	Transport http.RoundTripper // nil = a pool of connections of the client's own
}

// withDefaults fills what was left open, and reports everything that is wrong.
func (cfg Config) withDefaults() (Config, error) {
	var problems []error
	if cfg.Method != http.MethodGet && cfg.Method != http.MethodPost {
		problems = append(problems, fmt.Errorf("method %.20q: want GET or POST", cfg.Method))
	}
	if cfg.Timeout < 0 || cfg.MaxAnswer < 0 || cfg.Idle < 0 {
		problems = append(problems, errors.New("a limit is negative: want 0 for the default, or more"))
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxAnswer == 0 {
		cfg.MaxAnswer = DefaultMaxAnswer
	}
	if cfg.Idle == 0 {
		cfg.Idle = DefaultIdle
	}
	if cfg.Redact == nil {
		cfg.Redact = new(secret.Redactor)
	}
	cfg.Redact.AddURL(cfg.URL)
	return cfg, errors.Join(problems...)
}

// endpoint parses the URL, and moves its userinfo into a header: it must not reach
// a log by way of the URL. The text of a URL that is none may hold a secret.
func endpoint(cfg *Config) (*url.URL, http.Header, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, errors.New("the URL is not http://host or https://host: check the host, port and percent-encoding")
	}
	h := http.Header{"User-Agent": {"ordeal"}, "Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	if u.User != nil {
		password, _ := u.User.Password()
		basic := http.Request{Header: h}
		basic.SetBasicAuth(u.User.Username(), password)
		cfg.Redact.Add(strings.TrimPrefix(h.Get("Authorization"), "Basic "))
		u.User = nil
	}
	u.Fragment = ""
	if cfg.Method == http.MethodPost {
		h.Set("Content-Type", contentType(cfg.Body))
	}
	for name, values := range cfg.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return u, h, nil
}

// contentType of a body for which the user names none. Without a body of its own a
// target gets those of a workload, which are JSON.
func contentType(body string) string {
	if body == "" || json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// isJSON reports a media type of JSON: application/json, or a name with +json.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}
