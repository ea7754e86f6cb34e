package report

import (
	"fmt"
	"strings"

	"ordeal/controller/result"
)

func seenDuplicate(r *reading) (string, []string) {
	n, ok := r.number("behavior", "duplicate_mutations")
	if !ok || n == 0 {
		return "", nil
	}
	finding := plural(n, "write was", "writes were") + " applied more than once"
	return finding, []string{r.of("behavior", "duplicate_mutations", "operations read back through the target's own state")}
}

func seenLost(r *reading) (string, []string) {
	n, ok := r.number("behavior", "lost_effects")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "acknowledged write is", "acknowledged writes are") + " missing from the state", nil
}

func seenCrash(r *reading) (string, []string) {
	n, ok := r.number("contract", "crashes")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "malformed call", "malformed calls") + " got no answer at all", r.caseEvidence(hasCrashed)
}

func seenUnvalidated(r *reading) (string, []string) {
	n, ok := r.number("contract", "accepted_invalid")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "call", "calls") + " the schema forbids were answered with success",
		r.caseEvidence(malformed.violation)
}

func hasCrashed(c malformed) bool { return c.Outcome == crashed }

func wentUnanswered(c malformed) bool { return c.Outcome == unanswered }

func seenSilent(r *reading) (string, []string) {
	n, ok := r.number("contract", "unanswered")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "malformed call was", "malformed calls were") + " never answered, though the server lived on", r.caseEvidence(wentUnanswered)
}

func seenOutput(r *reading) (string, []string) {
	n, ok := r.number("contract", "output_violations")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "answer breaks", "answers break") + " the tool's own output schema", []string{r.of("contract", "output_violations", "answers checked")}
}

func seenRecovery(r *reading) (string, []string) {
	c := r.missed("recovery_rate_min")
	if c == nil {
		return "", nil
	}
	observed := []string{r.text("behavior", "recovered") + " of " + r.text("behavior", "disrupted") + " disrupted operations recovered; " + checkEvidence(*c)}
	if kinds := r.counts("behavior", "unrecovered_by_fault_kind"); len(kinds) > 0 {
		observed = append(observed, "Not recovered, by the last fault: "+esc(listed(kinds, 5)))
	}
	return "recovery rate " + actualText(*c) + ", limit " + limitText(*c), observed
}

func seenErrors(r *reading) (string, []string) {
	c := r.missed("error_rate_max")
	if c == nil {
		return "", nil
	}
	observed := []string{checkEvidence(*c)}
	if kinds := r.counts("latency", "errors_by_kind"); len(kinds) > 0 {
		observed = append(observed, "By kind: "+esc(listed(kinds, 6)))
	}
	return "error rate " + actualText(*c) + ", limit " + limitText(*c), observed
}

func seenSession(r *reading) (string, []string) {
	for _, probe := range r.Probes {
		for _, name := range []string{"outcomes", "session_lost"} {
			n, _ := r.number(probe.Name, name)
			for _, t := range r.counts(probe.Name, name) {
				if t.name == "session_lost" {
					n = t.number()
				}
			}
			if n > 0 {
				return plural(n, "call", "calls") + " met a lost session", nil
			}
		}
	}
	return "", nil
}

func seenQuota(r *reading) (string, []string) {
	n, ok := r.number("latency", "rate_limited")
	if !ok || n == 0 {
		return "", nil
	}
	waits := "`Retry-After` seen: " + r.text("latency", "quota_retry_after_s")
	if _, known := r.number("latency", "quota_retry_after_s"); !known {
		waits = "No refusal said when to come back"
	}
	observed := []string{waits}
	if limit, known := r.number("latency", "quota_limit"); known {
		observed = append(observed, "Limit named: "+count(limit)+" calls, window "+r.text("latency", "quota_window_s"))
	}
	return plural(n, "baseline call was", "baseline calls were") + " refused for quota", observed
}

func seenLatency(r *reading) (string, []string) {
	c := r.missed("p95_latency_ms")
	if c == nil {
		c = r.missed("p99_latency_ms")
	}
	if c == nil {
		return "", nil
	}
	observed := []string{"p50 " + r.text("latency", "p50_s") + "; " + checkEvidence(*c)}
	if v, ok := r.number("latency", "tool_call_overhead_s"); ok && v > 0 {
		observed = append(observed, seconds(v)+" of it is outside the execution time the server reports for itself")
	}
	return checkName(c.Key) + " " + actualText(*c) + ", limit " + limitText(*c), observed
}

// heavyTail is the p99/p50 from which a tail is a matter of its own, provided
// that its p99 takes this many seconds.
const (
	heavyTail  = 3
	noticeable = 0.05
)

func seenTail(r *reading) (string, []string) {
	ratio, ok := r.number("latency", "tail_ratio")
	if slow, _ := r.number("latency", "observed_p99_s"); !ok || ratio < heavyTail || slow < noticeable {
		return "", nil
	}
	p99 := r.text("latency", "p99_s")
	if p99 == absent {
		p99 = r.text("latency", "observed_p99_s") + " (observed, too few samples to score)"
	}
	return "p99 is " + quantity(ratio, "x") + " p50", []string{"p50 " + r.text("latency", "p50_s") + ", p99 " + p99}
}

func seenCost(r *reading) (string, []string) {
	tokens := "mean input " + r.text("cost", "mean_input_tokens") + ", fixed part " + r.text("cost", "static_prefix_tokens") +
		", output " + r.text("cost", "mean_output_tokens")
	if c := r.missed("cost_per_request_max"); c != nil {
		return "cost per request " + actualText(*c) + ", limit " + limitText(*c), []string{tokens, checkEvidence(*c)}
	}
	if r.metric("cost", "bloat_detected").Value == true {
		return r.text("cost", "bloat_share") + " of the input is the same on every call", []string{tokens}
	}
	return "", nil
}

func seenConcurrency(r *reading) (string, []string) {
	level, ok := r.number("concurrency", "saturation_point")
	if !ok || level <= 0 {
		return "", nil
	}
	return "errors from " + plural(level, "concurrent caller", "concurrent callers") + " on",
		[]string{"Sustained: " + r.text("concurrency", "max_sustained_concurrency") + "; peak goodput " + r.text("concurrency", "peak_throughput_rps")}
}

func seenAmplification(r *reading) (string, []string) {
	c := r.missed("retry_amplification_max")
	if c == nil {
		return "", nil
	}
	return "retry amplification " + actualText(*c) + ", limit " + limitText(*c), []string{checkEvidence(*c)}
}

// of is "3 of 40 things", the count of a metric and its denominator.
func (r *reading) of(probe, name, things string) string {
	m := r.metric(probe, name)
	return r.text(probe, name) + " of " + denominator(m.N) + " " + things
}

// checkEvidence is what a check rests on.
func checkEvidence(c result.Check) string {
	text := fmt.Sprintf("%s with n %s", actualText(c), denominator(c.N))
	if c.Interval != nil {
		text += ", 95% interval " + interval(c.Interval, c.Unit)
	}
	if c.Status == result.Undecided {
		text += "; not proven: the interval still holds the limit"
	}
	return text
}

func plural(n float64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// seenProtocol takes the sentences of the findings: one for each thing the
// server does against its protocol.
func seenProtocol(r *reading) (string, []string) {
	var observed []string
	for _, f := range r.actionable() {
		if strings.HasSuffix(f.ID, ".protocol") {
			observed = append(observed, "From the server: "+esc(fit(strings.TrimPrefix(clean(f.Message), "Protocol: "), 240)))
		}
	}
	if len(observed) == 0 {
		return "", nil
	}
	return plural(float64(len(observed)), "kind of message breaks", "kinds of messages break") + " the protocol", observed
}

// seenQueueing leaves the words to the finding of the probe.
func seenQueueing(*reading) (string, []string) { return "", nil }
