package measure

import (
	"fmt"
	"maps"
	"slices"

	"ordeal/agent/wire"
	"ordeal/controller/merge"
	"ordeal/metrics"
)

// Every way a number is withheld or qualified is one constructor in the
// caveat*.go files. A caveat without metrics qualifies the whole probe. The
// probe is filled in by the sheet that takes the caveat.

func suppress(id, remedy, reason string, names ...string) metrics.Caveat {
	return caveat(id, metrics.Suppress, remedy, reason, names)
}

func annotate(id, remedy, reason string, names ...string) metrics.Caveat {
	return caveat(id, metrics.Annotate, remedy, reason, names)
}

func inapplicable(id, remedy, reason string, names ...string) metrics.Caveat {
	return caveat(id, metrics.Inapplicable, remedy, reason, names)
}

func caveat(id string, effect metrics.Effect, remedy, reason string, names []string) metrics.Caveat {
	c := metrics.Caveat{ID: id, Metrics: list(names), Scope: metrics.ScopeMetric, Effect: effect, Reason: reason, Remedy: remedy}
	if len(names) == 0 {
		c.Scope = metrics.ScopeProbe
	}
	return c
}

// wide widens a caveat to the whole probe while it still names the metrics it
// silences.
func wide(c metrics.Caveat) metrics.Caveat {
	c.Scope = metrics.ScopeProbe
	return c
}

const (
	moreRequests = "more --requests"
	moreDisrupt  = "more --requests or a higher --fault-rate"
	acceptedArgs = "--tool-args with arguments the tool accepts"
)

// Of any probe.

func didNotRun(reason string, needed []string) metrics.Caveat {
	return wide(suppress("did_not_run", "", "The probe observed nothing: "+reason+".", needed...))
}

func partial(st *merge.Stage) metrics.Caveat {
	reason := fmt.Sprintf("Of stage %s %d of %d units came back; what is shown is about those.", st.Name, st.Done, st.Planned)
	if st.Done == st.Planned {
		reason = fmt.Sprintf("Stage %s was cut short %s; what is shown is about the part that ran.", st.Name, by(st.Released))
	}
	return annotate("partial."+st.Name, "", reason)
}

// by says what cut a stage: a stop, unless its agents said otherwise.
func by(released map[string]int64) string {
	if len(released) == 0 {
		return "by a stop"
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(released)) {
		words := reason
		if reason == wire.ByLease {
			words = "agents no longer heard from the controller"
		}
		why = append(why, fmt.Sprintf("%s (%s)", words, plural(released[reason], "unit", "units")))
	}
	return "because " + some(why, shownAgents)
}

func generatorSaturated(reason string, silenced []string) metrics.Caveat {
	return suppress("generator_saturated", "more agents, or less load", fmt.Sprintf(
		"Our own side was the limit (%s), so the times measured are not the target's.", reason), silenced...)
}

func payloadRejected(in *Input, silenced []string) metrics.Caveat {
	whose := "arguments synthesized from its schema"
	if in.userArgs() {
		whose = "the arguments of --tool-args"
	}
	return wide(suppress("payload_rejected", acceptedArgs, fmt.Sprintf(
		"Before the scan the target had answered one call with %s and refused it; every request then failed. What was measured is that refusal.", whose), silenced...))
}

func zeroFailures(n int64) metrics.Caveat {
	return annotate("zero_failures", moreRequests, fmt.Sprintf(
		"No failure in %s does not make it 0%%: the 95%% interval reaches up to %.1f%%.",
		plural(n, "request", "requests"), 100*decided(0, n).Hi), "error_rate")
}

func rateLimitedLeftOut(limited, n int64) metrics.Caveat {
	return annotate("rate_limited_left_out", "", fmt.Sprintf(
		"%d of %d attempts were refused for quota and are left out above and below the line; error_rate_raw keeps them.", limited, n), "error_rate")
}

func onlyRateLimited(n int64) metrics.Caveat {
	return suppress("only_rate_limited", "less load, or a tier with a larger quota", fmt.Sprintf(
		"All %d attempts were refused for quota, so nothing tells how the target does its work.", n), "error_rate")
}

func capacityIsQuota(affected []string) metrics.Caveat {
	return annotate("capacity_is_quota", "a tier with a larger quota", "The target enforces a quota. How much load it takes is that quota, not the capacity of the service behind it.", affected...)
}

func decidedByText(k, n int64) metrics.Caveat {
	return annotate("decided_by_text", "", fmt.Sprintf(
		"%d of %d outcomes had no code to go by and were classed by the wording of the error.", k, n), "error_rate", "errors_by_kind")
}

// Of latency.

func allFailed() metrics.Caveat {
	return suppress("all_failed", acceptedArgs, "No request succeeded, so there is no latency to describe.",
		"p50_s", "p95_s", "p99_s", "observed_p99_s", "tail_ratio")
}

func p99Below100(r requests) metrics.Caveat {
	n := r.Latency.N()
	return suppress("p99_below_100", r.forSuccesses(carriesP99), fmt.Sprintf(
		"With %s the 99th percentile is their maximum, which estimates the %s at best; it is kept as observed_p99_s.",
		plural(n, "success", "successes"), ordinal(100*n/(n+1))), "p99_s")
}

func under20(r requests) metrics.Caveat {
	return annotate("under_20", r.forSuccesses(thinSample), fmt.Sprintf(
		"With %s the 95th percentile is their maximum.", plural(r.Latency.N(), "success", "successes")), "p95_s", "observed_p99_s")
}

// noUpperBound: q is the highest of the percentiles named.
func noUpperBound(r requests, longest, q float64, names []string) metrics.Caveat {
	end := "has no upper end"
	if longest > 0 {
		end = "ends at " + secs(longest) + ", the limit of a call"
	}
	want := bounding(q)
	return annotate("no_upper_bound", r.forSuccesses(want), fmt.Sprintf(
		"%s no 95%% upper bound of the percentile, since even the slowest may lie below it; %d do. The interval %s.",
		plural(r.Latency.N(), "success carries", "successes carry"), want, end), names...)
}

func censoredTimeouts(n int64, p95 float64) metrics.Caveat {
	return annotate("censored_timeouts", "", fmt.Sprintf(
		"%d calls timed out and are in no percentile; counted as at least the limit they move p95 to %s or more (p95_incl_timeouts_s).", n, secs(p95)), "p95_s", "p99_s")
}

func rateUnknown() metrics.Caveat {
	return suppress("rate_unknown", "", "The agents recorded no span of the arrivals.", "achieved_rate_rps")
}

func rateNotSustained(want, got float64) metrics.Caveat {
	return annotate("rate_not_sustained", "a lower --rate, a higher --max-in-flight, or more agents", fmt.Sprintf(
		"The load was %s calls/s and not the %s asked for; the latencies belong to the lower rate.", digits(got, 4), digits(want, 4)),
		"p50_s", "p95_s", "p99_s", "achieved_rate_rps")
}

// Of cost.

func noUsage() metrics.Caveat {
	return wide(inapplicable("no_usage", "", "The target reports no token usage, so there is nothing to price.",
		"cost_per_request", "mean_input_tokens", "mean_output_tokens"))
}

func noPrice(model string) metrics.Caveat {
	whose := ""
	if model != "" {
		whose = " for model " + model
	}
	return suppress("no_price", "--price-in and --price-out, or --price-file", fmt.Sprintf(
		"No price is known%s: the tokens are counted, not priced.", whose),
		"cost_per_request", "cost_per_1k_requests", "cost_per_1m_requests", "cacheable_savings_per_request")
}

func constantPrompt(n int64) metrics.Caveat {
	return suppress("constant_prompt", "prompts of different length", fmt.Sprintf(
		"All %d prompts had the same length, so a fixed prefix cannot be told from the rest.", n),
		"static_prefix_tokens", "variable_tokens", "bloat_share", "bloat_detected", "cacheable_savings_per_request")
}

func cacheIgnored(cached, all int64) metrics.Caveat {
	return annotate("cache_ignored", "", fmt.Sprintf(
		"%d of %d input tokens came from the provider's cache; they are priced in full here.", cached, all), "cost_per_request")
}
