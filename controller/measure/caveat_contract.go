package measure

import (
	"fmt"
	"strings"

	"ordeal/metrics"
)

func realArgsUnused(tool string) metrics.Caveat {
	return annotate("real_args_unused", "", fmt.Sprintf(
		"The arguments given for %q reached no malformed call, because that tool is not probed; all baselines are synthesized.", tool))
}

func realArgsPartial(tool string, others []string) metrics.Caveat {
	return annotate("real_args_partial", "one scan per tool, each with its --tool-args", fmt.Sprintf(
		"Only %q was probed with your arguments; %s with synthesized ones, which a tool may refuse for their own sake.", tool, some(others, 5)))
}

func toolCoverage(probed, all, unsafe, limit int) metrics.Caveat {
	var why, remedies []string
	if safe := all - unsafe; safe > probed {
		why = append(why, fmt.Sprintf("%d are beyond --contract-tools %d", safe-probed, limit))
		remedies = append(remedies, fmt.Sprintf("--contract-tools %d", safe))
	}
	if unsafe > 0 {
		why = append(why, fmt.Sprintf("%d are not known to be read-only", unsafe))
		remedies = append(remedies, "--allow-mutating against a disposable target")
	}
	return annotate("tool_coverage", strings.Join(remedies, ", and "), fmt.Sprintf(
		"%d of %d tools were probed (%s); the others may behave in another way.", probed, all, strings.Join(why, ", ")))
}

func noTools() metrics.Caveat {
	return wide(inapplicable("no_tools", "", "The target offers no tools, so there is none to call with malformed arguments.",
		"crash_rate", "accepted_invalid"))
}

func noCase() metrics.Caveat {
	return suppress("no_case", "", "No malformed call was made, so how the target takes one is unknown.", "crash_rate", "accepted_invalid", "unscored_crash_rate")
}

func sessionDead(calls int64) metrics.Caveat {
	return suppress("session_dead", "", fmt.Sprintf(
		"None of %d well-formed control calls was answered, so silence says nothing about the input.", calls), "crash_rate")
}

func flakyControls(lost, calls int64) metrics.Caveat {
	return suppress("flaky_controls", "", fmt.Sprintf(
		"%d of %d well-formed control calls got no answer either: silence comes with any input here.", lost, calls), "crash_rate")
}

func livenessUnknown(n int64) metrics.Caveat {
	return annotate("liveness_unknown", "", fmt.Sprintf(
		"After %s nobody could check whether the target lived on; the silence is counted as a crash.", plural(n, "unanswered case", "unanswered cases")), "crash_rate")
}

func thinEvidence(n int64) metrics.Caveat {
	return suppress("thin_evidence", acceptedArgs, fmt.Sprintf(
		"Most of the %d malformed calls brought no verdict. That the rest holds no wrong acceptance is another and weaker claim.", n), "accepted_invalid", "accepted_invalid_rate")
}

func nothingForbidden(unattributable int64) metrics.Caveat {
	reason := "The schemas forbid none of the inputs sent, so none could be a violation."
	if unattributable > 0 {
		reason = fmt.Sprintf("All %d forbidden inputs were refused together with baseline values the tool refuses anyway, or for quota.", unattributable)
	}
	return suppress("nothing_forbidden", acceptedArgs, reason, "accepted_invalid", "accepted_invalid_rate")
}

func unclassifiedRejections(k, n int64) metrics.Caveat {
	return annotate("rejections_without_reason", "", fmt.Sprintf(
		"%d of %d rejections give no reason: they may be about something else than the malformed value.", k, n), "accepted_invalid")
}

func contractByText(k, n int64) metrics.Caveat {
	return annotate("decided_by_text", "", fmt.Sprintf(
		"%d of %d outcomes had no code to go by and were classed by the wording of the error.", k, n), "accepted_invalid")
}

func limitedCases(n int64) metrics.Caveat {
	return annotate("cases_rate_limited", "less load, or a larger quota", fmt.Sprintf(
		"%d malformed calls were refused for quota, which tells nothing about validation; they are not counted.", n), "accepted_invalid")
}

func unattributableCases(n int64, tools []string) metrics.Caveat {
	return annotate("unattributable_cases", acceptedArgs, fmt.Sprintf(
		"%d forbidden inputs are not counted: %s refused its well-formed baseline too, and these still carried its values.", n, strings.Join(tools, ", ")), "accepted_invalid")
}

func extraKeyUnscored() metrics.Caveat {
	return annotate("extra_key_unscored", acceptedArgs,
		"Whether undeclared keys are refused stays open: that case carries the whole baseline, and the baseline was refused.", "accepted_invalid")
}

func lowStrictness(share float64) metrics.Caveat {
	return annotate("low_strictness", "", fmt.Sprintf(
		"The schemas forbid only %.0f%% of what was tried, so there was little to enforce.", 100*share), "accepted_invalid", "schema_strictness")
}

func caseVolume(n int64, perTool map[string]int64) metrics.Caveat {
	busiest := ""
	for tool, k := range perTool {
		if busiest == "" || k > perTool[busiest] || k == perTool[busiest] && tool < busiest {
			busiest = tool
		}
	}
	return annotate("case_volume", "", fmt.Sprintf(
		"%d malformed calls, %d of them to %q: the number follows how much the schemas declare.", n, perTool[busiest], busiest))
}

func casesCapped(leftOut int64, limit, most int) metrics.Caveat {
	return annotate("cases_capped", fmt.Sprintf("--contract-cases %d", most), fmt.Sprintf(
		"%d cases beyond the limit of %d per tool were not sent.", leftOut, limit))
}
