package measure

import (
	"fmt"
	"strings"
	"time"

	"ordeal/controller/merge"
	"ordeal/metrics"
)

// Of stages that several agents carry out.

const steadyAgents = "agents that stay until the end, then run it again"

// degraded: what was measured is the target under another load than was asked for.
func degraded(st *merge.Stage, needed ...string) metrics.Caveat {
	return suppress("degraded", steadyAgents, fmt.Sprintf(
		"An agent was lost twice in stage %s: %s%s. That is not the load that was asked for, so nothing is concluded from it.",
		stageName(st.Name), tookPart(st.Gang), whoIsLost(st.Gang)), needed...)
}

// nothingSustained: levels that were not measured may have held.
func nothingSustained(levels []string) metrics.Caveat {
	return suppress("degraded", steadyAgents, fmt.Sprintf(
		"No level held that was measured, and an agent was lost twice at %s: whether the target sustains less is unknown.",
		strings.Join(levels, ", ")), "max_sustained_concurrency")
}

func degradedLevels(levels []string) metrics.Caveat {
	return annotate("degraded_levels", steadyAgents, fmt.Sprintf(
		"An agent was lost twice at %s. What these levels saw is left out; how the target takes them is unknown.", strings.Join(levels, ", ")),
		"levels", "max_sustained_concurrency", "saturation_point", "latency_knee_at", "baseline_p95_s", "peak_throughput_rps")
}

// startSkewed: for a while at both ends of the stage some members were not calling.
func startSkewed(stages []string, names ...string) metrics.Caveat {
	return annotate("start_skew", "agents with better clocks, or longer levels", fmt.Sprintf(
		"The agents did not begin together: they were apart by %s. For more than %.0f%% of the time the load was not all there.",
		strings.Join(stages, ", "), 100*skewedShare), names...)
}

func generatorWithheld(st []*merge.Stage, names ...string) metrics.Caveat {
	var who []string
	for _, st := range st {
		for _, w := range st.Withheld {
			who = append(who, fmt.Sprintf("%s in %s (%s, %s)", w.Agent, stageName(st.Name), w.Reason, plural(w.Requests, "request", "requests")))
		}
	}
	return annotate("generator_withheld", "more agents, or less load on these", fmt.Sprintf(
		"The times measured by agents that were the limit themselves are left out, their outcomes are not: %s.", some(who, shownAgents)), names...)
}

// shownAgents bounds the agents that a sentence names.
const shownAgents = 5

// tookPart is what a gang achieved beside what was planned.
func tookPart(g *merge.Gang) string {
	if g.Arrivals {
		return fmt.Sprintf("%.1f%% of the arrivals, planned %.1f%%", float64(g.Achieved)/10, float64(g.Planned)/10)
	}
	return fmt.Sprintf("%d of %s", g.Achieved, callers(g.Planned))
}

func whoIsLost(g *merge.Gang) string {
	if len(g.Lost) == 0 {
		return ""
	}
	return " (" + some(g.Lost, shownAgents) + ")"
}

// stageName is a stage as people call it: concurrency 16.
func stageName(name string) string {
	probe, level, found := strings.Cut(name, "-")
	if found && strings.Trim(level, "0123456789") == "" {
		return probe + " " + level
	}
	return name
}

// skewedShare is the share of a stage's time during which members may be missing
// before that is said. Goodput and the number of callers at once are wrong by no
// more than it: as much as an arrival rate may miss and still count as met.
const skewedShare = 1 - rateMet

// skewed reports a gang whose members began so far apart, the error of their
// clocks included, that it mattered: by more than a twentieth of the time all of
// them had work; and how far in words.
func skewed(st *merge.Stage) (text string, is bool) {
	if st.Gang == nil {
		return "", false
	}
	skew, bound, known := st.Gang.Skew()
	lasted := together(st)
	if !known || lasted <= 0 || (skew+bound).Seconds() <= skewedShare*lasted.Seconds() {
		return "", false
	}
	return fmt.Sprintf("%s ± %s of %s in %s", secs(skew.Seconds()), secs(bound.Seconds()), secs(lasted.Seconds()), stageName(st.Name)), true
}

// together is how long the callers of a stage had work: the mean of their steady
// windows, or the time the arrivals took up; without either the whole stage.
func together(st *merge.Stage) time.Duration {
	if st.Tally != nil {
		switch w := st.Tally.Window; {
		case w.SpanUS > 0:
			return time.Duration(w.SpanUS) * time.Microsecond
		case w.Workers > 0 && w.BusyUS > 0:
			return time.Duration(w.BusyUS/w.Workers) * time.Microsecond
		}
	}
	return st.Elapsed
}
