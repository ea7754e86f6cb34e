package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// Bounds of the fleet block on a page; the document has everything.
const (
	maxFleetLines = 6  // of one kind
	maxGroups     = 12 // rows
	maxID         = 40 // columns of an agent's or a label's name
	maxNamed      = 4  // agents named in one sentence
)

// fleetLine is one line of the fleet block: plain text, cleaned.
type fleetLine struct {
	lead, text string
	tone       tone
}

// fleetMatters reports a run that more than one agent carried out, or that lost
// one: what a single agent did alone needs no block of its own.
func (r *reading) fleetMatters() bool {
	f := r.Fleet
	if f == nil {
		return false
	}
	lost := slices.ContainsFunc(f.Agents, func(a result.FleetAgent) bool { return a.Lost }) ||
		slices.ContainsFunc(f.Gangs, func(g result.Gang) bool { return len(g.Lost) > 0 || g.Degraded })
	return len(f.Agents) > 1 || lost
}

// fleetLines are what became of the fleet, without its tables.
func (r *reading) fleetLines() []fleetLine {
	f := r.Fleet
	lines := []fleetLine{{"Agents", agentsText(f), ""}}
	if text := skewText(f.Gangs); text != "" {
		lines = append(lines, fleetLine{"Start skew", text, ""})
	}
	lines = append(lines, gangLines(f.Gangs)...)
	lines = append(lines, withheldLines(f.Withheld)...)
	counted := times(f.Calls, "call") + ", " + times(f.Reissued, "operation") + " reissued, " + times(f.Ignored, "result") + " ignored"
	lines = append(lines, fleetLine{"Counted", counted, ""})
	return append(lines, outlierLines(f)...)
}

func agentsText(f *result.Fleet) string {
	var lost []string
	var units, operations int64
	for _, a := range f.Agents {
		units, operations = units+a.Units, operations+a.Operations
		if a.Lost {
			lost = append(lost, a.ID)
		}
	}
	text := count(float64(len(f.Agents)))
	if len(lost) > 0 {
		text += ", of which lost: " + names(lost)
	}
	return text + "; " + times(units, "unit") + ", " + times(operations, "operation")
}

// names lists agents, the first few by name.
func names(ids []string) string {
	var out []string
	for i, id := range ids {
		if i == maxNamed {
			out = append(out, count(float64(len(ids)-i))+" more")
			break
		}
		out = append(out, name(id))
	}
	return strings.Join(out, ", ")
}

func name(id string) string { return cmp.Or(fit(clean(id), maxID), absent) }

// stageLabel is a stage as people call it: concurrency 16.
func stageLabel(stage string) string {
	if probe, level, found := strings.Cut(stage, "-"); found && level != "" && allDigits([]rune(level)) {
		stage = probe + " " + level
	}
	return name(stage)
}

// skewText is about the gang whose members began furthest apart.
func skewText(gangs []result.Gang) string {
	var worst *result.Gang
	late := 0.0
	for i := range gangs {
		g := &gangs[i]
		if g.LateUS != nil {
			late = max(late, *g.LateUS)
		}
		if g.SkewUS == nil || g.SkewBoundUS == nil {
			continue
		}
		if worst == nil || *g.SkewUS+*g.SkewBoundUS > *worst.SkewUS+*worst.SkewBoundUS {
			worst = g
		}
	}
	if worst == nil {
		return ""
	}
	text := "at most " + seconds(*worst.SkewUS/1e6) + " ± " + seconds(*worst.SkewBoundUS/1e6) + " (" + stageLabel(worst.Stage) + ")"
	if late > 0 {
		text += "; the latest start missed by " + seconds(late/1e6)
	}
	return text
}

// gangLines tell of gangs that lost a member.
func gangLines(gangs []result.Gang) []fleetLine {
	var lines []fleetLine
	hit := slices.DeleteFunc(slices.Clone(gangs), func(g result.Gang) bool { return len(g.Lost) == 0 && !g.Degraded })
	slices.SortStableFunc(hit, func(a, b result.Gang) int { return yes(b.Degraded) - yes(a.Degraded) })
	for i, g := range hit {
		if i == maxFleetLines {
			return append(lines, fleetLine{"", times(int64(len(hit)-i), "more stage") + " lost an agent", caveat})
		}
		lines = append(lines, fleetLine{stageLabel(g.Stage), gangText(g), caveat})
	}
	return lines
}

func gangText(g result.Gang) string {
	who := ""
	if len(g.Lost) > 0 {
		who = agentWord(len(g.Lost)) + " " + names(g.Lost)
	}
	switch {
	case !g.Degraded:
		return "repeated without " + who + ": " + achieved(g)
	case who == "":
		return achieved(g) + "; left out of the verdict"
	}
	return achieved(g) + ", " + who + " lost; left out of the verdict"
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func agentWord(n int) string {
	if n == 1 {
		return "agent"
	}
	return "agents"
}

// achieved is what took part of what was planned.
func achieved(g result.Gang) string {
	if g.Of == result.OfArrivals {
		return rate(float64(g.Achieved)/1000) + " of the arrivals, planned " + rate(float64(g.Planned)/1000)
	}
	return count(float64(g.Achieved)) + " of " + times(int64(g.Planned), "caller")
}

func withheldLines(withheld []result.WithheldAgent) []fleetLine {
	var lines []fleetLine
	for i, w := range withheld {
		if i == maxFleetLines {
			return append(lines, fleetLine{"", times(int64(len(withheld)-i), "more agent") + " withheld", caveat})
		}
		lines = append(lines, fleetLine{"Withheld", name(w.Agent) + " was the limit itself in " + stageLabel(w.Stage) + " (" + fit(clean(w.Reason), 2*maxID) +
			"): the times of " + times(w.Requests, "request") + " are left out", caveat})
	}
	return lines
}

// outlierWords say what stands out.
var outlierWords = map[string]string{
	result.Slower: "is slower", result.Faster: "is faster", result.SlowerTail: "has a slower tail", result.FasterTail: "has a quicker tail",
	result.MoreErrors: "fails more often", result.FewerErrors: "fails less often",
}

func outlierLines(f *result.Fleet) []fleetLine {
	switch {
	case len(f.Outliers) == 0 && f.Compared < 2:
		return []fleetLine{{"Outliers", "not looked for: too few requests of each agent", quiet}}
	case len(f.Outliers) == 0:
		return []fleetLine{{"Outliers", "none of the " + times(int64(f.Compared), "agent") + " compared", ""}}
	}
	var lines []fleetLine
	for i, o := range f.Outliers {
		if i == maxFleetLines {
			return append(lines, fleetLine{"", times(int64(len(f.Outliers)-i), "more outlier"), note})
		}
		lines = append(lines, fleetLine{"Outlier", outlierText(o), note})
	}
	return lines
}

func outlierText(o result.Outlier) string {
	text := name(o.Agent)
	if labels := labelsText(o.Labels); labels != "" {
		text += " (" + labels + ")"
	}
	e := o.Evidence
	unit := unitOf(e.Metric, e.Own.Unit)
	return text + " " + cmp.Or(outlierWords[o.What], "stands out") + ": " + metricName(fit(clean(e.Metric), maxID)) + " " +
		evidenceText(e.Own, unit) + ", the rest " + evidenceText(e.Rest, unit) + ", " + chance(e.P)
}

// evidenceText is a value with its interval and denominator.
func evidenceText(m metrics.Measured, unit string) string {
	v, ok := m.Number()
	if !ok {
		return absent
	}
	return quantity(v, unit) + " (" + interval(m.Interval, unit) + ", n " + denominator(m.N) + ")"
}

// chance is a p-value; what is below the accuracy of its sum is not told apart.
func chance(p float64) string {
	const least = 1e-15
	if p < least {
		return "p < 1e-15"
	}
	return "p " + strconv.FormatFloat(p, 'g', 2, 64)
}

func labelsText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return fit(clean(strings.Join(parts, ", ")), 2*maxID)
}

// groupHead and groupRows are the table of a label's values.
var groupHead = []string{"agents", "n", "p50", "p95", "95% interval", "p99", "errors", "95% interval"}

func groupRow(g result.Group) []string {
	show := func(m metrics.Measured, unit string) string {
		if v, ok := m.Number(); ok {
			return quantity(v, unit)
		}
		return absent
	}
	return []string{name(g.Value), count(float64(g.Agents)), denominator(g.ErrorRate.N), show(g.P50, "s"), show(g.P95, "s"), interval(g.P95.Interval, "s"),
		show(g.P99, "s"), show(g.ErrorRate, "rate"), interval(g.ErrorRate.Interval, "rate")}
}

// comparedOver says which stages the table is about.
func comparedOver(b *result.LabelBreakdown) string {
	if len(b.Stages) == 0 {
		return "no stage was worked by every " + name(b.Label) + ", so nothing is compared"
	}
	var stages []string
	for i, s := range b.Stages {
		if i == maxNamed+2 {
			stages = append(stages, count(float64(len(b.Stages)-i))+" more")
			break
		}
		stages = append(stages, stageLabel(s))
	}
	return "over what every " + name(b.Label) + " did: " + strings.Join(stages, ", ")
}
