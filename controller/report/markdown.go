package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// Markdown writes REPORT.md: the evidence behind the verdict, every metric of
// every probe with its denominator, every caveat, and how to run it again.
// The error is w's.
func Markdown(w io.Writer, doc *result.Document) error {
	r, p := read(doc), &page{}
	p.head(r)
	if r.Load != nil {
		return p.loadReport(w, r)
	}
	p.verdict(r)
	p.actual(r)
	p.breakdown(r)
	for _, phase := range reportPhases {
		p.phase(r, phase)
	}
	p.caveats(r)
	p.fleetSection(r)
	p.howRun(r)
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) head(r *reading) {
	p.heading(1, "Reliability report: "+code(cmp.Or(r.Target.Name, r.Target.URI)))
	p.headList(r)
}

// headList is the list of facts both Markdown formats begin with.
func (p *page) headList(r *reading) {
	item := func(label, text string) {
		if text != "" {
			p.line("- **", label, ":** ", text)
		}
	}
	item("Scanned", stamp(r.Run.StartedAt))
	item("Target", code(r.Target.URI)+", "+esc(targetLine(r.Target)))
	if r.Target.Tool != "" {
		item("Tool", toolMarkdown(r.Target))
	}
	item("Policy", code(r.Verdict.Policy)+", pass score "+points(r.Verdict.PassScore))
	item("Work", esc(r.runLine()))
	if r.Target.Virtual {
		item("Clock", "virtual: latency is reported, not slept")
	}
	item("Faults", esc(r.faultsLine()))
	if r.Run.Partial {
		item("Partial", esc(cmp.Or(r.Run.PartialReason, "the run did not finish")))
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func toolMarkdown(t result.Target) string {
	text := code(t.Tool)
	if t.Mutability != "" {
		text += " (" + esc(t.Mutability) + ")"
	}
	if len(t.ToolArgs) > 0 {
		text += ", arguments " + code(fit(clean(string(t.ToolArgs)), 200))
	}
	if t.ToolArgsSource != "" {
		text += ", source: " + esc(t.ToolArgsSource)
	}
	return text
}

func (p *page) verdict(r *reading) {
	p.heading(2, "Verdict")
	p.line("> **", esc(verdictLine(r, 0)), "**  ")
	p.line("> ", esc(gapsLine(r)))
}

func (p *page) actual(r *reading) {
	p.heading(2, "Actual vs target")
	if len(r.Checks) == 0 {
		p.line("The policy set no threshold for what was measured.")
		return
	}
	var body [][]string
	for _, c := range checksInOrder(r.Checks) {
		body = append(body, []string{esc(checkName(c.Key)), actualText(c), limitText(c), r.statusMarkdown(c),
			denominator(c.N), interval(c.Interval, c.Unit), esc(c.Reason)})
	}
	p.table([]string{"measurement", "actual", "target", "status", "n", "95% interval", "reason"}, body)
	if slices.ContainsFunc(r.Checks, r.qualified) {
		p.line()
		p.line("`~` marks a number with a caveat, see below.")
	}
}

// statusMarkdown is the status, bold when it failed, with ~ when qualified.
func (r *reading) statusMarkdown(c result.Check) string {
	status := statusWord(c.Status)
	if c.Status == result.Fail {
		status = "**" + status + "**"
	}
	if r.qualified(c) {
		status += " ~"
	}
	return status
}

func denominator(n int64) string {
	if n <= 0 {
		return absent
	}
	return count(float64(n))
}

func (p *page) breakdown(r *reading) {
	p.heading(2, "Score breakdown")
	var body [][]string
	for _, d := range r.Breakdown {
		body = append(body, []string{esc(d.Dimension), dimensionPoints(d), esc(dimensionNote(d))})
	}
	body = append(body, []string{"**total**", "**" + optional(r.Verdict.Score, points) + "/100**", esc(totalNote(r.Verdict))})
	p.table([]string{"dimension", "points", "note"}, body)
}

// totalNote explains why the total is not the sum of the column.
func totalNote(v result.Verdict) string {
	var parts []string
	if v.CapReason != "" && v.UncappedScore != nil {
		parts = append(parts, "capped from "+points(*v.UncappedScore)+": "+v.CapReason)
	}
	if v.MeasuredWeight > 0 && v.MeasuredWeight < 100 {
		parts = append(parts, "points of "+points(v.MeasuredWeight)+" measured weight, scaled to 100")
	}
	return strings.Join(parts, "; ")
}

func (p *page) caveats(r *reading) {
	p.heading(2, "Caveats")
	if len(r.Caveats) == 0 {
		p.line("None: every number stands as shown.")
		return
	}
	scored, others := r.splitCaveats()
	for _, c := range append(scored, others...) {
		p.line("- **", esc(r.caveatSubject(c)), "** (", effectWord(c.Effect), ", ", code(c.ID), "): ", esc(caveatText(c)))
	}
}

func effectWord(e metrics.Effect) string {
	switch e {
	case metrics.Suppress:
		return "withheld"
	case metrics.Annotate:
		return "qualified"
	case metrics.Inapplicable:
		return "not applicable"
	}
	return esc(string(e))
}
