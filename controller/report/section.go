package report

import (
	"slices"
	"strings"

	"ordeal/controller/result"
)

// section is one thing to fix.
type section struct {
	topic    topic
	finding  string
	observed []string         // Markdown
	findings []result.Finding // what the probes said about it
}

// sections collects what is wrong: the topics that show, in their order, then
// findings no topic speaks for. Critical ones of these come right behind
// unvalidated input, the others last. What is only for information stays out.
func (r *reading) sections() []section {
	open := r.actionable()
	var out []section
	for _, t := range topics {
		own := slices.DeleteFunc(slices.Clone(open), func(f result.Finding) bool { return !t.speaksFor(f) })
		open = slices.DeleteFunc(open, t.speaksFor)
		finding, observed := t.seen(r)
		if finding == "" && len(own) > 0 {
			finding = findingLine(own[0])
			own[0].Message = ""
		}
		if finding != "" {
			out = append(out, section{t, finding, observed, own})
		}
	}
	return withUnclaimed(out, open)
}

// notTheTarget ends the id of a finding about our own generator.
const notTheTarget = ".rate_not_sustained"

// actionable lists the findings somebody can act on at the target, worst first.
func (r *reading) actionable() []result.Finding {
	var out []result.Finding
	for _, p := range r.Probes {
		for _, f := range p.Findings {
			if f.Severity != result.Info && !strings.HasSuffix(f.ID, notTheTarget) {
				out = append(out, f)
			}
		}
	}
	return bySeverity(out)
}

// withUnclaimed adds the findings no topic speaks for.
func withUnclaimed(out []section, open []result.Finding) []section {
	var critical, others []section
	for _, f := range open {
		s := section{topic: topic{title: untitled(f.ID)}, finding: findingLine(f), findings: []result.Finding{{Evidence: f.Evidence}}}
		if f.Severity == result.Critical {
			critical = append(critical, s)
		} else {
			others = append(others, s)
		}
	}
	at := slices.IndexFunc(out, func(s section) bool { return rankOf(s.topic) > rankOf(topic{key: "unvalidated"}) })
	if at < 0 {
		at = len(out)
	}
	return append(slices.Insert(out, at, critical...), others...)
}

func findingLine(f result.Finding) string {
	return esc(strings.TrimSuffix(fit(clean(f.Message), 240), "."))
}

// untitled makes a title of a finding's id.
func untitled(id string) string {
	probe, name, found := strings.Cut(id, ".")
	if !found {
		probe, name = "", id
	}
	title := strings.ReplaceAll(clean(name), "_", " ")
	if probe != "" {
		title = probeName(probe) + ": " + title
	}
	return esc(fit(title, 80))
}

func rankOf(t topic) int {
	return slices.IndexFunc(topics, func(x topic) bool { return x.key == t.key })
}
