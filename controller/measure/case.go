package measure

import (
	"encoding/json"
	"strings"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Fates of a malformed call.
const (
	crashed    = "crashed"    // the process or session died, or nothing came back and nobody looked
	unanswered = "unanswered" // nothing came back, and the target was found alive
	accepted   = "accepted"
	rejected   = "rejected"
)

// fateRank orders fates from harmless to worst.
var fateRank = map[string]int{rejected: 0, accepted: 1, unanswered: 2, crashed: 3}

// Case is one malformed call as the report shows it.
type Case struct {
	Tool            string          `json:"tool"`
	Label           string          `json:"label"`
	Kind            string          `json:"kind"`
	Path            string          `json:"path,omitempty"` // JSON pointer to what was corrupted
	Fate            string          `json:"outcome"`        // crashed, unanswered, accepted, rejected
	Outcome         metrics.Outcome `json:"detail"`
	Delivered       bool            `json:"delivered"`
	Forbidden       bool            `json:"forbidden"` // by the tool's own input schema
	Why             string          `json:"why,omitempty"`
	CarriesBaseline bool            `json:"carries_baseline"`
	Attributable    bool            `json:"attributable"`
	WronglyAccepted bool            `json:"wrongly_accepted"`
	Reference       bool            `json:"reference"`
	ByText          bool            `json:"by_text,omitempty"`
	Message         string          `json:"message,omitempty"`
	Exit            string          `json:"exit,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"` // arguments of a smallest call found that shows it

	unverified bool // nobody checked whether the target lived on
	limited    bool // refused for quota
}

// caseOf reads one result. A case is attributable when its answer can be put
// down to the malformation: not when the control just before shows that the
// tool rejects the baseline values the case still carries, and not when the
// answer was a refusal for quota.
func caseOf(tool string, c *wire.CaseResult) Case {
	out := Case{
		Tool: tool, Label: c.Label, Kind: c.Kind, Path: c.Path, Outcome: c.Outcome, Delivered: c.Delivered,
		Forbidden: c.Forbidden, Why: c.Why, CarriesBaseline: c.Carries, Reference: c.Reference,
		ByText: c.ByText, Message: c.Message, Exit: c.Exit,
	}
	out.Fate, out.unverified = fate(c)
	out.limited = c.Outcome == metrics.RateLimited
	rejectedBaseline := c.ControlDelivered && !c.ControlOK && c.Carries
	out.Attributable = !rejectedBaseline && !out.limited
	out.WronglyAccepted = out.Attributable && out.Fate == accepted && c.Forbidden
	if json.Valid(c.Payload) {
		out.Payload = c.Payload
	}
	return out
}

// fate decides what became of a case. It is a crash when something died: the
// process exited, the target no longer answered, or its session had to be opened
// anew, be it that the call was answered first. A target found alive merely did
// not answer. Where nobody looked, silence counts as a crash and is marked.
func fate(c *wire.CaseResult) (fate string, unverified bool) {
	died := c.Exit != "" || c.Alive != nil && !*c.Alive || c.Reconnect != nil && *c.Reconnect
	switch {
	case died:
		return crashed, false
	case c.Delivered && c.Outcome == metrics.OK:
		return accepted, false
	case c.Delivered:
		return rejected, false
	case c.Alive == nil:
		return crashed, true
	}
	return unanswered, false
}

// answered reports that the call shows what the tool does with such input.
func (c *Case) answered() bool { return c.Fate == accepted || c.Fate == rejected }

// field is the path as people write it.
func (c *Case) field() string { return strings.TrimPrefix(c.Path, "/") }

// name of a case for people: tool and label.
func (c *Case) name() string { return c.Tool + ": " + c.Label }

// reproducer is the shortest kept call among the cases that are so, as the
// params of a tools/call; empty when none was kept.
func reproducer(cases []Case, is func(*Case) bool) string {
	var best *Case
	for i := range cases {
		c := &cases[i]
		if is(c) && len(c.Payload) > 0 && (best == nil || len(c.Payload) < len(best.Payload)) {
			best = c
		}
	}
	if best == nil {
		return ""
	}
	call, err := json.Marshal(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{best.Tool, best.Payload})
	if err != nil {
		return ""
	}
	return "tools/call " + string(call)
}

// ending says how the process ended after the first case it did not survive.
func ending(cases []Case) string {
	for i := range cases {
		if c := &cases[i]; c.Fate == crashed && c.Exit != "" {
			return "\n" + c.name() + ": " + c.Exit + ": " + c.Message
		}
	}
	return ""
}
