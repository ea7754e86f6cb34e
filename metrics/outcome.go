package metrics

import (
	"fmt"
	"strings"
)

// Outcome is what became of one attempt. Exactly one applies; it is decided by
// structure first (HTTP status, JSON-RPC code, isError, process state) and by
// text only as a last resort.
type Outcome uint8

const (
	OK              Outcome = iota // a complete, well-formed success
	ToolError                      // the tool answered isError: true
	ProtocolError                  // a JSON-RPC error, or an API error that blames the request
	InvalidResponse                // an answer came, but it is not what the protocol demands
	RateLimited                    // refused for quota: 429, or its equivalent inside a tool error
	AuthRequired                   // 401, 403 or an authorization challenge
	ServerError                    // 5xx, overloaded
	Timeout                        // no complete answer within the per-call limit
	Cancelled                      // the run was stopped while the call was in flight
	SessionLost                    // the server no longer knows the session
	Connection                     // refused, reset, closed, died: the transport failed
	HarnessError                   // our side failed; says nothing about the target
	Recycled                       // a kept connection was closed as a call of a load went out on it
	numOutcomes
)

var outcomeNames = [numOutcomes]string{
	"ok", "tool_error", "protocol_error", "invalid_response", "rate_limited", "auth_required",
	"server_error", "timeout", "cancelled", "session_lost", "connection", "harness_error", "recycled",
}

// Outcomes lists every outcome in its fixed order.
func Outcomes() []Outcome {
	all := make([]Outcome, numOutcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

func (o Outcome) String() string {
	if o < numOutcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// MarshalText writes the stable name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the stable name; an unknown one is an error.
func (o *Outcome) UnmarshalText(text []byte) error {
	for i, name := range outcomeNames {
		if name == string(text) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %q: want one of %s", text, strings.Join(outcomeNames[:], ", "))
}

// Kind is the coarser error kind that RateMyAgent reports use (its ErrorKind);
// empty for OK.
func (o Outcome) Kind() string {
	switch o {
	case OK:
		return ""
	case Timeout:
		return "timeout"
	case RateLimited:
		return "rate_limit"
	case ServerError:
		return "server_error"
	case Connection, SessionLost:
		return "connection"
	case ProtocolError, AuthRequired:
		return "protocol"
	case ToolError, InvalidResponse:
		return "invalid_response"
	case Cancelled, Recycled:
		return o.String()
	}
	return "unknown"
}

// Measured reports whether the attempt says anything about the target. A
// cancelled call and a failure of our own leave numerator and denominator; so does
// a call that met the end of an idle connection, which every client meets now and
// then and may not repeat.
func (o Outcome) Measured() bool {
	return o < numOutcomes && o != Cancelled && o != HarnessError && o != Recycled
}

// Origin tells who caused the outcome.
type Origin uint8

const (
	FromTarget    Origin = iota // the target itself
	FromInjector                // the fault layer, at call level
	FromProxy                   // a fault or failure of the proxy on the wire
	FromGenerator               // the load generator: out of ports, descriptors, time
)

var originNames = [...]string{"target", "injected", "proxy", "generator"}

func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// MarshalText writes the stable name.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the stable name.
func (o *Origin) UnmarshalText(text []byte) error {
	for i, name := range originNames {
		if name == string(text) {
			*o = Origin(i)
			return nil
		}
	}
	return fmt.Errorf("unknown origin %q", text)
}

// Tri is a fact that may be unknown. The zero value is Unknown.
type Tri uint8

const (
	Unknown Tri = iota
	No
	Yes
)

var triNames = [...]string{"unknown", "no", "yes"}

func (t Tri) String() string { return triNames[t] }

// MarshalText writes unknown, no or yes.
func (t Tri) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads unknown, no or yes.
func (t *Tri) UnmarshalText(text []byte) error {
	for i, name := range triNames {
		if name == string(text) {
			*t = Tri(i)
			return nil
		}
	}
	return fmt.Errorf("unknown truth value %q: want yes, no or unknown", text)
}
