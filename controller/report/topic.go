package report

import (
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
		key: "silent", title: "Malformed input is never answered", claims: []string{"contract.unanswered"},
		seen:   seenSilent,
		cause:  "An error is caught and dropped, or the reply waits for something that never comes.",
		effect: "The caller waits for its whole time limit before it may try anything else.",
		check:  "Send the call above: an error comes back at once.",
	},
	{
		key: "output", title: "Answers break the output schema", claims: []string{"contract.output_violation"},
		seen:   seenOutput,
		cause:  "`structuredContent` is built by hand beside the schema, and the two have drifted apart.",
		effect: "Clients that validate drop the answer; those that do not read a field that is not there.",
		check:  "Validate each answer against `outputSchema` in the server's own tests.",
	},
	{
		key: "recovery", title: "Operations that do not come back after a fault", claims: []string{"*.recover", "*.unrecovered", "*.surviv", "*.slow_recovery", "behavior.clean_failures", "behavior.loop", "behavior.exhausted"},
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
		key: "quota", title: "Calls are refused for quota", claims: []string{"*.quota", "*.rate_limit"},
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
		key: "concurrency", title: "Saturates under concurrent callers", claims: []string{"concurrency.saturation", "concurrency.broken_at_once"},
		about:  []string{"concurrency.max_sustained_concurrency", "concurrency.saturation_point"},
		seen:   seenConcurrency,
		cause:  "One shared client without a pool, a blocking call on an event loop, or a real limit of the dependency that shows as errors, since nothing queues in front of it.",
		model:  "The endpoint sheds load: a limit of the account or of the serving engine's batch.",
		effect: "Agents fan out: a few users with parallel tool calls reach this level, and the failures set off retries.",
		check:  "Run the concurrency probe: no level fails more than 5 % of its calls.",
	},
	{
		key: "queueing", title: "Slows down under concurrent callers", claims: []string{"concurrency.latency_knee"},
		about:  []string{"concurrency.latency_knee_at"},
		seen:   seenQueueing,
		cause:  "Calls wait for each other: one shared client or connection, a lock, a blocking call on an event loop, or a pool smaller than the number of callers.",
		model:  "The endpoint queues: a limit of the account or of the serving engine's batch.",
		effect: "Agents fan out. The last call of a fan-out waits for all others, and time limits are met by queueing instead of work.",
		check:  "Run the concurrency probe: p95 of every level is within three times that of the first, or below 50 ms.",
	},
	{
		key: "protocol", title: "Messages that break the protocol", claims: []string{"*.protocol"},
		seen:   seenProtocol,
		cause:  "Log lines on standard output, answers written by hand, or a proxy that rewrites them.",
		effect: "This client goes on. A stricter one drops the reply or the session, and its user sees a call that never ends.",
		check:  "Log to standard error, leave the framing to the SDK, and scan again: the line is gone.",
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
