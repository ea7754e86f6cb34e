package secret

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// minLen is the shortest value redacted by value: shorter ones occur in any
// text by chance.
const minLen = 4

// maxWindow bounds how much of a text Line looks at.
const maxWindow = 64 << 10

// plain are configured values that say nothing; masking them would only damage
// messages. A value that came through a reference is masked even then.
var plain = []string{
	"true", "false", "null", "none", "auto", "stdio", "http", "https", "info", "debug", "warn", "warning", "error",
	"prod", "production", "development", "test", "json", "text/plain", "application/json", "text/event-stream", "bearer", "basic",
}

// Redactor removes known secrets from texts. The zero value knows none, but
// still removes what looks like a credential. It is safe for concurrent use.
type Redactor struct {
	mu      sync.Mutex
	forms   []string // guarded by mu; longest first
	current atomic.Pointer[replacer]
}

type replacer struct {
	*strings.Replacer
	longest int
}

// Add makes values known: every one of at least four bytes is removed from now
// on, in all forms it may appear in.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.forms)
	for _, v := range values {
		if len(v) < minLen {
			continue
		}
		for _, form := range forms(v) {
			if !slices.Contains(r.forms, form) {
				r.forms = append(r.forms, form)
			}
		}
	}
	if len(r.forms) == before {
		return
	}
	// The replacer prefers the earlier of two strings that match at one place.
	slices.SortFunc(r.forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(r.forms))
	for _, form := range r.forms {
		pairs = append(pairs, form, Mask)
	}
	r.current.Store(&replacer{strings.NewReplacer(pairs...), len(r.forms[0])})
}

// AddLiteral makes a configured value known that need not be a secret: words
// such as "true" or "info" are left alone. Of "Bearer x" and the like the part
// behind the scheme is known too.
func (r *Redactor) AddLiteral(value string) {
	if slices.Contains(plain, strings.ToLower(value)) {
		return
	}
	r.Add(value)
	if scheme, credential, ok := strings.Cut(value, " "); ok && !strings.ContainsAny(scheme, "=:,;") {
		r.Add(strings.TrimSpace(credential))
	}
}

// AddURL makes the credentials of a URL known: user, password and the values
// of query parameters with a telling name.
func (r *Redactor) AddURL(raw string) {
	u, err := url.Parse(raw)
	if err != nil {
		return
	}
	if u.User != nil {
		password, _ := u.User.Password()
		r.Add(u.User.Username(), password, u.User.Username()+":"+password, u.User.String())
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if !Telling(name) {
			continue
		}
		r.Add(value)
		if decoded, err := url.QueryUnescape(value); err == nil {
			r.Add(decoded)
		}
	}
}

// Resolve is the package's Resolve for a configured header or environment
// value, and makes the result and every referenced value known.
func (r *Redactor) Resolve(text string) (string, error) {
	value, referenced, err := expand(text)
	if err != nil {
		return "", err
	}
	r.Add(referenced...)
	r.AddLiteral(value)
	return value, nil
}

// Text returns text without secrets. Line ends stay.
func (r *Redactor) Text(text string) string {
	if known := r.current.Load(); known != nil {
		text = known.Replace(text)
	}
	return maskPatterns(text)
}

// Line returns text without secrets as one line of at most max characters:
// white space collapses, control and direction characters are escaped, a cut is
// marked with an ellipsis.
func (r *Redactor) Line(text string, max int) string {
	whole := len(text) <= maxWindow
	if !whole {
		text = text[:maxWindow]
	}
	clean := oneLine(r.Text(text), max)
	if known := r.current.Load(); !whole && known != nil && !strings.HasSuffix(clean, ellipsis) {
		// The window may have cut a secret in two: its head is no known form.
		clean = clean[:len(clean)-min(len(clean), known.longest)] + ellipsis
	}
	return clean
}
