package policy

import (
	"fmt"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/controller/spec"
)

// notScoredNote explains why a dimension has no points.
var notScoredNote = map[string]string{
	"not_selected":   "the probe was not selected",
	"phase_excluded": "no selected phase runs the probe",
	"did_not_run":    "the probe did not run",
	"not_applicable": "the probe does not apply to this target",
	"no_threshold":   "no threshold of the policy reads it",
	"not_measured":   "none of its thresholds could be measured",
}

// absent says why a probe left no trace.
func (c *court) absent(probe string) string {
	switch {
	case c.in.Selected != nil && !slices.Contains(c.in.Selected, probe):
		return "not_selected"
	case c.in.Phases != nil && !slices.Contains(c.in.Phases, spec.PhaseOf(probe)):
		return "phase_excluded"
	}
	return "did_not_run"
}

// breakdown gives every dimension that has weight its points.
func (c *court) breakdown(checks []judged) []result.Dimension {
	rows := []result.Dimension{}
	for _, d := range dimensions {
		if weight := c.Weights[d]; weight > 0 {
			rows = append(rows, c.dimension(d, weight, checks))
		}
	}
	return rows
}

// dimension is the plain mean of the measured checks of one probe, in points
// of its weight. Points that rest on one check of several say so.
func (c *court) dimension(name string, weight float64, checks []judged) result.Dimension {
	row := result.Dimension{Dimension: name, Weight: weight}
	sum, measured := 0.0, 0
	var worst *judged
	var open []judged
	for i, j := range checks {
		switch {
		case j.t.probe != name:
			continue
		case !j.measured():
			open = append(open, j)
			continue
		}
		row.Note = j.t.label + " only"
		sum, measured = sum+*j.Score, measured+1
		if j.missed() && (worst == nil || *j.Score < *worst.Score) {
			worst = &checks[i]
		}
	}
	if measured == 0 {
		row.NotScored = c.notScored(name)
		row.Note = notScoredNote[row.NotScored]
		if row.NotScored == "not_measured" && len(open) > 0 {
			row.Note = strings.TrimPrefix(open[0].Reason, "not measured: ")
		}
		return row
	}
	points := sum / float64(measured) / 100 * weight
	row.Points = &points
	switch {
	case worst != nil:
		row.Note = worst.Reason
	case measured == 1 && len(open) > 0:
		row.Note += "; " + labels(open) + " not measured"
	default:
		row.Note = ""
	}
	return row
}

func labels(checks []judged) string {
	var out []string
	for _, j := range checks {
		out = append(out, j.t.label)
	}
	return strings.Join(out, ", ")
}

func (c *court) notScored(name string) string {
	p := c.probes[name]
	switch {
	case p == nil:
		return c.absent(name)
	case p.Error != "":
		return "did_not_run"
	case !p.Applicable:
		return "not_applicable"
	case !c.graded(name):
		return "no_threshold"
	}
	return "not_measured"
}

// graded reports whether the policy asks anything about a dimension.
func (c *court) graded(name string) bool {
	for _, t := range thresholds {
		if _, set := c.Thresholds[t.key]; set && t.probe == name {
			return true
		}
	}
	return false
}

// gradedWeight is the weight of the dimensions the policy asks about, measured
// or not: the denominator of coverage. It comes from the policy alone, so that
// what happened to run cannot change it.
func (c *court) gradedWeight() float64 {
	sum := 0.0
	for _, d := range dimensions {
		if c.graded(d) {
			sum += c.Weights[d]
		}
	}
	return sum
}

// composite is the weighted mean over the measured dimensions, 0..100, and
// their weight; nil when nothing was measured.
func composite(rows []result.Dimension) (score *float64, measured float64) {
	points := 0.0
	for _, row := range rows {
		if row.Points != nil {
			points, measured = points+*row.Points, measured+row.Weight
		}
	}
	if measured == 0 {
		return nil, 0
	}
	// Rounding may carry a full mean past its end.
	s := min(100, points/measured*100)
	return &s, measured
}

// capped applies the ceilings of failed checks. A ceiling never raises.
func (c *court) capped(score float64, checks []judged) (float64, string) {
	var failed, absolute []string
	for _, j := range checks {
		if j.Status == result.Fail {
			failed = append(failed, j.Key)
			if j.t.absolute {
				absolute = append(absolute, j.Key)
			}
		}
	}
	ceiling, named, why := c.FailCap, failed, "check failed"
	if len(absolute) > 0 {
		ceiling, named, why = c.AbsoluteFailCap, absolute, "absolute check failed"
	}
	if len(failed) == 0 || score <= ceiling {
		return score, ""
	}
	return ceiling, fmt.Sprintf("%s (%s)", why, strings.Join(named[:min(2, len(named))], ", "))
}
