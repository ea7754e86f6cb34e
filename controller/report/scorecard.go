package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// MaxWidth is the widest a scorecard gets, MinWidth the narrowest that still
// holds its table; a width outside is brought to the nearer one.
const (
	MaxWidth = 80
	MinWidth = 48
)

// ScorecardOptions say how the terminal wants it.
type ScorecardOptions struct {
	Color   bool
	Width   int    // columns, MinWidth..MaxWidth; 0 = MaxWidth
	Verbose bool   // also caveats of unscored rows and the evidence of findings
	Hint    string // what to run next; printed above the verdict
}

func (o ScorecardOptions) sheet() *sheet {
	return &sheet{width: min(max(cmp.Or(o.Width, MaxWidth), MinWidth), MaxWidth), color: o.Color}
}

// Scorecard writes what a person reads in the terminal. Its second last line
// is the verdict, its last the biggest gaps; a load test has one of its own, see
// LoadScorecard. The error is w's.
func Scorecard(w io.Writer, doc *result.Document, opt ScorecardOptions) error {
	if doc.Load != nil {
		return LoadScorecard(w, doc, opt)
	}
	r, s := read(doc), opt.sheet()
	s.header(r)
	s.phases(r)
	s.fleet(r)
	s.checks(r)
	s.caveats(r, opt.Verbose)
	s.breakdown(r)
	s.score(r)
	s.findings(r, opt.Verbose)
	s.hint(r, opt.Hint)
	s.ending(r)
	_, err := io.WriteString(w, s.String())
	return err
}

// Refused writes the scorecard of a run that was refused: what, why and what
// to do, the last line but one being the verdict.
func Refused(w io.Writer, ref *result.Refusal, opt ScorecardOptions) error {
	s := opt.sheet()
	s.title("scan")
	s.para(strong, "Target:", labelColumn, targetLine(ref.Target))
	if ref.Target.Tool != "" {
		s.para(strong, "Tool:", labelColumn, toolLine(ref.Target))
	}
	s.blank()
	s.para(bad, "Why:", labelColumn, sentence(clean(ref.Reason)))
	if ref.Remedy != "" {
		s.para(good, "Remedy:", labelColumn, sentence(clean(ref.Remedy)))
	}
	s.blank()
	s.line(bad, refusalLine(ref))
	s.line("", "Nothing was measured, so there is no score.")
	_, err := io.WriteString(w, s.String())
	return err
}

// labelColumn is where the header's values begin, nameColumn where the
// summaries of the probes do.
const (
	labelColumn = 9
	nameColumn  = 21
)

func (s *sheet) title(command string) {
	head := "ordeal " + cmp.Or(clean(command), "scan")
	s.line(strong, head)
	s.line(quiet, strings.Repeat("=", min(columns(head), s.width)))
	s.blank()
}

func (s *sheet) header(r *reading) {
	s.title(r.Command)
	field := func(label, text string) {
		if text != "" {
			s.para(strong, label, labelColumn, text)
		}
	}
	field("Target:", r.targetLine())
	if clean(r.Target.URI) != clean(r.Target.Name) {
		field("URI:", clean(r.Target.URI))
	}
	field("Tool:", toolLine(r.Target))
	field("Probes:", r.runLine())
	if r.Target.Virtual {
		field("Clock:", "virtual clock: latency is reported, not slept")
	}
	field("Faults:", r.faultsLine())
	if r.Run.Partial {
		s.para(caveat, "Partial:", labelColumn, sentence(cmp.Or(clean(r.Run.PartialReason), "the run did not finish")))
	}
	s.blank()
}

func toolLine(t result.Target) string {
	if t.Tool == "" {
		return ""
	}
	line := clean(t.Tool)
	if t.Mutability != "" {
		line += " (" + clean(t.Mutability) + ")"
	}
	if args := argsText(t); args != "" {
		line += ", arguments " + args
	}
	return line
}

type phaseTitle struct{ name, title string }

// phaseTitles in the order they run.
var phaseTitles = []phaseTitle{
	{"baseline", "Phase 1  baseline"},
	{"chaos", "Phase 2  chaos (fault injection)"},
	{"behavior", "Phase 3  behavior analysis"},
	{"load", "Load"},
}

func (s *sheet) phases(r *reading) {
	for _, phase := range phaseTitles {
		ran := slices.ContainsFunc(r.Probes, func(p result.Probe) bool { return p.Phase == phase.name })
		if !ran && (phase.name == "load" || r.Command != "" && r.Command != "scan" && r.Command != "ci") {
			continue // a scan has no load, load and chaos have one phase
		}
		s.line(strong, phase.title)
		for _, p := range r.Probes {
			if p.Phase == phase.name {
				s.summary(p)
			}
		}
		if !ran {
			s.line(quiet, "  "+r.whyNotRun(phase.name))
		}
		s.blank()
	}
}

// whyNotRun tells a phase nobody asked for from one that was not reached.
func (r *reading) whyNotRun(phase string) string {
	if phases := decode[[]string](r.spec["phases"]); len(phases) > 0 && !slices.Contains(phases, phase) {
		return "not selected"
	}
	return "not run"
}

func (s *sheet) summary(p result.Probe) {
	name := fit(probeName(p.Name), nameColumn-5)
	lead := "  " + name + " " + strings.Repeat(".", nameColumn-4-columns(name))
	s.para("", lead, nameColumn, summaryText(p))
}

// summaryText is the probe's own sentence with what became of the probe.
func summaryText(p result.Probe) string {
	switch {
	case p.Error != "":
		return "did not complete: " + clean(p.Error)
	case !p.Applicable && p.Summary == "":
		return "not applicable to this target"
	case !p.Applicable && strings.HasPrefix(p.Summary, "not "): // applicable, measured, run
		return clean(p.Summary)
	case !p.Applicable:
		return "not applicable: " + clean(p.Summary)
	}
	return cmp.Or(clean(p.Summary), "done")
}

var statusTones = map[result.Status]tone{
	result.Fail: bad, result.Undecided: caveat, result.Unproven: note, result.Pass: good, result.NA: quiet,
}

func (s *sheet) checks(r *reading) {
	if len(r.Checks) == 0 {
		return
	}
	var body [][]cell
	for _, c := range checksInOrder(r.Checks) {
		status := statusWord(c.Status)
		if r.qualified(c) {
			status += " ~"
		}
		actual := strong
		if c.Observed == nil {
			actual = quiet
		}
		body = append(body, []cell{
			{checkName(c.Key), ""}, {actualText(c), actual}, {limitText(c), ""},
			{status, statusTones[c.Status]}, {denominator(c.N), quiet}, {interval(c.Interval, c.Unit), quiet},
		})
	}
	s.grid([]string{"", "actual", "target", "status", "n", "95% interval"}, body)
	s.blank()
}

func (s *sheet) caveats(r *reading, verbose bool) {
	scored, others := r.splitCaveats()
	shown := scored
	if verbose {
		shown = append(shown, others...)
	}
	for _, c := range shown {
		s.para(caveat, "  ~", 4, r.caveatSubject(c)+": "+caveatText(c))
	}
	if n := len(others); n > 0 && !verbose {
		s.para(caveat, "  ~", 4, times(int64(n), "caveat")+" on rows without a score ("+probesOf(others)+"): -v shows "+itOrThem(n))
	}
	if len(r.Caveats) > 0 {
		s.blank()
	}
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// probesOf lists the probes of caveats, each once, in their order.
func probesOf(caveats []metrics.Caveat) string {
	var names []string
	seen := map[string]bool{}
	for _, c := range caveats {
		if !seen[c.Probe] {
			seen[c.Probe] = true
			names = append(names, clean(c.Probe))
		}
	}
	return strings.Join(names, ", ")
}
