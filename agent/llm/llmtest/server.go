package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Plan decides how a request is answered. It is called from several goroutines.
type Plan func(Request) Answer

// Server is the endpoint. It is an http.Handler; New also makes it listen.
type Server struct {
	URL string // http://127.0.0.1:port; set by New

	plan    Plan
	mu      sync.Mutex // guards what follows
	key     string
	refused []string
	journal []*Entry
}

// Request is what a Plan sees.
type Request struct {
	N         int // number of the request, from 0
	Wire      Wire
	Model     string
	Stream    bool
	MaxTokens int
	Usage     bool   // a stream was asked to report usage
	Prompt    string // text of the last message
	Header    http.Header
	Path      string // path and query as they arrived
	Body      []byte
}

// Entry is one line of the journal.
type Entry struct {
	Request
	Received time.Time // when the handler was entered
	Headers  time.Time // when the response headers had been flushed
	Tokens   []Sent    // every event with generated content
	Done     time.Time // when the handler returned
}

// Sent is the moment of one token: just before its write, and after its flush.
type Sent struct{ Before, After time.Time }

// NewHandler returns a server that does not listen.
func NewHandler(plan Plan) *Server { return &Server{plan: plan} }

// New returns a listening server, closed when the test ends.
func New(t testing.TB, plan Plan) *Server {
	t.Helper()
	s := NewHandler(plan)
	listener := httptest.NewServer(s)
	s.URL = listener.URL
	t.Cleanup(listener.Close)
	return s
}

// RequireKey makes the server refuse requests without this API key.
func (s *Server) RequireKey(key string) { s.stamp(func() { s.key = key }) }

// Reject makes the server refuse requests with one of these top-level fields, as
// servers that do not know them do, and no others.
func (s *Server) Reject(fields ...string) { s.stamp(func() { s.refused = fields }) }

// Always answers every request alike.
func Always(a Answer) Plan { return func(Request) Answer { return a } }

// Sequence gives the n-th request the n-th answer, and the last one to those
// that follow.
func Sequence(answers ...Answer) Plan {
	return func(r Request) Answer { return answers[min(r.N, len(answers)-1)] }
}

// ByModel chooses the answer by the model asked for; an unknown one is a 404.
func ByModel(answers map[string]Answer) Plan {
	return func(r Request) Answer {
		if a, ok := answers[r.Model]; ok {
			return a
		}
		return Answer{Status: http.StatusNotFound}
	}
}

// Journal returns a copy of what has been asked so far, in order of arrival.
func (s *Server) Journal() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Entry, len(s.journal))
	for i, e := range s.journal {
		all[i] = *e
		all[i].Tokens = append([]Sent(nil), e.Tokens...)
	}
	return all
}

// Forget empties the journal; requests in flight are no longer recorded. The
// numbering starts again at 0.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = nil
}

// ServeHTTP answers one request according to the plan.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the client is gone
	}
	wire := wireOf(r)
	if r.URL.Path == "/v1/models" && r.Method == http.MethodGet {
		s.models(w, wire, r.Header)
		return
	}
	e := s.enter(wire, r, body, received)
	defer s.stamp(func() { e.Done = time.Now() })
	x := &exchange{server: s, entry: e, w: w, gone: r.Context().Done()}
	if bad, status := s.refuse(e, r); bad != nil {
		x.fail(status, *bad)
		return
	}
	x.answer = s.plan(e.Request)
	x.run()
}

func wireOf(r *http.Request) Wire {
	if r.URL.Path == "/v1/messages" || r.Header.Get("Anthropic-Version") != "" {
		return Anthropic
	}
	return OpenAI
}

// enter reads the request and writes it into the journal.
func (s *Server) enter(wire Wire, r *http.Request, body []byte, received time.Time) *Entry {
	e := &Entry{Received: received, Request: Request{
		Wire: wire, Header: r.Header.Clone(), Path: r.URL.RequestURI(), Body: body,
	}}
	var req struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int    `json:"max_tokens"`
		MaxNew    int    `json:"max_completion_tokens"`
		Options   struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &req) == nil { // refuse reports what is missing
		e.Model, e.Stream, e.Usage = req.Model, req.Stream, req.Options.Usage
		e.MaxTokens = max(req.MaxTokens, req.MaxNew)
		if n := len(req.Messages); n > 0 {
			e.Prompt = contentText(req.Messages[n-1].Content)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.N = len(s.journal)
	s.journal = append(s.journal, e)
	return e
}

// contentText joins the text of a message, which is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}

// refuse returns the error for a request that the API would not accept.
func (s *Server) refuse(e *Entry, r *http.Request) (*APIError, int) {
	if !s.authorized(e.Wire, r.Header) {
		bad := defaultError(e.Wire, http.StatusUnauthorized)
		return &bad, http.StatusUnauthorized
	}
	if path := map[Wire]string{OpenAI: "/v1/chat/completions", Anthropic: "/v1/messages"}[e.Wire]; r.URL.Path != path {
		return &APIError{Type: "invalid_request_error", Message: "Invalid URL (" + r.URL.Path + ")"}, http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		return &APIError{Type: "invalid_request_error", Message: "method not allowed"}, http.StatusMethodNotAllowed
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(e.Body, &fields); err != nil {
		return &APIError{Type: "invalid_request_error", Message: "body is not a JSON object"}, http.StatusBadRequest
	}
	var unknown []string
	s.stamp(func() { unknown = s.refused })
	for _, name := range unknown {
		if _, ok := fields[name]; ok {
			return &APIError{Type: "invalid_request_error", Code: "unsupported_parameter", Param: name,
				Message: fmt.Sprintf("Unsupported parameter: '%s'.", name)}, http.StatusBadRequest
		}
	}
	if missing := missingPart(e, fields); missing != "" {
		return &APIError{Type: "invalid_request_error", Param: missing, Message: missing + ": field required"}, http.StatusBadRequest
	}
	return nil, 0
}

// missingPart names a required part of the request that is not there.
func missingPart(e *Entry, fields map[string]json.RawMessage) string {
	switch {
	case e.Model == "":
		return "model"
	case len(fields["messages"]) < len(`[{}]`):
		return "messages"
	case e.Wire == Anthropic && e.MaxTokens < 1:
		return "max_tokens"
	case e.Wire == Anthropic && e.Header.Get("Anthropic-Version") == "":
		return "anthropic-version"
	}
	return ""
}

// authorized knows both ways a key comes on the Anthropic wire: x-api-key, and
// the bearer token its SDKs send since API version 2026-10-21.
func (s *Server) authorized(wire Wire, h http.Header) bool {
	var key string
	s.stamp(func() { key = s.key })
	if key == "" || h.Get("Authorization") == "Bearer "+key {
		return true
	}
	return wire == Anthropic && h.Get("X-Api-Key") == key
}

// models answers the cheap request that tells whether the endpoint lives.
func (s *Server) models(w http.ResponseWriter, wire Wire, h http.Header) {
	w.Header().Set("Content-Type", "application/json")
	if !s.authorized(wire, h) {
		w.WriteHeader(http.StatusUnauthorized)
		w.Write(errorBody(wire, defaultError(wire, http.StatusUnauthorized), "req_models"))
		return
	}
	io.WriteString(w, `{"object":"list","data":[{"id":"test-model","object":"model","type":"model"}]}`)
}

func (s *Server) stamp(set func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set()
}
