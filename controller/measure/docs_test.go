package measure_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/measure"
	"ordeal/controller/policy"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics"

	"github.com/google/go-cmp/cmp"
)

// names is a set with what is said of each: probe.metric → its kinds of value.
type names map[string]map[string]bool

func (n names) add(name string, said ...string) {
	if n[name] == nil {
		n[name] = map[string]bool{}
	}
	for _, s := range said {
		n[name][s] = true
	}
}

// lines joins what is said of a name, for cmp.Diff.
func (n names) lines() map[string]string {
	out := map[string]string{}
	for name, said := range n {
		out[name] = strings.Join(slices.Sorted(maps.Keys(said)), "; ")
	}
	return out
}

// reference is what docs/metrics.md claims, or what the probes emit. Keys are
// probe.name; probe. alone stands for a probe as a whole.
type reference struct {
	units    names // unit or kind of value, ± for an interval
	on       names // ids of the caveats on a metric
	caveats  names // effect: remedy
	findings names // severity
	keys     names // of maps
}

func newReference() reference { return reference{names{}, names{}, names{}, names{}, names{}} }

// kindOf is how the document calls a value that has no unit.
func kindOf(v any) string {
	switch reflect.TypeOf(v).Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	}
	return fmt.Sprintf("%T", v)
}

// numbered is a setting that a remedy gives a number for.
var numbered = regexp.MustCompile(`(--[a-z-]+) \d+`)

var stageOf = regexp.MustCompile(`\.partial\..*`)

func (r *reference) see(probes []result.Probe, caveats []metrics.Caveat) {
	for _, p := range probes {
		for name, m := range p.Metrics {
			r.seeMetric(p.Name+"."+name, m)
		}
		for _, f := range p.Findings {
			r.findings.add(f.ID, string(f.Severity))
		}
	}
	for _, c := range caveats {
		id := stageOf.ReplaceAllString(c.ID, ".partial.STAGE")
		r.caveats.add(id, strings.TrimSpace(string(c.Effect)+" "+numbered.ReplaceAllString(c.Remedy, "$1 N")))
		if len(c.Metrics) == 0 {
			r.on.add(c.Probe+".", strings.TrimPrefix(id, c.Probe+"."))
		}
	}
}

func (r *reference) seeMetric(name string, m metrics.Measured) {
	r.units.add(name)
	if m.Unit != "" {
		r.units.add(name, m.Unit)
	} else if m.Value != nil {
		r.units.add(name, kindOf(m.Value))
	}
	if m.Interval != nil {
		r.units.add(name, "±")
	}
	for _, id := range m.Caveats {
		_, short, _ := strings.Cut(id, ".")
		r.on.add(name, short)
	}
	if v := reflect.ValueOf(m.Value); v.IsValid() && v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String {
		for _, k := range v.MapKeys() {
			r.keys.add(k.String())
		}
	}
}

// rare brings about what neither a condition nor a draw does.
var rare = map[string]func(in *measure.Input){
	"StreamsAndNotes": func(in *measure.Input) {
		answers(in, repeat(400, func(i int) metrics.Exchange {
			x := good(i)
			x.TTFT, x.Gaps, x.ClientTime = 90*time.Millisecond, []time.Duration{time.Millisecond}, time.Millisecond
			x.Notes = []string{"id as text"}
			return x
		})...)
		in.Summary.Stage("latency").Generator.Lag.Record(5)
	},
	"Rejected": func(in *measure.Input) {
		in.Preflight = &wire.Preflight{Outcome: metrics.ToolError, Delivered: true}
		for _, st := range in.Summary.OfProbe("concurrency") {
			st.Tally = tallyOf(failing(50)...)
		}
	},
	"Dear": func(in *measure.Input) { in.Spec.PriceIn = 100 },
	"OnlyQuota": func(in *measure.Input) {
		for _, st := range in.Summary.OfProbe("concurrency") {
			st.Tally = tallyOf(bad(metrics.RateLimited))
		}
	},
	"Unsafe": func(in *measure.Input) {
		in.Spec.AllowMutating = false
		in.Survey.Tools = append(in.Survey.Tools, wire.Tool{Name: "delete", Issues: []string{"no type"}})
		cases(in).Output.Violations = 1
	},
	"UnsafeAndCapped": func(in *measure.Input) {
		only := true
		in.Spec.AllowMutating = false
		in.Survey.Tools = []wire.Tool{{Name: "lookup", ReadOnly: &only}, {Name: "list", ReadOnly: &only}, {Name: "delete"}}
	},
	"NotesWithoutTools": func(in *measure.Input) { in.Survey.Tools, in.Survey.Notes = nil, []string{"noise"} },
	"SlowLoops": func(in *measure.Input) {
		b := behaviorOf(in)
		b.Loops, b.Recovery = 1, metrics.Dist{}
		b.Recovery.Record(9_000_000)
	},
}

// emitted runs every world of these tests, with and without the behavior probe.
var emitted = sync.OnceValue(func() reference {
	r := newReference()
	run := func(in measure.Input) {
		r.see(measure.Probes(in))
		alone := *in.Spec
		alone.Probes = slices.DeleteFunc(slices.Clone(alone.Probes), func(p string) bool { return p == "behavior" })
		in.Spec = &alone
		r.see(measure.Probes(in))
	}
	worlds := slices.Collect(maps.Values(rare))
	for _, c := range conditions {
		worlds = append(worlds, c.bring)
	}
	for _, bring := range worlds {
		for _, own := range []bool{true, false} {
			in := world()
			in.Survey.OwnRetries = own
			bring(in)
			run(*in)
		}
	}
	for _, row := range published {
		run(measure.Input{Spec: row.scan.spec(), Survey: row.scan.survey(), Summary: row.scan.summary()})
	}
	for seed := range uint64(100) {
		run(chance{rand.New(rand.NewPCG(seed, 1))}.input())
	}
	return r
})

// described is docs/metrics.md.
type described struct {
	reference
	text   string
	bold   names // probe.metric
	fields names // heading: members
	wrong  []string
}

var quoted = regexp.MustCompile("`([^`]+)`")

func inQuotes(text string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// describe reads the tables under each heading.
func describe(t *testing.T) *described {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	d := &described{reference: newReference(), text: string(text), bold: names{}, fields: names{}}
	heading := ""
	for line := range strings.Lines(d.text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			heading = title
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if row := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---"); row && (strings.Contains(cells[0], "`") || cells[0] == "(probe)") {
			d.row(heading, cells)
		}
	}
	return d
}

func (d *described) row(heading string, cells []string) {
	switch {
	case heading == "Caveats" && len(cells) == 5:
		d.each(d.caveats, cells, func(said string) []string {
			var out []string
			for _, remedy := range strings.Split(strings.ReplaceAll(cells[4], "`", ""), "; ") {
				out = append(out, strings.TrimSpace(said+" "+remedy))
			}
			return out
		})
	case heading == "Findings" && len(cells) == 4:
		d.each(d.findings, cells, func(said string) []string { return strings.Split(said, ", ") })
	case len(cells) == 3:
		d.fields.add(heading, inQuotes(cells[0])...)
	case len(cells) == 5:
		for _, probe := range strings.Split(heading, ", ") {
			d.metric(probe, cells)
		}
	default:
		d.wrong = append(d.wrong, "unreadable: "+strings.Join(cells, " | "))
	}
}

// each adds the ids in the first cell for each probe in the second.
func (d *described) each(to names, cells []string, said func(string) []string) {
	for _, id := range inQuotes(cells[0]) {
		for _, probe := range strings.Split(cells[1], ", ") {
			if to[probe+"."+id] != nil {
				d.wrong = append(d.wrong, "twice: "+probe+"."+id)
			}
			to.add(probe+"."+id, said(cells[2])...)
		}
	}
}

func (d *described) metric(probe string, cells []string) {
	found := inQuotes(cells[0])
	if len(found) == 0 {
		d.on.add(probe+".", inQuotes(cells[4])...)
	}
	for _, name := range found {
		key := probe + "." + name
		if d.units[key] != nil {
			d.wrong = append(d.wrong, "twice: "+key)
		}
		d.units.add(key, strings.Fields(cells[1])...)
		d.on.add(key, inQuotes(cells[4])...)
		if strings.HasPrefix(cells[0], "**") {
			d.bold.add(key)
		}
	}
}

func TestDocumentedMetrics(t *testing.T) {
	doc, real := describe(t), emitted()
	if diff := cmp.Diff(real.units.lines(), doc.units.lines()); diff != "" {
		t.Errorf("metrics and their units (-emitted +documented):\n%s", diff)
	}
	if len(doc.wrong) > 0 {
		t.Errorf("docs/metrics.md: rows %q", doc.wrong)
	}
	for key, ids := range real.on {
		for id := range ids {
			if !doc.on[key][id] {
				t.Errorf("docs/metrics.md: %s can carry caveat %s and does not say so", key, id)
			}
		}
	}
	for key, ids := range doc.on {
		_, name, _ := strings.Cut(key, ".")
		for id := range ids {
			if !slices.ContainsFunc(spec.AllProbes, func(p string) bool { return real.on[p+"."+name][id] }) {
				t.Errorf("docs/metrics.md: %s never carries caveat %s", key, id)
			}
		}
	}
}

func TestDocumentedCaveatsAndFindings(t *testing.T) {
	doc, real := describe(t), emitted()
	if diff := cmp.Diff(real.caveats.lines(), doc.caveats.lines()); diff != "" {
		t.Errorf("caveats, effects and remedies (-emitted +documented):\n%s", diff)
	}
	if diff := cmp.Diff(real.findings.lines(), doc.findings.lines()); diff != "" {
		t.Errorf("findings and severities (-emitted +documented):\n%s", diff)
	}
	inSource(t, "caveat*.go", `(?:suppress|annotate|inapplicable)\("([a-z0-9_.]+)"`, 50, doc.caveats)
	inSource(t, "*.go", `\.finding\("([a-z0-9_]+)"`, 35, doc.findings)
}

// inSource checks the ids that the package constructs, of which there are at
// least some, against those of the document.
func inSource(t *testing.T, glob, pattern string, least int, doc names) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(src, -1) {
			found++
			id := strings.TrimSuffix(string(m[1]), ".")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(doc)), func(key string) bool {
				_, short, _ := strings.Cut(key, ".")
				return short == id || strings.HasPrefix(short, id+".")
			}) {
				t.Errorf("docs/metrics.md lacks %q of %s", id, file)
			}
		}
	}
	if found < least {
		t.Errorf("%d ids match %s, the search is broken", found, pattern)
	}
}

// TestDocumentedFields compares the members of lists and of the fleet.
func TestDocumentedFields(t *testing.T) {
	members := func(v any) map[string]bool {
		out := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				out[name] = true
			}
		}
		return out
	}
	want := names{"levels": members(measure.Level{}), "cases": members(measure.Case{}), "fleet": members(result.Fleet{}),
		"agents": members(result.FleetAgent{}), "gangs": members(result.Gang{}), "breakdown": members(result.LabelBreakdown{}),
		"groups": members(result.Group{}), "outliers": members(result.Outlier{}), "evidence": members(result.OutlierEvidence{}),
		"withheld": members(result.WithheldAgent{})}
	if diff := cmp.Diff(want, describe(t).fields); diff != "" {
		t.Errorf("fields (-real +documented):\n%s", diff)
	}
}

// TestBoldMetricsAreJudged: a row that probes share is bold when one of them is read.
func TestBoldMetricsAreJudged(t *testing.T) {
	judged, doc := map[string]bool{}, describe(t)
	for _, row := range policy.Default().Rows() {
		_, name, _ := strings.Cut(row.Metric, ".")
		judged[name] = true
		if doc.bold[row.Metric] == nil {
			t.Errorf("docs/metrics.md: %s has a threshold and is not bold", row.Metric)
		}
	}
	for key := range doc.bold {
		if _, name, _ := strings.Cut(key, "."); !judged[name] {
			t.Errorf("docs/metrics.md: %s is bold and has no threshold", key)
		}
	}
}

// TestDocumentedWords: formulas speak of things that exist.
func TestDocumentedWords(t *testing.T) {
	doc := describe(t)
	known := names{"op_id": {}, result.OfArrivals: {}}
	for _, what := range []string{result.SlowerTail, result.FasterTail, result.MoreErrors, result.FewerErrors} {
		known.add(what)
	}
	for _, fields := range doc.fields {
		for field := range fields {
			known.add(field)
		}
	}
	for _, set := range []names{emitted().keys, doc.units, doc.caveats, doc.findings} {
		for key := range set {
			_, short, _ := strings.Cut(key, ".")
			known.add(short)
			known.add(key)
		}
	}
	for _, o := range metrics.Outcomes() {
		known.add(o.String())
	}
	for _, word := range inQuotes(doc.text) {
		if strings.Contains(word, "_") && known[strings.Trim(word, "{}")] == nil {
			t.Errorf("docs/metrics.md speaks of %q, which does not exist", word)
		}
	}
}
