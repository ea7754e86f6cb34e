package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ordeal/agent/wire"
	"ordeal/controller/result"
)

// Limits of texts about a contract.
const (
	manyCases   = 18  // from here on the volume needs an explanation
	lowDeclared = 0.5 // share of testable rules a schema declares
)

func (s *sheet) coverage(b *book) {
	n := int64(len(b.tools))
	eligible := n - int64(len(b.skipped()))
	s.count("tools", n, n)
	s.count("tools_probed", int64(len(b.probed)), n)
	s.fact("tools_probed_names", list(b.probed), n)
	s.count("tools_eligible", eligible, n)
	s.fact("tools_skipped_mutating", list(b.mutating), n)
	s.fact("tools_skipped_unknown", list(b.unknown), n)
	s.count("tools_skipped_unsafe", int64(len(b.skipped())), n)
	s.count("tools_capped", max(0, eligible-int64(len(b.probed))), n)
	s.count("tools_limit", int64(b.limit), n)
	s.fact("full_coverage", len(b.probed) == len(b.tools), n)
	s.fact("real_args_tool", b.realTool, n)
	s.fact("real_args_applied", b.realApplied, n)
	s.fact("schema_issues", list(b.issues), n)
}

// list keeps an empty list apart from a missing one.
func list(texts []string) []string { return append([]string{}, texts...) }

func (s *sheet) cases(b *book) {
	n := b.total()
	s.count("cases_run", n, n)
	s.count("cases_left_out", b.leftOut, n+b.leftOut)
	s.count("crashes", b.fates[crashed], n)
	s.count("unanswered", b.fates[unanswered], n)
	s.count("rejected", b.fates[rejected], n)
	s.count("accepted", b.fates[accepted], n)
	s.count("rejected_unclassified", b.silent, b.fates[rejected])
	s.count("rejected_rate_limited", b.limited, b.fates[rejected])
	s.count("decided_by_text", b.byText, n)
	worst := map[string]string{}
	var fields []string
	for _, c := range b.cases {
		if now, seen := worst[c.Kind]; !seen || fateRank[c.Fate] > fateRank[now] {
			worst[c.Kind] = c.Fate
		}
		if f := c.field(); f != "" {
			fields = append(fields, c.Tool+"."+f)
		}
	}
	slices.Sort(fields)
	s.fact("outcome_by_case", worst, n)
	s.fact("required_fields_probed", list(slices.Compact(fields)), n)
	s.fact("cases_per_tool", b.perTool, n)
	s.fact("cases", slices.Clone(b.cases), n)
}

// controls tell whether silence can be put down to the input.
func (s *sheet) controls(b *book) {
	n := b.total()
	s.count("control_calls", b.calls(), b.calls())
	s.count("control_undelivered", b.lost(), b.calls())
	s.rate("control_undelivered_rate", b.lost(), b.calls())
	s.fact("session_answered", b.calls() > b.lost(), b.calls())
	s.fact("crash_attributable", b.clean(), b.calls())
	s.fact("tools_rejecting_baseline", list(slices.Sorted(slices.Values(b.rejecting))), b.calls())
	silent := b.fates[crashed] + b.fates[unanswered]
	s.rate("crash_rate", silent, n)
	s.rate("unscored_crash_rate", silent, n)
	if b.clean() {
		s.missing("rate", n, "unscored_crash_rate")
	}
}

// violations counts malformed calls the schema forbids and the tool took.
func (s *sheet) violations(b *book) {
	s.count("cases_unattributable", b.unattributable, b.total())
	s.fact("accepted_invalid_evidence_thin", b.thin(), b.total())
	s.count("accepted_invalid", b.wrong, b.scoreable)
	s.rate("accepted_invalid_rate", b.wrong, b.scoreable)
	s.fact("reference_cases", b.reference(), b.total())
}

// reference counts the cases that a RateMyAgent scan sends too.
func (b *book) reference() map[string]int64 {
	counts := map[string]int64{"cases_run": 0, "accepted_invalid": 0, crashed: 0, unanswered: 0, accepted: 0, rejected: 0}
	for _, c := range b.cases {
		if !c.Reference {
			continue
		}
		counts["cases_run"]++
		counts[c.Fate]++
		if c.WronglyAccepted {
			counts["accepted_invalid"]++
		}
	}
	return counts
}

// strictness is the share of the reference cases that the schemas forbid: how
// much there was to violate. Our own cases violate a rule by construction and
// would make every schema look strict.
func (s *sheet) strictness(b *book) {
	declared := map[string][]string{}
	var n, forbidden int64
	for _, c := range b.cases {
		if !c.Reference {
			continue
		}
		n++
		if c.Forbidden {
			forbidden++
			declared[c.Tool] = append(declared[c.Tool], c.Label)
		}
	}
	s.missing("rate", n, "schema_strictness")
	if n > 0 {
		s.put("schema_strictness", "rate", float64(forbidden)/float64(n), n)
	}
	s.fact("declarable_by_tool", declared, n)
}

// output counts answers that broke the tool's own output schema.
func (s *sheet) output(results []*wire.ContractResult) {
	var checked, broken int64
	first := ""
	for _, r := range results {
		checked += r.Output.Checked
		broken += r.Output.Violations
		first = cmp.Or(first, r.Output.First)
	}
	s.count("output_checked", checked, checked)
	s.rate("output_violation_rate", broken, checked)
	s.missing("count", 0, "output_violations")
	if checked == 0 {
		return
	}
	s.count("output_violations", broken, checked)
	if broken > 0 {
		s.finding("output_violations", result.Warning, fmt.Sprintf(
			"%d of %d answers broke the tool's own output schema.", broken, checked), first)
	}
}

func (s *sheet) contractCaveats(in *Input, b *book) {
	s.coverageCaveats(in, b)
	if b.total() == 0 {
		s.caveat(noCase())
		return
	}
	switch {
	case b.calls() == b.lost():
		s.caveat(sessionDead(b.calls()))
	case b.lost() > 0:
		s.caveat(flakyControls(b.lost(), b.calls()))
	case b.unverified > 0:
		s.caveat(livenessUnknown(b.unverified))
	}
	switch {
	case b.thin():
		s.caveat(thinEvidence(b.total()))
	case b.scoreable == 0:
		s.caveat(nothingForbidden(b.unattributable))
	}
	if b.silent > 0 {
		s.caveat(unclassifiedRejections(b.silent, b.fates[rejected]))
	}
	if b.byText > 0 {
		s.caveat(contractByText(b.byText, b.total()))
	}
	if b.limited > 0 {
		s.caveat(limitedCases(b.limited))
	}
	if b.unattributable > 0 {
		s.caveat(unattributableCases(b.unattributable, b.rejecting))
	}
	if slices.ContainsFunc(b.cases, func(c Case) bool { return c.Kind == "extra_param" && c.Forbidden && !c.Attributable && !c.limited }) {
		s.caveat(extraKeyUnscored())
	}
	if declared, ok := s.probe.Metrics["schema_strictness"].Number(); ok && declared < lowDeclared {
		s.caveat(lowStrictness(declared))
	}
}

func (s *sheet) coverageCaveats(in *Input, b *book) {
	others := slices.DeleteFunc(list(b.probed), func(name string) bool { return name == b.realTool })
	switch {
	case b.realTool != "" && !b.realApplied:
		s.caveat(realArgsUnused(b.realTool))
	case b.realTool != "" && len(others) > 0:
		s.caveat(realArgsPartial(b.realTool, others))
	}
	if len(b.probed) < len(b.tools) {
		s.caveat(toolCoverage(len(b.probed), len(b.tools), len(b.skipped()), b.limit))
	}
	if b.leftOut > 0 {
		s.caveat(casesCapped(b.leftOut, in.Spec.ContractCases, b.most))
	}
	if b.total() > manyCases {
		s.caveat(caseVolume(b.total(), b.perTool))
	}
}

func (s *sheet) contractSummary(b *book) {
	if b.total() == 0 {
		s.probe.Summary = fmt.Sprintf("no malformed call sent to %s", plural(int64(len(b.tools)), "tool", "tools"))
		return
	}
	across := plural(int64(len(b.tools)), "tool", "tools")
	if len(b.probed) < len(b.tools) {
		across = fmt.Sprintf("%d of %s", len(b.probed), across)
	}
	s.probe.Summary = fmt.Sprintf("%d malformed calls to %s: %d rejected, %d accepted, %d crashed",
		b.total(), across, b.fates[rejected], b.fates[accepted], b.fates[crashed])
	if b.limited > 0 {
		s.probe.Summary += fmt.Sprintf(", %d of the rejections for quota", b.limited)
	}
	if n := b.fates[unanswered]; n > 0 {
		s.probe.Summary += fmt.Sprintf(", %d unanswered", n)
	}
	if !b.clean() {
		s.probe.Summary += fmt.Sprintf(" (%d of %d control calls unanswered too)", b.lost(), b.calls())
	}
}

func (s *sheet) contractFindings(b *book) {
	pick := func(is func(*Case) bool) []string {
		var names []string
		for i := range b.cases {
			if is(&b.cases[i]) {
				names = append(names, b.cases[i].name())
			}
		}
		return names
	}
	died := func(c *Case) bool { return c.Fate == crashed }
	mute := func(c *Case) bool { return c.Fate == unanswered }
	wrong := func(c *Case) bool { return c.WronglyAccepted }
	if names := pick(died); len(names) > 0 && b.clean() {
		s.finding("crash", result.Critical, fmt.Sprintf(
			"%d of %d malformed calls took the tool down instead of bringing an error: %s. A model sends malformed arguments every day.",
			len(names), b.total(), some(names, 6)), reproducer(b.cases, died)+ending(b.cases))
	}
	if names := pick(mute); len(names) > 0 {
		s.finding("unanswered", result.Warning, fmt.Sprintf(
			"%d of %d malformed calls got no answer from a target that was alive afterwards: %s.", len(names), b.total(), some(names, 6)), reproducer(b.cases, mute))
	}
	if names := pick(wrong); len(names) > 0 {
		s.finding("accepted_invalid", result.Critical, fmt.Sprintf(
			"%d inputs that the schema forbids were accepted with success: %s.%s What is declared is not checked, so the bad value reaches the handler.",
			len(names), some(names, 9), affected(b.cases)), reproducer(b.cases, wrong))
	}
	if len(b.issues) > 0 {
		s.finding("schema_issues", result.Warning, fmt.Sprintf(
			"%s in the declared schemas: %s.", plural(int64(len(b.issues)), "problem", "problems"), some(b.issues, 5)), strings.Join(b.issues, "\n"))
	}
	if names := b.skipped(); len(names) > 0 {
		s.finding("tools_skipped", result.Info, fmt.Sprintf(
			"%d of %d tools got no malformed call because nothing shows that they only read: %s.", len(names), len(b.tools), some(names, 5)), "")
	}
	if b.total() > 0 && b.wrong+b.fates[crashed]+b.fates[unanswered] == 0 {
		s.finding("nothing_notable", result.Info, fmt.Sprintf(
			"%d of %d malformed calls were rejected; the other %d were accepted and broke no rule this probe could score.", b.fates[rejected], b.total(), b.fates[accepted]), "")
	}
}

// affected names the fields of the accepted violations.
func affected(cases []Case) string {
	var fields []string
	for _, c := range cases {
		if f := c.field(); c.WronglyAccepted && f != "" {
			fields = append(fields, f)
		}
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	switch len(fields) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" All of them are on %q.", fields[0])
	}
	return " Fields: " + some(fields, 8) + "."
}
