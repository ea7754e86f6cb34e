package plan

import (
	"fmt"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/controller/spec"
	"ordeal/metrics"
)

// CheckPreflight decides what the one call before the scan means. A target that
// rejects synthesized arguments would make every payload-dependent probe
// measure that rejection: refused, unless only such probes are selected as
// build their own payloads. Arguments of the user's own are kept, with a
// warning: they vouched for them.
func CheckPreflight(s *spec.Spec, c *Choice, p *wire.Preflight, warn func(string)) error {
	switch p.Outcome {
	case metrics.Connection:
		return &Refusal{"the target could not be reached for a single call: " + p.Message, "check the address, and that the target runs and stays up"}
	case metrics.AuthRequired:
		return &Refusal{"the target asks for authorization: " + p.Message, "pass credentials with --header 'Authorization: Bearer $TOKEN'"}
	case metrics.InvalidResponse:
		warn(fmt.Sprintf("the target's first answer is not what its protocol demands: %s", p.Message))
		return nil // a failure of the target, whatever the arguments: it is measured
	case metrics.ToolError, metrics.ProtocolError:
	default:
		return nil // accepted; or a server error, a quota, a timeout, which say nothing about the arguments
	}
	if c.UserArgs() || len(c.Calls) == 0 {
		warn(fmt.Sprintf("the target rejected the arguments it is to be scanned with: %s", p.Message))
		return nil
	}
	for _, probe := range []string{"latency", "cost", "concurrency", "fault", "behavior"} {
		if s.Selected(probe) {
			return &Refusal{
				fmt.Sprintf("%q rejected the arguments synthesized for it, so the scan would measure that rejection: %s", c.Name(), p.Message),
				fmt.Sprintf("pass --tool %s --tool-args with arguments it accepts, or scan with --probes contract", c.Name()),
			}
		}
	}
	return nil
}

// stopAt ends a ramp: a level at which half of the calls fail.
const stopAt = 0.5

// Stop reports whether the rest of a probe's stages is not worth running: a
// ramp ends after a level at which at least half of the calls fail.
func Stop(st *Stage, merged *merge.Stage) bool {
	if st.Probe != "concurrency" || merged == nil || merged.Tally == nil {
		return false
	}
	n := merged.Tally.Measured()
	return n > 0 && float64(merged.Tally.Failures()) >= stopAt*float64(n)
}
