package measure

import (
	"slices"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
)

// contract measures what malformed calls met, one stage per tool.
func contract(in *Input, s *sheet) {
	if len(in.Survey.Tools) == 0 && len(in.Summary.OfProbe("contract")) == 0 {
		s.probe.Applicable = false
		s.probe.Summary = "the target offers no tools"
		s.caveat(noTools())
		return
	}
	b := book{controls: map[string]int64{}, perTool: map[string]int64{}}
	stages := in.Summary.OfProbe("contract")
	for _, st := range stages {
		s.level(st)
		if st.Contract != nil {
			b.add(st.Contract)
		}
	}
	b.coverage(in)
	s.coverage(&b)
	if len(stages) > 0 && len(b.results) == 0 {
		reason := "no malformed call was answered by an agent"
		for _, st := range stages {
			if len(st.Failures) > 0 {
				reason = st.Failures[0].Message
			}
		}
		s.notRun(reason, []string{"crash_rate", "accepted_invalid"})
		return
	}
	s.cases(&b)
	s.controls(&b)
	s.violations(&b)
	s.strictness(&b)
	s.output(b.results)
	s.contractCaveats(in, &b)
	s.contractFindings(&b)
	s.contractSummary(&b)
}

// book holds the cases of all tools while they are counted.
type book struct {
	results  []*wire.ContractResult
	cases    []Case
	controls map[string]int64
	perTool  map[string]int64
	leftOut  int64
	most     int // cases of the tool that has most, left out ones included

	fates          map[string]int64
	unattributable int64 // forbidden, and the tool refuses the baseline they carry
	scoreable      int64 // forbidden, attributable and answered
	wrong          int64
	unverified     int64
	byText         int64
	silent         int64 // rejected without saying why
	limited        int64 // refused for quota
	rejecting      []string

	tools, probed, mutating, unknown, issues []string
	realTool                                 string
	realApplied                              bool
	limit                                    int
}

func (b *book) add(r *wire.ContractResult) {
	b.results = append(b.results, r)
	b.leftOut += int64(r.LeftOut)
	b.most = max(b.most, r.Total, len(r.Cases)+r.LeftOut)
	for k, n := range r.Controls {
		b.controls[k] += n
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		if !c.Outcome.Measured() {
			continue
		}
		b.enter(caseOf(r.Tool, c))
		if c.ControlDelivered && !c.ControlOK && !slices.Contains(b.rejecting, r.Tool) {
			b.rejecting = append(b.rejecting, r.Tool)
		}
	}
}

func (b *book) enter(c Case) {
	if b.fates == nil {
		b.fates = map[string]int64{}
	}
	b.cases = append(b.cases, c)
	b.perTool[c.Tool]++
	b.fates[c.Fate]++
	for _, count := range []struct {
		is bool
		n  *int64
	}{
		{c.Forbidden && !c.Attributable && !c.limited, &b.unattributable},
		{c.Forbidden && c.Attributable && c.answered(), &b.scoreable},
		{c.WronglyAccepted, &b.wrong},
		{c.unverified, &b.unverified},
		{c.ByText, &b.byText},
		{c.Fate == rejected && c.Message == "", &b.silent},
		{c.limited, &b.limited},
	} {
		if count.is {
			*count.n++
		}
	}
}

// coverage sorts the survey's tools into probed, left alone for safety, and
// beyond the cap.
func (b *book) coverage(in *Input) {
	b.limit = in.Spec.ContractTools
	for _, r := range b.results {
		b.probed = append(b.probed, r.Tool)
	}
	if in.userArgs() {
		b.realTool = in.Spec.Tool
		b.realApplied = slices.Contains(b.probed, in.Spec.Tool)
	}
	for i := range in.Survey.Tools {
		t := &in.Survey.Tools[i]
		b.tools = append(b.tools, t.Name)
		for _, issue := range t.Issues {
			b.issues = append(b.issues, t.Name+": "+issue)
		}
		if in.Spec.AllowMutating {
			continue
		}
		switch m, _ := plan.Classify(t); m {
		case plan.Mutating:
			b.mutating = append(b.mutating, t.Name)
		case plan.Unknown:
			b.unknown = append(b.unknown, t.Name)
		}
	}
}

func (b *book) total() int64      { return int64(len(b.cases)) }
func (b *book) calls() int64      { return sum(b.controls) }
func (b *book) lost() int64       { return b.controls["undelivered"] }
func (b *book) skipped() []string { return slices.Concat(b.mutating, b.unknown) }

// clean controls: every well-formed call came back, so a malformed one that did
// not is a fact about its input.
func (b *book) clean() bool { return b.total() > 0 && b.calls() > 0 && b.lost() == 0 }

// thin evidence: silence cannot be put down to the input, and it or rejected
// baselines took most cases away.
func (b *book) thin() bool {
	discarded := b.unattributable + b.fates[crashed] + b.fates[unanswered]
	return !b.clean() && b.total() > 0 && 2*discarded > b.total()
}
