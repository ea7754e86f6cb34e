package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// reading answers questions about a document that several formats ask.
type reading struct {
	*result.Document
	spec map[string]json.RawMessage // the settings by their names in the spec
}

// read prepares a document. Values of metrics that are not plain become what
// they are in JSON, so that a document in memory and one from a file render
// alike; the caller's document is left as it is.
func read(doc *result.Document) *reading {
	own := *doc
	own.Probes = slices.Clone(doc.Probes)
	for i, p := range own.Probes {
		own.Probes[i].Metrics = make(map[string]metrics.Measured, len(p.Metrics))
		for name, m := range p.Metrics {
			m.Value = asDecoded(m.Value)
			own.Probes[i].Metrics[name] = m
		}
	}
	own.Target.ToolArgs = compact(doc.Target.ToolArgs)
	return &reading{Document: &own, spec: decode[map[string]json.RawMessage](compact(doc.Run.Spec))}
}

// compact removes the white space an indented file brings; what is no JSON
// stays as it is.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// asDecoded is the value as encoding/json would hand it back; nil when it has
// no JSON form.
func asDecoded(v any) any {
	switch x := v.(type) {
	case nil, string, bool, float64:
		return x
	case int64:
		return float64(x)
	case int:
		return float64(x)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return decode[any](raw)
}

// decode reads JSON whose absence or foreign shape is no error: the zero value
// then stands for "not recorded".
func decode[T any](raw json.RawMessage) T {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		var none T
		return none
	}
	return v
}

// probe returns the probe of that name, nil when the run had none.
func (r *reading) probe(name string) *result.Probe {
	for i := range r.Probes {
		if r.Probes[i].Name == name {
			return &r.Probes[i]
		}
	}
	return nil
}

// metric returns a metric by its probe and name; the zero Measured when absent.
func (r *reading) metric(probe, name string) metrics.Measured {
	if p := r.probe(probe); p != nil {
		return p.Metrics[name]
	}
	return metrics.Measured{}
}

// number returns the value of a metric and whether it has one.
func (r *reading) number(probe, name string) (float64, bool) { return r.metric(probe, name).Number() }

// text returns a metric as it is shown, with "-" for a missing one.
func (r *reading) text(probe, name string) string {
	m := r.metric(probe, name)
	if v, ok := m.Number(); ok {
		return quantity(v, unitOf(name, m.Unit))
	}
	return absent
}

// counts returns a metric that maps names to numbers, largest first.
func (r *reading) counts(probe, name string) []tallied { return tallies(r.metric(probe, name).Value) }

// check returns the check of that key, nil when the policy has none.
func (r *reading) check(key string) *result.Check {
	for i := range r.Checks {
		if r.Checks[i].Key == key {
			return &r.Checks[i]
		}
	}
	return nil
}

// missed reports a check whose observed value misses the limit, proven or not.
func (r *reading) missed(key string) *result.Check {
	c := r.check(key)
	if c != nil && (c.Status == result.Fail || c.Status == result.Undecided) {
		return c
	}
	return nil
}

// touches reports whether a caveat qualifies a metric written probe.metric.
func touches(c metrics.Caveat, metric string) bool {
	probe, name, _ := strings.Cut(metric, ".")
	if c.Scope == metrics.ScopeProbe {
		return c.Probe == probe
	}
	return slices.Contains(c.Metrics, metric) || c.Probe == probe && slices.Contains(c.Metrics, name)
}

// caveatsOf lists the caveats of metrics written probe.metric, each once.
func (r *reading) caveatsOf(names ...string) []metrics.Caveat {
	var out []metrics.Caveat
	for _, c := range r.Caveats {
		if slices.ContainsFunc(names, func(name string) bool { return touches(c, name) }) {
			out = append(out, c)
		}
	}
	return out
}

// qualified reports whether a check has a caveat.
func (r *reading) qualified(c result.Check) bool { return len(r.caveatsOf(c.Metric)) > 0 }

// splitCaveats separates the caveats that touch a scored row from the others.
func (r *reading) splitCaveats() (scored, others []metrics.Caveat) {
	for _, c := range r.Caveats {
		if slices.ContainsFunc(r.Checks, func(k result.Check) bool {
			return k.Status != result.NA && touches(c, k.Metric)
		}) {
			scored = append(scored, c)
		} else {
			others = append(others, c)
		}
	}
	return scored, others
}

// caveatSubject names what a caveat is about: the rows it touches, else the
// metrics, else the probe.
func (r *reading) caveatSubject(c metrics.Caveat) string {
	var names []string
	for _, k := range checksInOrder(r.Checks) {
		if touches(c, k.Metric) {
			names = append(names, checkName(k.Key))
		}
	}
	if len(names) > 0 {
		return strings.Join(names, ", ")
	}
	if c.Scope != metrics.ScopeProbe {
		for _, m := range c.Metrics {
			names = append(names, metricName(strings.TrimPrefix(m, c.Probe+".")))
		}
	}
	if len(names) == 0 {
		return strings.ToLower(probeName(c.Probe))
	}
	return strings.ToLower(probeName(c.Probe)) + ": " + strings.Join(names, ", ")
}

// caveatText is reason and remedy as one sentence pair.
func caveatText(c metrics.Caveat) string {
	text := clean(c.Reason)
	if c.Remedy != "" {
		text = sentence(text) + " Remedy: " + clean(c.Remedy)
	}
	return sentence(text)
}

// sentence ends a text with a full stop unless it ends on punctuation.
func sentence(s string) string {
	if s == "" || strings.ContainsRune(".!?)", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

// plannedProbes is how many probes the settings ask for: the selected ones in
// the selected phases. Without settings it is the number that ran.
func (r *reading) plannedProbes() int {
	phases := decode[[]string](r.spec["phases"])
	n := 0
	for _, p := range decode[[]string](r.spec["probes"]) {
		if len(phases) == 0 || slices.Contains(phases, phaseOf(p)) {
			n++
		}
	}
	return max(n, len(r.Probes))
}

func phaseOf(probe string) string {
	switch probe {
	case "fault":
		return "chaos"
	case "behavior":
		return "behavior"
	}
	return "baseline"
}

// completeProbes is how many probes ended without an error.
func (r *reading) completeProbes() int {
	n := 0
	for _, p := range r.Probes {
		if p.Error == "" {
			n++
		}
	}
	return n
}

// setting returns a number of the spec and whether it is there.
func (r *reading) setting(name string) (float64, bool) {
	v := decode[*float64](r.spec[name])
	if v == nil {
		return 0, false
	}
	return *v, true
}

// firstNumber is the first of several values that is there.
func firstNumber(values ...func() (float64, bool)) (float64, bool) {
	for _, get := range values {
		if v, ok := get(); ok {
			return v, true
		}
	}
	return 0, false
}
