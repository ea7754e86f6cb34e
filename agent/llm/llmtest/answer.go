package llmtest

import (
	"net/http"
	"time"
)

// Wire is the protocol a request came in.
type Wire string

const (
	OpenAI    Wire = "openai"
	Anthropic Wire = "anthropic"
)

// Stop says why a generation ended, in the words of neither provider.
type Stop string

const (
	StopNatural Stop = ""        // finish_reason stop or tool_calls; stop_reason end_turn or tool_use
	StopLength  Stop = "length"  // finish_reason length; stop_reason max_tokens
	StopFilter  Stop = "filter"  // finish_reason content_filter; stop_reason refusal
	StopRefusal Stop = "refusal" // OpenAI: text in delta.refusal; Anthropic: stop_reason refusal
)

// Fault is one way to fail. Those of a stream act after Answer.After tokens.
type Fault string

const (
	NoFault Fault = ""

	// In the stream, after a 200.
	ErrorEvent  Fault = "error-event"  // an error object inside the stream; OpenAI's [DONE] still follows
	BareError   Fault = "bare-error"   // the error object as a line without "data:", then a clean end
	Reset       Fault = "reset"        // TCP reset
	ChunkCut    Fault = "chunk-cut"    // connection closed without the last chunk
	CleanCut    Fault = "clean-cut"    // clean end without an end marker
	HalfEvent   Fault = "half-event"   // half a data line, then a clean end
	BadJSON     Fault = "bad-json"     // one event whose data is not JSON, then the rest as if nothing were wrong
	Stall       Fault = "stall"        // silence with the connection open, until the client leaves
	PingStall   Fault = "ping-stall"   // as Stall, but with a keep-alive (comment, ping) every Gap
	Duplicate   Fault = "duplicate"    // every token event sent twice
	Noise       Fault = "noise"        // legal oddities of the format: CRLF, comments, split data, retry, ids
	NoData      Fault = "no-data"      // before each event one without data: legal and to be ignored, though the OpenAI SDKs trip over it
	NoMarker    Fault = "no-marker"    // the last event ([DONE], message_stop) missing
	HalfMarker  Fault = "half-marker"  // the last event cut in half
	NoFinish    Fault = "no-finish"    // no finish_reason (stop_reason), but the last event is there
	LateExtra   Fault = "late-extra"   // the connection stays open after the last event, until the client leaves
	EmptyChoice Fault = "empty-choice" // only chunks without a choice (without a block), then the end marker

	// Instead of a stream.
	JSONBody    Fault = "json-body"    // the whole completion as one JSON document, though a stream was asked for
	HTML        Fault = "html"         // a web page with status 200
	EmptyBody   Fault = "empty-body"   // nothing with status 200
	EmptyObject Fault = "empty-object" // {} as JSON with status 200
	ShortBody   Fault = "short-body"   // a JSON document that ends before its Content-Length
	BadBody     Fault = "bad-body"     // half a JSON document as the whole body
	NoReply     Fault = "no-reply"     // reset before any header
	Hang        Fault = "hang"         // no header until the client leaves
)

// Answer says how one request is answered. The zero value is a good answer of
// two tokens with usage.
type Answer struct {
	Status int         // HTTP status; 0 = 200. Above 399 the body is an error object.
	Header http.Header // added to the response, replacing what the server would send
	Error  *APIError   // nil = the provider's usual one for Status

	Fault Fault
	After int // tokens sent before the fault acts

	Text      []string // one entry per token; nil = "ok", "."
	Thinking  []string // reasoning sent before the text
	Tools     []ToolCall
	Stop      Stop
	NoUsage   bool
	Input     int64 // input tokens to report; 0 = a quarter of the prompt's bytes, at least 1
	Cached    int64 // part of Input that came from the prompt cache
	Output    int64 // output tokens to report; 0 = tokens sent
	LateStart bool  // hold back the headers, too, until the first token is due

	TTFT time.Duration // wait before the first token
	Gap  time.Duration // wait before every further one
}

// ToolCall is a call the model makes. Its arguments are sent in Parts pieces
// (0 = 1); on the OpenAI wire the pieces of several calls alternate.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON
	Parts     int
}

// APIError is a provider's error object.
type APIError struct {
	Type    string
	Code    string // OpenAI only; empty = null
	Param   string // OpenAI only; empty = null
	Message string
}

func (a Answer) text() []string {
	if a.Text == nil && len(a.Tools) == 0 {
		return []string{"ok", "."}
	}
	return a.Text
}

// Tokens returns n tokens for Answer.Text, each its own word.
func Tokens(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = words[i%len(words)]
	}
	return all
}

var words = [...]string{"alpha ", "beta ", "gamma ", "delta ", "epsilon ", "zeta ", "eta "}

// defaultError is the error object a provider sends with a status.
func defaultError(w Wire, status int) APIError {
	for _, row := range statusErrors {
		if row.status == status && row.wire == w {
			return row.err
		}
	}
	return APIError{Type: "api_error", Message: http.StatusText(status)}
}

var statusErrors = []struct {
	wire   Wire
	status int
	err    APIError
}{
	{OpenAI, 400, APIError{Type: "invalid_request_error", Message: "We could not parse the request."}},
	{OpenAI, 401, APIError{Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."}},
	{OpenAI, 403, APIError{Type: "invalid_request_error", Code: "unsupported_country_region_territory", Message: "Country not supported."}},
	{OpenAI, 404, APIError{Type: "invalid_request_error", Code: "model_not_found", Message: "The model does not exist."}},
	{OpenAI, 429, APIError{Type: "requests", Code: "rate_limit_exceeded", Message: "Rate limit reached for requests."}},
	{OpenAI, 500, APIError{Type: "server_error", Message: "The server had an error while processing your request."}},
	{OpenAI, 503, APIError{Type: "service_unavailable_error", Code: "server_is_overloaded", Message: "The server is overloaded."}},
	{Anthropic, 400, APIError{Type: "invalid_request_error", Message: "The request body is not valid."}},
	{Anthropic, 401, APIError{Type: "authentication_error", Message: "invalid x-api-key"}},
	{Anthropic, 403, APIError{Type: "permission_error", Message: "Your API key does not have permission."}},
	{Anthropic, 404, APIError{Type: "not_found_error", Message: "model not found"}},
	{Anthropic, 413, APIError{Type: "request_too_large", Message: "Request exceeds the maximum size."}},
	{Anthropic, 429, APIError{Type: "rate_limit_error", Message: "Number of requests has exceeded your rate limit."}},
	{Anthropic, 500, APIError{Type: "api_error", Message: "Internal server error"}},
	{Anthropic, 504, APIError{Type: "timeout_error", Message: "Request timed out."}},
	{Anthropic, 529, APIError{Type: "overloaded_error", Message: "Overloaded"}},
}

// Overloaded is the error object for an endpoint that is out of capacity.
func Overloaded(w Wire) *APIError {
	status := 529
	if w == OpenAI {
		status = 503
	}
	e := defaultError(w, status)
	return &e
}
