package report

import (
	"fmt"
	"slices"
	"strings"

	"ordeal/controller/result"
)

// topic is one thing that can be wrong with a target, and what to say of it.
type topic struct {
	key    string // also the name of its patch files
	title  string
	claims []string // prefixes of the finding ids it speaks for; "*" stands for any probe
	about  []string // metrics whose caveats belong in front of the advice, probe.metric
	// seen tells whether the document shows it: the finding in one line and
	// what was observed, both as Markdown. An empty finding means no.
	seen   func(*reading) (finding string, observed []string)
	cause  string
	model  string // the cause when the target is a model endpoint; empty = cause
	effect string // what it does in production
	check  string // how to tell that it is fixed
}

// topics in the order of severity: lost or doubled data, then crashes, then
// what a caller feels.
var topics = []topic{
	{
		key: "duplicate", title: "Writes applied twice", claims: []string{"*.duplicate"}, about: []string{"behavior.duplicate_mutations"},
		seen:   seenDuplicate,
		cause:  "A call is applied each time it arrives. When its reply is lost after the work is done, the caller cannot know and sends it again.",
		effect: "Two charges, two mails, two rows. Nothing in the caller's log looks wrong, because each call succeeded once from where it stands.",
		check:  "Send the same call twice with one idempotency key: same answer, one entry in the state.",
	},
	{
		key: "lost", title: "Acknowledged writes that left no trace", claims: []string{"behavior.lost_effect"}, about: []string{"behavior.lost_effects"},
		seen:   seenLost,
		cause:  "The answer goes out before the work is durable: a task in the background, a buffer, a commit nobody waits for.",
		effect: "The caller goes on as if the write had happened. It is found missing days later, with nothing to trace it by.",
		check:  "Kill the server right after an answer; the write is still there after a restart.",
	},
	{
		key: "crash", title: "Crashes on malformed input", claims: []string{"contract.crash"}, about: []string{"contract.crash_rate", "contract.crashes"},
		seen:   seenCrash,
		cause:  "An exception leaves the handler and takes the process, the connection or the reply with it. Usual source: arguments indexed, parsed or called methods on before anything looked at them.",
		effect: "Every other call in flight on that connection dies too, and the caller gets a transport error it cannot tie to its own input.",
		check:  "Send the call above: an answer with `isError: true` comes back, and the next call on the same connection succeeds.",
	},
	{
		key: "unvalidated", title: "Input the schema forbids is accepted", claims: []string{"contract.accepted_invalid", "contract.invalid_accepted"},
		about:  []string{"contract.accepted_invalid"},
		seen:   seenUnvalidated,
		cause:  "The schema is published but not enforced: the handler trusts what arrives.",
		effect: "Models guess arguments, so malformed calls are normal traffic. A missing or mistyped value is stored or passed on, and the error shows up where nobody can tell its origin.",
		check:  "Send the call above: the answer is an error that names the field (`isError: true`, or JSON-RPC code -32602).",
	},
	{
		key: "recovery", title: "Operations that do not come back after a fault", claims: []string{"*.recover", "*.unrecovered", "*.surviv", "behavior.loop"},
		about:  []string{"behavior.recovery_rate"},
		seen:   seenRecovery,
		cause:  "A cut call leaves something behind that the next one trips over: a connection in an unknown state, a lock, an open transaction, a dead upstream client that is never replaced.",
		model:  "The endpoint stays unavailable for longer than the retries last, or answers them with the same failure.",
		effect: "Each of these operations is a hard failure for a user, not a slow answer.",
		check:  "Scan again with the same seed: the same calls are disrupted, and they recover.",
	},
	{
		key: "errors", title: "Calls fail without any fault injected", claims: []string{"latency.error", "latency.all_failed", "latency.failures"},
		about:  []string{"latency.error_rate"},
		seen:   seenErrors,
		cause:  "The baseline runs on valid arguments and an undisturbed connection, so these failures are the server's own or its upstream's.",
		model:  "The request is valid and the connection undisturbed, so these failures are the endpoint's own: overload, quota, or answers cut short.",
		effect: "Callers retry them, which multiplies the load at the worst moment.",
		check:  "Run the latency probe alone and read the kinds of error.",
	},
	{
		key: "session", title: "Sessions get lost", claims: []string{"*.session"},
		seen:   seenSession,
		cause:  "Session state lives in the memory of one process, so a restart or a second replica does not know it, or an unknown session is answered with the wrong status.",
		effect: "A client behind a load balancer fails on every call that lands elsewhere; one that is not told 404 never initializes again.",
		check:  "Restart the server between two calls of one client: one new initialize, no failed operation.",
	},
	{
		key: "quota", title: "A quota is met without telling callers when to return", claims: []string{"*.quota", "*.rate_limit"},
		seen:   seenQuota,
		cause:  "Calls are refused for quota. A refusal without `Retry-After` leaves callers to guess, and they guess too early.",
		effect: "Retries eat the very quota they wait for.",
		check:  "Exceed the quota: status 429 with `Retry-After`, and the call succeeds after that time.",
	},
	{
		key: "latency", title: "Latency over the limit", claims: []string{"latency.p95", "latency.p99", "latency.slow", "latency.overhead", "latency.ttft"},
		about:  []string{"latency.p95_s"},
		seen:   seenLatency,
		cause:  "Look first for work done per call that belongs to start-up (clients, connections, configuration) and for independent upstream calls made one after the other.",
		model:  "Time to first token grows with the input, the rest with the output: look which of the two dominates before changing the model or the region.",
		effect: "An agent that calls three tools in a turn pays the p95 three times before its answer begins.",
		check:  "Run the latency probe alone: p95 and its interval are below the limit.",
	},
	{
		key: "tail", title: "Heavy latency tail", claims: []string{"latency.tail", "latency.heavy_tail"}, about: []string{"latency.p99_s", "latency.tail_ratio"},
		seen:   seenTail,
		cause:  "Something happens to a few calls only: a cold start, a retry inside the handler, a lock on a shared client, a collection pause.",
		model:  "Queueing at the provider, cold capacity or a few much longer answers.",
		effect: "Work on the median does not move it. The more calls a turn makes, the surer it meets one of them.",
		check:  "Log one duration per upstream call and look at the slowest hundredth: they have something in common.",
	},
	{
		key: "cost", title: "Tokens paid for again on every call", claims: []string{"cost."}, about: []string{"cost.cost_per_request", "cost.bloat_share"},
		seen:   seenCost,
		cause:  "A fixed part is sent with each request: a long system prompt, tool descriptions, examples.",
		effect: "The bill grows with the number of calls, not with the work done, and every token of it adds to the time to first token.",
		check:  "Cut or cache the fixed part (keep it first and byte-identical so that provider caching applies), then compare mean input tokens.",
	},
	{
		key: "concurrency", title: "Saturates under concurrent callers", claims: []string{"concurrency."},
		about:  []string{"concurrency.max_sustained_concurrency", "concurrency.saturation_point"},
		seen:   seenConcurrency,
		cause:  "One shared client without a pool, a blocking call on an event loop, or a real limit of the dependency that shows as errors, since nothing queues in front of it.",
		model:  "The endpoint sheds load: a limit of the account or of the serving engine's batch.",
		effect: "Agents fan out: a few users with parallel tool calls reach this level, and the failures set off retries.",
		check:  "Run the concurrency probe: the level that failed completes without errors.",
	},
	{
		key: "amplification", title: "Too many calls per operation", claims: []string{"*.amplif", "*.retry_amplif"}, about: []string{"behavior.retry_amplification"},
		seen:   seenAmplification,
		cause:  "Retries at several layers multiply, or they run without a budget.",
		effect: "A short outage of a dependency becomes a long one, held up by retries.",
		check:  "Retry at one layer only, with jitter and a budget (say 10 % of calls), then scan again.",
	},
}

// speaksFor reports whether a finding belongs to the topic.
func (t topic) speaksFor(f result.Finding) bool {
	_, name, _ := strings.Cut(f.ID, ".")
	return slices.ContainsFunc(t.claims, func(c string) bool {
		return strings.HasPrefix(f.ID, c) || strings.HasPrefix("*."+name, c)
	})
}

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
	return plural(n, "malformed call", "malformed calls") + " got no answer at all", r.caseEvidence(func(c malformed) bool { return c.fate() == crashed })
}

func seenUnvalidated(r *reading) (string, []string) {
	n, ok := r.number("contract", "accepted_invalid")
	if !ok || n == 0 {
		return "", nil
	}
	return plural(n, "call", "calls") + " the schema forbids were answered with success",
		r.caseEvidence(func(c malformed) bool { return c.Forbidden && c.fate() == accepted })
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
	for _, t := range r.counts("latency", "errors_by_kind") {
		if t.name == "rate_limit" && t.number() > 0 {
			return plural(t.number(), "baseline call was", "baseline calls were") + " refused for quota", nil
		}
	}
	return "", nil
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

// heavyTail is the p99/p50 from which a tail is a matter of its own.
const heavyTail = 3

func seenTail(r *reading) (string, []string) {
	ratio, ok := r.number("latency", "tail_ratio")
	if !ok || ratio < heavyTail {
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
		", output " + r.text("cost", "mean_output_tokens") + " (tokens)"
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
