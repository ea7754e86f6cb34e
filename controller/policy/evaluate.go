package policy

import (
	"fmt"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// Input is what a run measured and what it was asked to measure.
type Input struct {
	Probes  []result.Probe   // those that ran, in any order, each name once
	Caveats []metrics.Caveat // why numbers are missing
	// Selected are the probes and Phases the phases the user asked for; nil
	// means all of them.
	Selected []string
	Phases   []string
	// Requests per probe, to turn an estimate of measurements into requests;
	// 0 when the run had no such number.
	Requests int64
	// Oracle tells that the effects of writes were to be read back. If that
	// failed there is no verdict: the headline check went unasked.
	Oracle bool
}

// Outcome is everything the policy has to say about a run.
type Outcome struct {
	Verdict   result.Verdict
	Checks    []result.Check     // one per threshold set, in the order of Rows
	Breakdown []result.Dimension // one per dimension with weight
	Needs     []Need             // what would settle the undecided and the unproven checks
}

// Evaluate judges a run. p is one that Parse or Default returned.
func Evaluate(p *Policy, in Input) Outcome {
	c := &court{Policy: p, in: in, probes: map[string]*result.Probe{}}
	for i := range in.Probes {
		c.probes[in.Probes[i].Name] = &in.Probes[i]
	}
	var checks []judged
	out := Outcome{Checks: []result.Check{}}
	for _, t := range thresholds {
		if _, set := p.Thresholds[t.key]; !set {
			continue
		}
		j := c.judge(t)
		checks = append(checks, j)
		out.Checks = append(out.Checks, j.Check)
		if j.need != nil {
			out.Needs = append(out.Needs, *j.need)
		}
	}
	out.Breakdown = c.breakdown(checks)
	out.Verdict = c.verdict(checks, out.Breakdown)
	return out
}

func (c *court) verdict(checks []judged, rows []result.Dimension) result.Verdict {
	v := result.Verdict{PassScore: c.PassScore, Policy: c.Name, GradedWeight: c.gradedWeight()}
	v.UncappedScore, v.MeasuredWeight = composite(rows)
	if v.UncappedScore != nil {
		score, why := c.capped(*v.UncappedScore, checks)
		v.Score, v.CapReason = &score, why
	}
	v.Passed = c.passed(&v, checks, rows)
	return v
}

// minimumCoverage is the share of the graded weight above which a composite
// speaks for the policy. At or below one half the minority would.
const minimumCoverage = 0.5

// passed decides. What makes a run unfit for a verdict comes before what speaks
// against it: of a run that measured too little, neither answer would be one
// to the question the policy asks.
func (c *court) passed(v *result.Verdict, checks []judged, rows []result.Dimension) *bool {
	blocked := c.unfit(v, rows)
	failed, undecided, unproven := with(checks, result.Fail), with(checks, result.Undecided), with(checks, result.Unproven)
	v.Reasons = append(blocked, c.reasons(v, failed, undecided, unproven)...)
	open := len(undecided) > 0 || c.Strict && len(unproven) > 0
	if len(blocked) > 0 || len(failed) == 0 && open {
		return nil
	}
	passed := len(failed) == 0 && *v.Score >= c.PassScore
	return &passed
}

// reasons names every check that is not a plain pass, worst first.
func (c *court) reasons(v *result.Verdict, failed, undecided, unproven []judged) []string {
	var out []string
	if len(failed) > 0 {
		out = append(out, "failed: "+keys(failed))
	}
	if v.Score != nil && *v.Score < c.PassScore {
		out = append(out, fmt.Sprintf("score %.1f is below pass_score %g", *v.Score, c.PassScore))
	}
	if len(undecided) > 0 {
		out = append(out, "undecided: more requests needed for "+needs(undecided))
	}
	if len(unproven) > 0 && c.Strict {
		out = append(out, "strict: met, but not proven: "+needs(unproven))
	} else if len(unproven) > 0 {
		out = append(out, "unproven: met, but not proven at this sample size: "+keys(unproven))
	}
	return out
}

// unfit lists what keeps a run from having a verdict at all, and what would
// bring one.
func (c *court) unfit(v *result.Verdict, rows []result.Dimension) []string {
	why := []string{}
	switch {
	case v.Score == nil:
		why = append(why, "no verdict: nothing the policy gives weight to was measured")
	case !(v.MeasuredWeight/v.GradedWeight > minimumCoverage):
		why = append(why, fmt.Sprintf("no verdict: %g of %g policy points measured; over half needed", v.MeasuredWeight, v.GradedWeight))
		why = append(why, c.missing(rows)...)
	}
	if c.oracleSilent() {
		why = append(why, "no verdict: the effects of writes were to be read back and were not measured")
	}
	return why
}

// missing tells in one line which dimensions the policy asks about and the run
// did not measure, and why.
func (c *court) missing(rows []result.Dimension) []string {
	var parts []string
	for _, row := range rows {
		if row.Points == nil && c.graded(row.Dimension) {
			parts = append(parts, fmt.Sprintf("%s (%g points; %s)", row.Dimension, row.Weight, strings.TrimSuffix(row.Note, ".")))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"for a verdict measure more of: " + strings.Join(parts, ", ")}
}

// oracleSilent reports that the state was to be read and the answer is missing.
func (c *court) oracleSilent() bool {
	p := c.probes["behavior"]
	if !c.in.Oracle || p == nil {
		return false
	}
	if status, ok := p.Metrics["effect_oracle_status"].Value.(string); ok {
		return status == "stale" || status == "failed"
	}
	_, _, ok := c.metric("behavior", "duplicate_mutations")
	return !ok
}

func with(checks []judged, s result.Status) []judged {
	return slices.DeleteFunc(slices.Clone(checks), func(j judged) bool { return j.Status != s })
}

func keys(checks []judged) string {
	var out []string
	for _, j := range checks {
		out = append(out, j.Key)
	}
	return strings.Join(out, ", ")
}

func needs(checks []judged) string {
	var out []string
	for _, j := range checks {
		out = append(out, j.need.words())
	}
	return strings.Join(out, ", ")
}
