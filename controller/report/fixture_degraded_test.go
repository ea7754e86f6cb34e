package report

import (
	"encoding/json"
	"time"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// The documents the formats are shown on. Their numbers come from runs of the
// built-in profiles and of small servers.

func ptr[T any](v T) *T { return &v }

func num(v float64, unit string, n int64) metrics.Measured {
	return metrics.Measured{Value: v, Unit: unit, N: n}
}

func within(v float64, unit string, n int64, lo, hi float64) metrics.Measured {
	return metrics.Measured{Value: v, Unit: unit, N: n, Interval: &metrics.Interval{Lo: lo, Hi: hi}}
}

func withheld(unit string, caveats ...string) metrics.Measured {
	return metrics.Measured{Unit: unit, Caveats: caveats}
}

type values = map[string]metrics.Measured

func check(key, metric, unit string, limit float64, observed *float64, n int64, iv *metrics.Interval, status result.Status, reason string) result.Check {
	c := result.Check{Key: key, Metric: metric, Direction: "max", Limit: limit, Unit: unit, Observed: observed, N: n,
		Interval: iv, Status: status, Reason: reason, LimitSource: "policy"}
	if key == "recovery_rate_min" {
		c.Direction, c.LimitSource = "min", "recovery_floor"
	}
	if status == result.Pass || status == result.Unproven {
		c.Score = ptr(100.0)
	}
	return c
}

func iv(lo, hi float64) *metrics.Interval { return &metrics.Interval{Lo: lo, Hi: hi} }

var started = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

const scanSpec = `{"target":"mock:degraded","probes":["latency","cost","concurrency","contract","fault","behavior"],
"phases":["baseline","chaos","behavior"],"requests":40,"concurrency":16,"max_in_flight":1000,"warmup":1,"timeout":"30s",
"scan_timeout":"40m0s","fault_rate":0.3,"max_retries":2,"backoff_max":"5s","backoff_budget":"30s","seed":"1337",
"allow_mutating":false,"contract_tools":3,"contract_cases":60,"agents":1}`

func baseRun(calls int64, duration float64) result.Run {
	return result.Run{ID: "r-7f3a91", StartedAt: started, DurationS: duration, Seed: "1337", Spec: json.RawMessage(scanSpec), Calls: calls,
		Fleet: []result.Agent{{ID: "local-1", Labels: map[string]string{"zone": "local"}, Version: "0.1.0", Units: 31, Operations: calls}},
		Comparability: result.Comparability{Hash: "c2b6f0d1a9e4", Fields: map[string]string{
			"instrument": "ordeal 0.1", "policy": "production-default", "schedule": "philox-1 rate 0.3 retries 2", "seed": "1337", "target": "mock:degraded"}},
	}
}

// degraded is the degraded profile at fault rate 0.3: passable, slow.
func degraded() *result.Document {
	return &result.Document{
		SchemaVersion: 1, OrdealVersion: "0.1.0", Command: "scan", Run: baseRun(291, 0.12),
		Target: result.Target{Kind: "mock", URI: "mock:degraded", Name: "degraded-mock", Tool: "echo, search, summarize",
			ToolArgs: json.RawMessage(`{"query":"probe"}`), ToolArgsSource: "placeholder", Mutability: "read-only", Tools: 3, Virtual: true},
		Verdict: result.Verdict{Passed: ptr(false), Score: ptr(80.75), UncappedScore: ptr(80.75), PassScore: 75, Policy: "production-default",
			GradedWeight: 85, MeasuredWeight: 70, Reasons: []string{"p95 latency failed", "invalid inputs accepted failed"}},
		Breakdown: []result.Dimension{
			{Dimension: "latency", Weight: 20, Points: ptr(14.02), Note: "p95 latency was 7.99s, the policy allows at most 5.00s"},
			{Dimension: "cost", Weight: 15, NotScored: "not_measured", Note: "no price is known for this model"},
			{Dimension: "concurrency", Weight: 15, NotScored: "no_threshold"},
			{Dimension: "contract", Weight: 15, Points: ptr(7.5), Note: "invalid inputs accepted was 9, the policy allows at most 0"},
			{Dimension: "behavior", Weight: 35, Points: ptr(35.0)},
		},
		Checks: []result.Check{
			check("p95_latency_ms", "latency.p95_s", "ms", 5000, ptr(7988.32), 40, iv(6801.2, 8476.61), result.Fail, "p95 latency was 7.99s, the policy allows at most 5.00s"),
			check("p99_latency_ms", "latency.p99_s", "ms", 10000, nil, 0, nil, result.NA, "p99 needs 100 successful calls, there were 40"),
			check("error_rate_max", "latency.error_rate", "rate", 0.05, ptr(0.0), 40, iv(0, 0.0881), result.Unproven, "0 of 40 calls failed; up to 8.8% is possible"),
			check("cost_per_request_max", "cost.cost_per_request", "$", 0.1, nil, 0, nil, result.NA, "no price is known"),
			check("contract_crash_rate_max", "contract.crash_rate", "rate", 0, ptr(0.0), 15, nil, result.Pass, "no case crashed"),
			check("contract_invalid_accepted_max", "contract.accepted_invalid", "count", 0, ptr(9.0), 9, nil, result.Fail, "9 of 9 forbidden inputs were accepted"),
			check("recovery_rate_min", "behavior.recovery_rate", "rate", 0.91, ptr(1.0), 10, iv(0.6915, 1), result.Unproven, "10 of 10 recovered; the interval holds the floor"),
			check("retry_amplification_max", "behavior.retry_amplification", "x", 2, nil, 0, nil, result.NA, "the target runs no retry loop of its own"),
			check("duplicate_mutation_max", "behavior.duplicate_mutations", "count", 0, nil, 0, nil, result.NA, "no state oracle was given"),
		},
		Probes:  degradedProbes(),
		Caveats: degradedCaveats(),
		Histograms: map[string]result.Histogram{
			"latency": {Encoding: "hdr-v2-base64", Unit: "us", Data: "HISTFAAAACF4nJNpmSzMwMDAxAABzFCaEUoz2X+AMIKZABuvAvM="},
		},
	}
}

func degradedProbes() []result.Probe {
	level := func(n int, p95, rps float64) map[string]any {
		return map[string]any{"level": n, "requests": 40, "error_rate": 0.0, "p50_s": 3.1, "p95_s": p95, "throughput_rps": rps}
	}
	var cases []map[string]any
	for _, tool := range []string{"echo", "search", "summarize"} {
		for _, kind := range []string{"missing_required", "null_required", "wrong_type", "empty_string", "very_long_string"} {
			c := map[string]any{"tool": tool, "label": kind + "[query]", "kind": kind, "path": "/query", "outcome": "accepted", "detail": "ok", "delivered": true,
				"forbidden": kind != "empty_string" && kind != "very_long_string"}
			if kind == "wrong_type" {
				c["payload"] = map[string]any{"query": 12345}
			}
			cases = append(cases, c)
		}
	}
	return []result.Probe{
		{Name: "latency", Phase: "baseline", Applicable: true, DurationS: 0.01,
			Summary: "p50 3.36s, p95 7.99s, p99 withheld over 40 calls (0.0% errors)",
			Metrics: values{"requests": num(40, "count", 40), "successes": num(40, "count", 40), "error_rate": {Value: 0.0, Unit: "rate", N: 40,
				Interval: iv(0, 0.0881), Caveats: []string{"latency.zero_failures"}}, "p50_s": within(3.35544, "s", 40, 2.83, 3.71),
				"p95_s": within(7.98832, "s", 40, 6.8012, 8.47661), "p99_s": withheld("s", "latency.p99_below_100"), "observed_p99_s": num(8.47661, "s", 40),
				"tail_ratio": num(2.53, "x", 40), "tool_call_overhead_s": num(0.268, "s", 40), "ttft_p50_s": num(1.17, "s", 40),
				"outcomes": {Value: map[string]any{"ok": 40}, N: 40}},
			Findings: []result.Finding{{ID: "latency.summary", Severity: result.Info, Message: "No heavy tail, no unusual call overhead and no failure in 40 calls."}}},
		{Name: "cost", Phase: "baseline", Applicable: true, Summary: "647 in / 120 out tokens per request, no price known for this model",
			Metrics: values{"mean_input_tokens": num(647.075, "tokens", 40), "mean_output_tokens": num(120, "tokens", 40),
				"static_prefix_tokens": num(430, "tokens", 40), "bloat_share": num(0.6645, "rate", 40), "bloat_detected": {Value: false, N: 40},
				"cost_per_request": withheld("$", "cost.no_price")},
			Findings: []result.Finding{{ID: "cost.summary", Severity: result.Info, Message: "647 input tokens per request, no large fixed part."}}},
		{Name: "concurrency", Phase: "baseline", Applicable: true, Summary: "no saturation up to 16 callers at once, sustained 16",
			Metrics: values{"max_sustained_concurrency": num(16, "count", 200), "saturation_point": withheld("count", "concurrency.ceiling"),
				"peak_throughput_rps": num(4.4154, "/s", 40), "levels": {N: 5, Value: []map[string]any{
					level(1, 7.99, 0.31), level(2, 7.12, 0.52), level(4, 4.5, 1.3), level(8, 7.8, 2.1), level(16, 7.33, 4.4154)}}},
			Findings: []result.Finding{{ID: "concurrency.peak", Severity: result.Info, Message: "Peak goodput 4.4/s at 16 callers."}}},
		{Name: "contract", Phase: "baseline", Applicable: true, Summary: "15 malformed calls to 3 tools: 0 rejected, 15 accepted (9 of them forbidden), 0 crashed",
			Metrics: values{"tools": num(3, "count", 3), "tools_probed": num(3, "count", 3), "cases_run": num(15, "count", 15), "rejected": num(0, "count", 15),
				"accepted": num(15, "count", 15), "accepted_invalid": num(9, "count", 9), "crashes": num(0, "count", 15), "crash_rate": num(0, "rate", 15),
				"cases": {Value: cases, N: 15}},
			Findings: []result.Finding{{ID: "contract.accepted_invalid", Severity: result.Critical,
				Message: "9 inputs the schema forbids were answered with success: missing_required, null_required and wrong_type on query of all 3 tools."}}},
		{Name: "fault", Phase: "chaos", Applicable: true, Summary: "20 faults injected, 10/10 operations recovered (100.0%) within 2 retries",
			Metrics: values{"calls": num(93, "count", 93), "injected": num(20, "count", 93), "injection_rate": num(20.0/93, "rate", 93),
				"error_rate_under_fault": num(0.2, "rate", 40), "injected_by_kind": {N: 20, Value: map[string]any{
					"server_error": 6, "rate_limit": 5, "connection_refused": 4, "timeout": 3, "malformed": 2}},
				"backoff_simulated_s": num(4, "s", 4), "backoff_waited_s": num(0, "s", 4)},
			Findings: []result.Finding{{ID: "fault.mix", Severity: result.Info, Message: "20 faults over 93 calls (21.5%): 6 server_error, 5 rate_limit, 4 connection_refused, 3 timeout, 2 malformed."}}},
		{Name: "behavior", Phase: "behavior", Applicable: true, Summary: "10/10 disrupted operations recovered (100.0%), 1.30x amplification (our retries), duplicates not measured",
			Metrics: values{"trajectories": num(40, "count", 40), "attempts": num(52, "count", 40), "disrupted": num(10, "count", 40), "recovered": num(10, "count", 10),
				"recovery_rate":  {Value: 1.0, Unit: "rate", N: 10, Interval: iv(0.7225, 1), Caveats: []string{"behavior.spans_floor"}},
				"recovery_floor": num(0.91, "rate", 1), "fault_rate": num(0.3, "rate", 1), "max_retries": num(2, "count", 1),
				"retry_amplification": withheld("x", "behavior.own_retry_loop"), "caller_retry_amplification": num(1.3, "x", 40),
				"duplicate_mutations": withheld("count", "behavior.no_oracle"), "mean_recovery_latency_s": num(3.92, "s", 10),
				"final_status_counts": {N: 40, Value: map[string]any{"success": 40}}},
			Findings: []result.Finding{{ID: "behavior.recovered", Severity: result.Info, Message: "All 10 disrupted operations recovered within 2 retries. The retries are ours, not the target's."}}},
	}
}

func degradedCaveats() []metrics.Caveat {
	return []metrics.Caveat{
		{ID: "latency.p99_below_100", Probe: "latency", Metrics: []string{"p99_s"}, Scope: metrics.ScopeMetric, Effect: metrics.Suppress,
			Reason: "The p99 of 40 samples is their maximum, which estimates the 97.6th percentile", Remedy: "--requests 100"},
		{ID: "latency.zero_failures", Probe: "latency", Metrics: []string{"error_rate"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate,
			Reason: "No failure in 40 calls bounds the error rate at about 8%, not at 0%", Remedy: "--requests"},
		{ID: "cost.no_price", Probe: "cost", Metrics: []string{"cost_per_request"}, Scope: metrics.ScopeMetric, Effect: metrics.Inapplicable,
			Reason: "No price is known for this model, and a guessed one would end up in a budget", Remedy: "--price-in and --price-out"},
		{ID: "concurrency.ceiling", Probe: "concurrency", Metrics: []string{"max_sustained_concurrency", "saturation_point"}, Scope: metrics.ScopeMetric,
			Effect: metrics.Annotate, Reason: "16 is where the ramp was told to stop, not where the target gives in", Remedy: "--concurrency"},
		{ID: "behavior.spans_floor", Probe: "behavior", Metrics: []string{"recovery_rate"}, Scope: metrics.ScopeMetric, Effect: metrics.Annotate,
			Reason: "10 of 10 disrupted operations recovered; the 95% interval 72.3%..100.0% holds the floor of 91.0% that these faults leave a flawless target", Remedy: "--requests or --fault-rate"},
		{ID: "behavior.own_retry_loop", Probe: "behavior", Metrics: []string{"retry_amplification"}, Scope: metrics.ScopeMetric, Effect: metrics.Inapplicable,
			Reason: "A server does not retry, this scan does", Remedy: ""},
		{ID: "behavior.no_oracle", Probe: "behavior", Metrics: []string{"duplicate_mutations"}, Scope: metrics.ScopeMetric, Effect: metrics.Suppress,
			Reason: "Deliveries are seen, effects are not", Remedy: "--verify-tool, with {op_id} in --tool-args"},
	}
}
