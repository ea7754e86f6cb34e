package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// checkNames are the words for the thresholds of a policy.
var checkNames = map[string]string{
	"p95_latency_ms":                "p95 latency",
	"p99_latency_ms":                "p99 latency",
	"error_rate_max":                "error rate",
	"cost_per_request_max":          "cost per request",
	"contract_crash_rate_max":       "contract crash rate",
	"contract_invalid_accepted_max": "invalid inputs accepted",
	"recovery_rate_min":             "recovery rate",
	"retry_amplification_max":       "retry amplification",
	"duplicate_mutation_max":        "duplicate mutations",
}

// checkName is the name of a check for a reader; an unknown key is spelled out.
func checkName(key string) string {
	if name, ok := checkNames[key]; ok {
		return name
	}
	return clean(strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(key, "_max"), "_min"), "_", " "))
}

// probeNames are the words for the probes.
var probeNames = map[string]string{
	"latency": "Latency", "cost": "Cost", "concurrency": "Concurrency", "contract": "Contract",
	"fault": "Fault tolerance", "behavior": "Behavior", "load": "Load",
}

func probeName(name string) string {
	if known, ok := probeNames[name]; ok {
		return known
	}
	return clean(name)
}

// metricOrder puts what a reader looks for first; other metrics follow by name.
var metricOrder = []string{
	"requests", "operations", "calls", "successes", "failures", "error_rate",
	"requested_rate_rps", "achieved_rate_rps", "throughput_rps", "dropped", "dropped_rate",
	"p50_s", "p90_s", "p95_s", "p99_s", "observed_p99_s", "min_s", "mean_s", "max_s", "stdev_s", "tail_ratio",
	"ttft_p50_s", "ttft_p95_s", "server_time_p50_s", "tool_call_overhead_s",
	"cost_per_request", "cost_per_1k_requests", "cost_per_1m_requests", "mean_input_tokens", "mean_output_tokens",
	"max_sustained_concurrency", "saturation_point", "latency_knee_at", "peak_throughput_rps",
	"tools", "tools_probed", "cases_run", "rejected", "accepted", "accepted_invalid", "crashes", "crash_rate",
	"injected", "injection_rate", "error_rate_under_fault", "trajectories", "attempts", "retries", "disrupted", "recovered",
	"recovery_rate", "recovery_floor", "mean_recovery_latency_s", "max_recovery_latency_s",
	"retry_amplification", "caller_retry_amplification", "duplicate_mutations", "lost_effects", "loops_detected",
}

// metricNames are the words for metrics whose own name, spelled out, would not do.
var metricNames = map[string]string{
	"accepted_invalid":           "accepted although forbidden",
	"caller_retry_amplification": "amplification (our own retries)",
	"tail_ratio":                 "p99 / p50",
	"observed_p99_s":             "p99, observed only",
	"ttft_p50_s":                 "time to first token, p50",
	"ttft_p95_s":                 "time to first token, p95",
	"max_sustained_concurrency":  "sustained concurrency",
	"peak_throughput_rps":        "peak goodput",
	"throughput_rps":             "goodput",
	"injected_by_kind":           "injected faults",
	"final_status_counts":        "final status",
	"outcome_by_case":            "worst outcome per case kind",
	"errors_by_kind":             "errors by kind",
	"unrecovered_by_fault_kind":  "not recovered, by fault kind",
	"tool_call_overhead_s":       "call overhead",
}

func metricName(name string) string {
	if known, ok := metricNames[name]; ok {
		return known
	}
	for _, unit := range []string{"_s", "_ms", "_us", "_rps"} {
		if cutName, ok := strings.CutSuffix(name, unit); ok && cutName != "" {
			name = cutName
			break
		}
	}
	return clean(strings.ReplaceAll(name, "_", " "))
}

// unitOf is the unit of a metric: its own, else what its name ends on.
func unitOf(name, own string) string {
	if own != "" {
		return own
	}
	switch {
	case strings.HasSuffix(name, "_s"):
		return "s"
	case strings.HasSuffix(name, "_ms"):
		return "ms"
	case strings.HasSuffix(name, "_us"):
		return "us"
	case strings.HasSuffix(name, "_rps"):
		return "/s"
	case strings.HasSuffix(name, "_rate"), strings.HasSuffix(name, "_share"), strings.HasPrefix(name, "error_rate"):
		return "rate"
	case strings.HasSuffix(name, "_ratio"), strings.HasSuffix(name, "_amplification"):
		return "x"
	case strings.HasPrefix(name, "cost_per_"):
		return "$"
	}
	return ""
}

// metricsInOrder lists the metrics of a probe as a reader wants them.
func metricsInOrder(m map[string]metrics.Measured) []string {
	rank := func(name string) int {
		if i := slices.Index(metricOrder, name); i >= 0 {
			return i
		}
		return len(metricOrder)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
}

// statusOrder is the order of rows: what needs a decision comes first.
var statusOrder = []result.Status{result.Fail, result.Undecided, result.Unproven, result.Pass, result.NA}

// checksInOrder sorts by status and keeps the order of the policy within one.
func checksInOrder(checks []result.Check) []result.Check {
	out := slices.Clone(checks)
	slices.SortStableFunc(out, func(a, b result.Check) int {
		return slices.Index(statusOrder, a.Status) - slices.Index(statusOrder, b.Status)
	})
	return out
}

func statusWord(s result.Status) string {
	if s == result.Fail {
		return "FAIL"
	}
	return clean(string(s))
}

// limitText is a limit with its direction, e.g. "<= 5.00s".
func limitText(c result.Check) string {
	sign := "<= "
	if c.Direction == "min" {
		sign = ">= "
	}
	return sign + quantity(c.Limit, c.Unit)
}

func actualText(c result.Check) string {
	if c.Observed == nil {
		return absent
	}
	return quantity(*c.Observed, c.Unit)
}

// notScoredWords explain why a dimension carries no points.
var notScoredWords = map[string]string{
	"not_selected":   "probe not selected",
	"phase_excluded": "phase excluded",
	"did_not_run":    "probe did not run",
	"not_applicable": "not applicable to this target",
	"no_threshold":   "no threshold of the policy reads it",
	"not_measured":   "not measured",
}

// dimensionNote is the reason beside the points.
func dimensionNote(d result.Dimension) string {
	if d.Note != "" {
		return clean(d.Note)
	}
	if d.NotScored == "" {
		return ""
	}
	if words, ok := notScoredWords[d.NotScored]; ok {
		return words
	}
	return clean(d.NotScored)
}

// dimensionPoints is "14/20", "-/15" when not measured.
func dimensionPoints(d result.Dimension) string {
	return optional(d.Points, points) + "/" + points(d.Weight)
}

// bySeverity puts critical findings first and keeps the order otherwise.
func bySeverity(findings []result.Finding) []result.Finding {
	order := []result.Severity{result.Critical, result.Warning, result.Info}
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b result.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return out
}
