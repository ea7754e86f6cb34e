package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Kind is a kind of fault. The numbers are part of the drawn schedule: a new
// kind is added at the end.
type Kind uint8

const (
	None              Kind = iota // no fault
	Timeout                       // silence until the caller gives up
	RateLimit                     // refused with status 429 and a hint when to come back
	ServerError                   // refused with status 500
	Malformed                     // answered, and the answer cut short
	ConnectionRefused             // nobody listens
	ResponseLost                  // done by the target, and the answer dropped

	kindCount
)

// Facts is what is known of a kind before it is injected.
type Facts struct {
	// ReachesTarget: the call is forwarded and may be executed.
	ReachesTarget bool
	// Delivered: the caller receives something.
	Delivered bool
	// OptIn: injected only where the user allows mutating calls, because a
	// caller that retries may then do its work twice.
	OptIn bool
	// Latency is what a call that never reaches the target takes by default;
	// 0 where the target's own latency counts.
	Latency time.Duration
	// RetryAfter is the wait named to the caller; 0 when none is named.
	RetryAfter time.Duration
	// Status is the HTTP status shown; 0 where there is no such reply.
	Status int
}

const (
	shortCircuit   = 20 * time.Millisecond
	defaultTimeout = 30 * time.Second
)

var kinds = [kindCount]struct {
	name  string
	facts Facts
}{
	None:              {"none", Facts{ReachesTarget: true, Delivered: true}},
	Timeout:           {"timeout", Facts{Latency: defaultTimeout}},
	RateLimit:         {"rate_limit", Facts{Delivered: true, Latency: shortCircuit, RetryAfter: time.Second, Status: 429}},
	ServerError:       {"server_error", Facts{Delivered: true, Latency: shortCircuit, Status: 500}},
	Malformed:         {"malformed", Facts{ReachesTarget: true, Delivered: true}},
	ConnectionRefused: {"connection_refused", Facts{Latency: shortCircuit}},
	ResponseLost:      {"response_lost", Facts{ReachesTarget: true, OptIn: true}},
}

// DefaultKinds returns the kinds that need no permission, in their order.
func DefaultKinds() []Kind {
	return []Kind{Timeout, RateLimit, ServerError, Malformed, ConnectionRefused}
}

// Facts returns what is known of k. An unknown kind has none.
func (k Kind) Facts() Facts {
	if k >= kindCount {
		return Facts{}
	}
	return kinds[k].facts
}

// String returns the stable name of k.
func (k Kind) String() string {
	if k >= kindCount {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kinds[k].name
}

// MarshalText writes the stable name; a number without one is an error.
func (k Kind) MarshalText() ([]byte, error) {
	if k >= kindCount {
		return nil, fmt.Errorf("fault kind %d has no name", uint8(k))
	}
	return []byte(kinds[k].name), nil
}

// UnmarshalText reads what MarshalText wrote, "none" included.
func (k *Kind) UnmarshalText(text []byte) error {
	if string(text) == kinds[None].name {
		*k = None
		return nil
	}
	parsed, err := ParseKind(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

// ParseKind reads the name of a fault; the error lists the valid ones.
func ParseKind(name string) (Kind, error) {
	names := make([]string, 0, kindCount-1)
	for k := Timeout; k < kindCount; k++ {
		if name == kinds[k].name {
			return k, nil
		}
		names = append(names, kinds[k].name)
	}
	return None, fmt.Errorf("unknown fault kind %q (valid: %s)", name, strings.Join(names, ", "))
}
