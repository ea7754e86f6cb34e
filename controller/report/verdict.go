package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ordeal/controller/result"
)

// Verdict is the verdict in one line without a line break, for ci --quiet and
// the first line of every report. It begins with PASS, PASS (unproven: ...),
// FAIL, NO VERDICT or NO SCORE.
func Verdict(doc *result.Document) string { return verdictLine(read(doc), 0) }

// FailedChecks is one line per check that failed or is undecided, failures
// first, each with the observed value, the limit, n and the 95 % interval.
func FailedChecks(doc *result.Document) []string {
	var out []string
	for _, c := range checksInOrder(doc.Checks) {
		if c.Status != result.Fail && c.Status != result.Undecided {
			continue
		}
		line := fmt.Sprintf("%s: %s %s, limit %s, n %s", statusWord(c.Status), checkName(c.Key), actualText(c), limitText(c), count(float64(c.N)))
		if c.Interval != nil {
			line += ", 95% interval " + interval(c.Interval, c.Unit)
		}
		out = append(out, line)
	}
	return out
}

// verdictWord is the first word of the verdict.
func verdictWord(v result.Verdict) string {
	switch {
	case v.Passed != nil && *v.Passed:
		return "PASS"
	case v.Passed != nil:
		return "FAIL"
	case v.Score == nil:
		return "NO SCORE"
	}
	return "NO VERDICT"
}

// verdictLine writes the verdict in at most width columns, 0 for no bound. Too
// many names end in "and N more"; the table above has them all.
func verdictLine(r *reading, width int) string {
	if r.Load != nil {
		return r.loadVerdictText()
	}
	tail := ""
	if r.Run.Partial {
		tail = " Partial run."
	}
	if width == 0 {
		return verdictWith(r, strings.Join(verdictNames(r), ", "), reasons(r.Verdict)) + tail
	}
	names, why := verdictNames(r), unfit(r.Verdict)
	if why == "" && len(names) == 0 {
		why = reasons(r.Verdict)
	}
	for keep := len(names); ; keep-- {
		line := verdictWith(r, enumerate(names, keep), why)
		if columns(line) <= width-len(tail) {
			return line + tail
		}
		if keep == 0 {
			return fit(line, width-len(tail)) + tail
		}
	}
}

// verdictNames are the checks the verdict names.
func verdictNames(r *reading) []string {
	status := map[string]result.Status{"PASS": result.Unproven, "FAIL": result.Fail, "NO VERDICT": result.Undecided}[verdictWord(r.Verdict)]
	names := namesOf(r, status)
	if status == result.Undecided && len(names) == 0 {
		names = namesOf(r, result.Unproven) // a strict policy wants them proven
	}
	return names
}

func namesOf(r *reading, status result.Status) []string {
	var names []string
	for _, c := range r.Checks {
		if c.Status == status {
			names = append(names, checkName(c.Key))
		}
	}
	return names
}

// enumerate joins the first keep names and counts the rest.
func enumerate(names []string, keep int) string {
	if keep >= len(names) {
		return strings.Join(names, ", ")
	}
	rest := fmt.Sprintf("%d more", len(names)-keep)
	if keep == 0 {
		return times(int64(len(names)), "check")
	}
	return strings.Join(names[:keep], ", ") + " and " + rest
}

// verdictWith writes the verdict with the names of checks and the policy's
// reasons as far as each kind of verdict uses them.
func verdictWith(r *reading, names, why string) string {
	v := r.Verdict
	word := verdictWord(v)
	line := ""
	switch word {
	case "PASS":
		if names != "" {
			word += " (unproven: " + names + ")"
		}
		line = word + ": " + scoreClause(v)
	case "FAIL":
		line = word + ": " + failClause(v, names)
	case "NO SCORE":
		line = word + ": " + cmp.Or(why, "no threshold could be evaluated")
	default:
		line = word + ": " + cmp.Or(why, undecidedClause(names))
	}
	return sentence(line)
}

func scoreClause(v result.Verdict) string {
	if v.Score == nil {
		return "no check failed"
	}
	return "score " + points(*v.Score) + ", pass score " + points(v.PassScore)
}

func failClause(v result.Verdict, names string) string {
	switch {
	case v.Score != nil && *v.Score < v.PassScore && names != "":
		return "score " + points(*v.Score) + " below " + points(v.PassScore) + ", failed: " + names
	case v.Score != nil && *v.Score < v.PassScore:
		return "score " + points(*v.Score) + " is below the pass score " + points(v.PassScore)
	case v.Score != nil && names != "":
		return "score " + points(*v.Score) + " meets " + points(v.PassScore) + ", but failed: " + names
	case names != "":
		return "failed: " + names
	}
	return cmp.Or(reasons(v), "the policy does not accept this result")
}

func undecidedClause(names string) string {
	if names == "" {
		return "too little was measured"
	}
	return "the evidence does not decide " + names
}

// unfitPrefix marks a reason of the policy why a run can have no verdict at all.
const unfitPrefix = "no verdict: "

// unfit is the first such reason, "" when there is none.
func unfit(v result.Verdict) string {
	for _, reason := range v.Reasons {
		if text, ok := strings.CutPrefix(reason, unfitPrefix); ok {
			return strings.TrimRight(clean(text), ". ")
		}
	}
	return ""
}

func reasons(v result.Verdict) string {
	var out []string
	for _, reason := range v.Reasons {
		if text := strings.TrimRight(clean(strings.TrimPrefix(reason, unfitPrefix)), ". "); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// gapsLine names the two dimensions that lost most points.
func gapsLine(r *reading) string {
	lost := slices.DeleteFunc(slices.Clone(r.Breakdown), func(d result.Dimension) bool {
		return d.Points == nil || d.Weight-*d.Points < 0.05
	})
	slices.SortStableFunc(lost, func(a, b result.Dimension) int {
		return cmp.Compare(b.Weight-*b.Points, a.Weight-*a.Points)
	})
	var parts []string
	for _, d := range lost[:min(2, len(lost))] {
		parts = append(parts, clean(d.Dimension)+" ("+dimensionPoints(d)+")")
	}
	switch {
	case len(parts) > 0:
		return "Biggest gaps: " + strings.Join(parts, ", ") + "."
	case r.Verdict.Score == nil:
		return "Biggest gaps: unknown, nothing was scored."
	}
	return "Biggest gaps: none."
}

// refusalLine is the verdict of a run that was refused.
func refusalLine(ref *result.Refusal) string { return sentence("REFUSED: " + clean(ref.Reason)) }
