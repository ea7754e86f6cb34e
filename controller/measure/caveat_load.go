package measure

import (
	"fmt"
	"strings"

	"ordeal/metrics"
	"ordeal/metrics/stat"
)

// Of concurrency.

func ceiling(top int) metrics.Caveat {
	return annotate("ceiling", "a higher --concurrency", fmt.Sprintf(
		"The ramp ended at %s without saturation; the limit of the target lies higher.", callers(top)), "max_sustained_concurrency", "saturation_point")
}

func stoppedEarly(top int) metrics.Caveat {
	return annotate("stopped_early", "", fmt.Sprintf(
		"The ramp was cut at %s, below its ceiling; what lies above was not tried.", callers(top)), "max_sustained_concurrency")
}

func neverSteady() metrics.Caveat {
	return suppress("no_steady_state", "--level-duration or more --requests", fmt.Sprintf(
		"At no level did each caller complete %d calls while all were busy, so no throughput was reached. littles_law_rps is an estimate from latency.", steadyWaves), "peak_throughput_rps", "peak_throughput_at")
}

func unsteadyLevels(levels []string) metrics.Caveat {
	return annotate("unsteady_levels", "--level-duration or more --requests", fmt.Sprintf(
		"Fewer than %d calls per caller at %s callers: goodput of these levels is withheld.", steadyWaves, strings.Join(levels, ", ")), "levels", "peak_throughput_rps")
}

func saturatedLevels(levels []string) metrics.Caveat {
	return annotate("generator_saturated", "more agents", fmt.Sprintf(
		"Our own side was the limit at %s callers: times and goodput of these levels are withheld.", strings.Join(levels, ", ")),
		"levels", "peak_throughput_rps", "latency_knee_at")
}

func shortLevels(levels []string) metrics.Caveat {
	return annotate("level_short_of_callers", "", fmt.Sprintf(
		"Not all callers took part at %s: goodput is that of the callers that did.", strings.Join(levels, ", ")), "levels", "peak_throughput_rps")
}

func undecidedLevels(levels []string) metrics.Caveat {
	return annotate("undecided_levels", moreRequests, fmt.Sprintf(
		"More than 5%% failed at %s callers, but too few calls were made to tell this from a rate below it.", strings.Join(levels, ", ")), "saturation_point", "max_sustained_concurrency")
}

func thinKnee(n int64) metrics.Caveat {
	return annotate("thin_knee", fmt.Sprintf("--requests %d", thinSample), fmt.Sprintf(
		"The p95 that the knee is measured from is the maximum of %s.", plural(n, "call", "calls")), "latency_knee_at", "baseline_p95_s")
}

// Of fault and behavior.

func noneInjected() metrics.Caveat {
	return wide(suppress("none_injected", "--fault-rate above 0", "The injector had nothing to do: these numbers say nothing about failures.",
		"recovery_rate", "retry_amplification", "error_rate_under_fault", "mean_recovery_latency_s", "max_recovery_latency_s", "p95_recovery_latency_s"))
}

func backoffSpent(unwaited int64, budget fmt.Stringer) metrics.Caveat {
	return annotate("backoff_spent", "--backoff-budget, or fewer --requests", fmt.Sprintf(
		"The budget of %s for waiting was spent and %d retries of rate-limited calls went out at once: they met a dependency that was still under our pressure.", budget, unwaited), "recovery_rate")
}

func quotaLeftOut(limited, all int64) metrics.Caveat {
	return annotate("quota_left_out", "less load, or a tier with a larger quota", fmt.Sprintf(
		"%d of %d operations were refused for quota and are left out: how they fare tells about the quota.", limited, all), "recovery_rate")
}

func nothingDisrupted(n int64) metrics.Caveat {
	return suppress("nothing_disrupted", moreDisrupt, fmt.Sprintf(
		"The first attempt of all %d operations succeeded, so nothing had to recover.", n), "recovery_rate")
}

func thinRecovery(in *Input, k, n int64) metrics.Caveat {
	remedy := fmt.Sprintf("--requests %d or a higher --fault-rate", (fewDisrupted*int64(in.Spec.Requests)+n-1)/n)
	return annotate("few_disrupted", remedy, fmt.Sprintf(
		"%d of %d disrupted operations recovered; fewer than %d are an anecdote rather than a rate.", k, n, fewDisrupted), "recovery_rate")
}

func intervalSpansFloor(k, n int64, iv stat.Interval, floor float64) metrics.Caveat {
	return annotate("interval_spans_floor", moreDisrupt, fmt.Sprintf(
		"%d of %d recovered, a 95%% interval of %.1f%%-%.1f%%. It holds the %.1f%% that a target without any fault of its own reaches on average, so the sample cannot tell the two apart.",
		k, n, 100*iv.Lo, 100*iv.Hi, 100*floor), "recovery_rate")
}

func noFaultPhase() metrics.Caveat {
	return wide(inapplicable("no_fault_phase", "--phases with chaos and --probes with fault", "Trajectories come from the fault probe, which this scan leaves out.",
		"recovery_rate", "retry_amplification", "duplicate_mutations", "survivability", "recovery_ideal"))
}

func nothingCompleted(n int64) metrics.Caveat {
	return suppress("nothing_completed", "", fmt.Sprintf("None of %d operations completed, so there was no work to amplify.", n), "retry_amplification")
}

func baselineAllFailed(n int64) metrics.Caveat {
	return suppress("baseline_all_failed", acceptedArgs, fmt.Sprintf(
		"All %d requests failed before the first fault was injected: nothing could have recovered.", n), "recovery_rate")
}

func ownRetryLoop() metrics.Caveat {
	return suppress("own_retry_loop", "", "The retries counted are made by us and not by the target; their number is kept as caller_retry_amplification.", "retry_amplification")
}

func noCleanAttempt() metrics.Caveat {
	return suppress("no_clean_attempt", "a lower --fault-rate", "A fault was injected into every attempt, so none shows what the target does by itself.", "survivability")
}

func idealUnknown(why string) metrics.Caveat {
	return suppress("ideal_unknown", "", "What an ideal caller would have reached on this schedule is unknown: "+why+".", "recovery_ideal")
}

// Of the state oracle.

func oracleIsAbsent() metrics.Caveat {
	return suppress("oracle_absent", "--verify-tool, with {op_id} in --tool-args",
		"What the calls did to the target's state was not read. A repeated call may have been applied once or twice.", "duplicate_mutations", "lost_effects")
}

func oracleIsUnattributed() metrics.Caveat {
	return suppress("oracle_unattributed", "{op_id} in an argument the target stores",
		"The state was read, but no argument carries an operation id: a mere total would hide a duplicate behind a loss.", "duplicate_mutations", "lost_effects")
}

func oracleIsStale() metrics.Caveat {
	return suppress("oracle_stale", "another --seed, or a cleared target",
		"The ids of this seed were in the state before the window opened, so old effects cannot be told from new ones.", "duplicate_mutations", "lost_effects")
}

func oracleHasFailed() metrics.Caveat {
	return suppress("oracle_failed", "check --verify-tool, --verify-args and --verify-count",
		"Reading the state did not succeed. Unknown effects are not zero effects.", "duplicate_mutations", "lost_effects")
}

func noOpportunity() metrics.Caveat {
	return annotate("no_opportunity", moreDisrupt,
		"No acknowledged operation was sent again, so none could be done twice: the zero is untested.", "duplicate_mutations")
}

func windowScope() metrics.Caveat {
	return annotate("window_scope", "",
		"Effects are counted over the retried operations only, not over preflight, baseline and degradation.", "duplicate_mutations", "lost_effects")
}

func foreignWrites(n int64) metrics.Caveat {
	return annotate("foreign_writes", "a target nobody else writes to", fmt.Sprintf(
		"%d entries appeared in the window that belong to no operation of this scan.", n), "duplicate_mutations", "lost_effects")
}

func opportunitiesCut(kept int, disrupted int64) metrics.Caveat {
	return annotate("trajectories_cut", "", fmt.Sprintf(
		"Details are kept of %d of %d disrupted operations; what is counted from them is a lower bound or missing.", kept, disrupted),
		"duplicate_opportunities", "lost_effects", "effects_without_acknowledged_delivery")
}
