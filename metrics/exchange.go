package metrics

import (
	"encoding/json"
	"time"
)

// Exchange is what one attempt of one operation brought: a request that went
// out (or was held back by the fault layer) and what came back.
type Exchange struct {
	Outcome   Outcome
	Origin    Origin
	Delivered bool // did an answer for this call come back at all
	Executed  Tri  // did the target carry the call out
	// Recycled marks a Connection failure that met the end of a connection kept from
	// an earlier call, before a byte of an answer: a load counts it as Recycled.
	Recycled bool
	Fault    string // name of the injected fault kind, empty for none
	// FaultRealized is what the injected fault amounted to, when that differs
	// from Fault: a malformed or lost reply that had failed anyway.
	FaultRealized string

	Latency    time.Duration   // request sent until the complete answer (service time)
	FirstByte  time.Duration   // until the first byte of the answer; 0 unknown
	TTFT       time.Duration   // until the first content token of a stream; 0 none
	Gaps       []time.Duration // between tokens of a stream, in order
	ServerTime time.Duration   // the server's own figure (Server-Timing); 0 none
	ClientTime time.Duration   // spent by us answering the server in mid-call

	Status     int // HTTP status; 0 none
	Code       int // JSON-RPC error code; 0 none
	RetryAfter time.Duration
	// Quota describes a detected quota: where it was seen (http_status,
	// header, tool_error_structured, tool_error_text), empty for none.
	Quota       string
	QuotaLimit  int64 // requests per window when a header says so; 0 unknown
	QuotaWindow time.Duration

	Usage      bool // the target reported token usage
	TokensIn   int64
	TokensOut  int64
	CachedIn   int64 // input tokens read from the provider's prompt cache
	BytesOut   int64
	BytesIn    int64
	Truncated  bool            // a stream that ended without its end marker, or by a length limit
	ByText     bool            // the outcome was decided by text, not by structure
	Message    string          // one-line excerpt of the error, at most 200 characters, redacted
	Notes      []string        // protocol findings that do not change the outcome
	Structured json.RawMessage // structuredContent of a tool result, when asked for
	Text       string          // text content of a tool result, when asked for
}

// Ok reports a success.
func (x *Exchange) Ok() bool { return x.Outcome == OK }
