package report

import (
	"strings"

	"ordeal/controller/result"
)

// faultsLine says what was injected and what that implies; empty when the run
// injected nothing by design.
func (r *reading) faultsLine() string {
	rateOf, known := firstNumber(
		func() (float64, bool) { return r.number("behavior", "fault_rate") },
		func() (float64, bool) { return r.number("fault", "fault_rate") },
		func() (float64, bool) { return r.setting("fault_rate") })
	if !known || r.probe("fault") == nil && r.probe("behavior") == nil {
		return ""
	}
	line := rate(rateOf) + " of calls"
	if retries, ok := firstNumber(
		func() (float64, bool) { return r.number("behavior", "max_retries") },
		func() (float64, bool) { return r.number("fault", "max_retries") },
		func() (float64, bool) { return r.setting("max_retries") }); ok {
		line += ", " + retriesText(retries)
	}
	if floor, ok := r.number("behavior", "recovery_floor"); ok {
		line += " -> recovery floor " + rate(floor) + " (derived from rate and retries)"
	}
	return line + r.backoffText()
}

func retriesText(n float64) string {
	if n == 1 {
		return "1 retry"
	}
	return count(n) + " retries"
}

func (r *reading) backoffText() string {
	text := ""
	if v, ok := r.number("fault", "backoff_waited_s"); ok && v > 0 {
		text += ", back-off " + seconds(v)
	}
	if v, ok := r.number("fault", "backoff_simulated_s"); ok && v > 0 {
		text += ", back-off " + seconds(v) + " (booked, not slept)"
	}
	return text
}

// targetLine names the target and how it was reached.
func (r *reading) targetLine() string { return targetLine(r.Target) }

func targetLine(t result.Target) string {
	name := clean(t.Name)
	if name == "" {
		name = clean(t.URI)
	}
	if t.Version != "" {
		name += " " + clean(t.Version)
	}
	how := clean(t.Kind)
	if t.Transport != "" {
		how += " via " + clean(t.Transport)
	}
	if t.ProtocolVersion != "" {
		how += ", protocol " + clean(t.ProtocolVersion)
	}
	if how == "" {
		return name
	}
	return name + " (" + how + ")"
}

// maxArgs is how much of the arguments a header shows, in columns; the JSON has
// them whole.
const maxArgs = 200

// argsText is the arguments of the called tool and where they came from.
func argsText(t result.Target) string {
	text := fit(clean(string(compact(t.ToolArgs))), maxArgs)
	switch t.ToolArgsSource {
	case "":
	case "user":
		text += " (given)"
	case "none":
		text += " (the tool takes none)"
	default:
		text += " (synthesized: " + clean(t.ToolArgsSource) + ")"
	}
	return strings.TrimSpace(text)
}

// runLine says how much work the numbers rest on.
func (r *reading) runLine() string {
	line := count(float64(r.completeProbes())) + "/" + count(float64(r.plannedProbes())) + " probes complete, " +
		times(r.Run.Calls, "call") + " in " + seconds(r.Run.DurationS)
	if n := len(r.Run.Fleet); n > 0 {
		line += ", " + times(int64(n), "agent")
	}
	if r.Run.Reissued > 0 {
		line += ", " + times(r.Run.Reissued, "operation") + " reissued"
	}
	return line
}
