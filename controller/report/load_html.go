package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"strings"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// loadPage is the page of a load test: every text in it is escaped for its place by
// html/template, so nothing that a server says acts as markup.
//
//go:embed load.html.tmpl
var loadPage string

var loadTemplate = template.Must(template.New("load").Parse(loadPage))

// htmlPage is what the template shows. All of it is plain text.
type htmlPage struct {
	Title, Verdict, Word, Why string // Word is PASS, FAIL or NO VERDICT
	Facts                     []htmlFact
	Tiles                     []htmlTile
	Figures                   []figure
	Lists                     []htmlList
	Tables                    []htmlTable
	Footer                    string
}

type htmlFact struct{ Name, Text string }

// htmlTile is a number with what it is of; Tone is bad, caveat or empty.
type htmlTile struct{ Name, Value, Of, Tone string }

type htmlList struct {
	Title string
	Facts []htmlFact
}

// htmlTable has a number in each column but the first and those that are Wordy.
type htmlTable struct {
	Title, About string
	Head         []string
	Rows         [][]string
	Wordy        map[int]bool
}

// LoadHTML writes the page of a load test: one file that needs no network, no font
// and no script, in light or dark as its reader prefers. The error is w's or
// ErrNoLoad.
func LoadHTML(w io.Writer, doc *result.Document) error {
	if doc.Load == nil {
		return ErrNoLoad
	}
	var b bytes.Buffer
	if err := loadTemplate.Execute(&b, read(doc).loading().page()); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (v *loading) page() *htmlPage {
	text, word := v.loadVerdictText(), loadVerdictWord(v.Verdict)
	p := &htmlPage{Title: "Load test of " + cmp.Or(clean(v.Target.Name), clean(v.Target.URI), "a target"), Verdict: text, Word: word,
		Why: text[min(len(word)+len(": "), len(text)):], Facts: v.htmlFacts(), Tiles: v.tiles(), Figures: v.canvas().figures()}
	if rest := text[len(word):]; len(rest) > 1 && rest[0] == ' ' { // PASS (unproven: …)
		p.Why = rest[1:]
	}
	for _, l := range []htmlList{{"Throughput", htmlRows(v.throughput())}, {"Streams", htmlRows(v.streams())}, {"Generator", htmlRows(v.generator())}, {"Fleet", v.htmlFleet()},
		{"Caveats and findings", v.htmlNotes()}} {
		if l.Title == "Throughput" {
			l.Title = v.levelTitle(l.Title)
		}
		if len(l.Facts) > 0 {
			p.Lists = append(p.Lists, l)
		}
	}
	p.Tables = v.htmlTables()
	p.Footer = "ordeal " + clean(v.OrdealVersion) + ", run " + cmp.Or(clean(v.Run.ID), absent)
	if at := stamp(v.Run.StartedAt); at != "" {
		p.Footer += ", " + at
	}
	return p
}

func (v *loading) htmlFacts() []htmlFact {
	facts := []htmlFact{{"Target", v.targetLine()}, {"URI", clean(v.Target.URI)}, {"Tool", toolLine(v.Target)}, {"Model", v.modelText()}, {"Note", sentenceCase(v.hiddenStall())},
		{"Load", v.profileText()}, {"Measured", v.measuredText()}, {"SLO", clean(v.load.SLO)}, {"Knee", v.kneeText()}}
	if v.Run.Partial {
		facts = append(facts, htmlFact{"Partial", cmp.Or(clean(v.Run.PartialReason), "the run did not finish")})
	}
	var out []htmlFact
	for _, f := range facts {
		if f.Text != "" && !(f.Name == "URI" && f.Text == clean(v.Target.Name)) {
			out = append(out, f)
		}
	}
	return out
}

// tiles are the numbers a reader looks for first.
func (v *loading) tiles() []htmlTile {
	lv := v.last
	achieved, of := absent, "asked "+v.asked(lv.Asked)
	if x, ok := lv.Achieved.Number(); ok {
		achieved, of = callRate(x)+" /s", times(lv.Achieved.N, "call")+" answered well; "+of
	}
	tiles := []htmlTile{{"Achieved", achieved, of, map[bool]string{true: "bad"}[v.notSustained() != ""]}}
	for _, p := range []struct {
		name string
		m    metrics.Measured
	}{{"p50", lv.P50}, {"p95", lv.P95}, {"p99", lv.P99}} {
		text := "n " + denominator(p.m.N)
		if p.m.Interval != nil {
			text = interval(p.m.Interval, "s") + ", " + text
		}
		if _, ok := p.m.Number(); !ok {
			text = v.noLatency()
		}
		tiles = append(tiles, htmlTile{p.name, shown(p.m, "s"), text, ""})
	}
	failed := int64(0)
	for _, o := range outcomesOf(lv.Outcomes) {
		if o.name != "ok" && o.of > 0 {
			failed += o.n
		}
	}
	tiles = append(tiles, htmlTile{"Errors", shown(lv.ErrorRate, "rate"), count(float64(failed)) + " of " + times(lv.ErrorRate.N, "call"), map[bool]string{true: "caveat"}[failed > 0]})
	if v.open() {
		share := absent
		if lv.Scheduled > 0 {
			share = rate(float64(lv.Dropped) / float64(lv.Scheduled))
		}
		tiles = append(tiles, htmlTile{"Dropped", share, count(float64(lv.Dropped)) + " of " + times(lv.Scheduled, "arrival"), map[bool]string{true: "caveat"}[lv.Dropped > 0]})
	}
	return tiles
}

func htmlRows(rows []loadRow) []htmlFact {
	var out []htmlFact
	for _, r := range rows {
		out = append(out, htmlFact{r.name, r.text})
	}
	return out
}

func (v *loading) htmlFleet() []htmlFact {
	if !v.fleetMatters() {
		return nil
	}
	var out []htmlFact
	for _, l := range v.fleetLines() {
		out = append(out, htmlFact{l.lead, l.text})
	}
	return out
}

// htmlNotes are caveats and findings.
func (v *loading) htmlNotes() []htmlFact {
	var out []htmlFact
	for _, c := range v.Caveats {
		out = append(out, htmlFact{v.caveatSubject(c), caveatText(c)})
	}
	for _, p := range v.Probes {
		for _, f := range bySeverity(p.Findings) {
			out = append(out, htmlFact{clean(string(f.Severity)), sentence(clean(f.Message))})
		}
	}
	return out[:min(len(out), maxTableRows)]
}

func (v *loading) htmlTables() []htmlTable {
	var out []htmlTable
	add := func(t htmlTable) {
		if len(t.Rows) > 0 {
			t.Rows = t.Rows[:min(len(t.Rows), maxTableRows)]
			out = append(out, t)
		}
	}
	add(v.percentileTable())
	add(v.outcomeTable())
	add(v.checkTable())
	if len(v.load.Levels) > 1 {
		t := htmlTable{Title: "Levels", Head: levelHead, Wordy: map[int]bool{6: true, 7: true}}
		for _, lv := range v.load.Levels {
			t.Rows = append(t.Rows, v.levelCells(lv))
		}
		add(t)
	}
	steps := htmlTable{Title: "Steps of the workload", Head: stepHead}
	for _, s := range v.load.Steps {
		steps.Rows = append(steps.Rows, stepCells(s))
	}
	add(steps)
	if v.fleetMatters() && v.Fleet.Breakdown != nil {
		b := v.Fleet.Breakdown
		t := htmlTable{Title: "By " + name(b.Label), About: comparedOver(b), Head: append([]string{name(b.Label)}, groupHead...)}
		for _, g := range b.Groups {
			t.Rows = append(t.Rows, groupRow(g))
		}
		add(t)
	}
	return out
}

func (v *loading) percentileTable() htmlTable {
	rows := v.percentiles()
	t := htmlTable{Title: v.levelTitle("Latency"), Head: []string{"percentile", "latency", "n", "95% interval"}}
	if v.open() {
		t.Head[1] = "from due"
	}
	service := hasService(rows)
	if service {
		t.Head = append(t.Head, "from sent")
	}
	for _, r := range rows {
		row := []string{r.name, shown(r.response, "s"), denominator(r.response.N), interval(r.response.Interval, "s")}
		if service {
			row = append(row, shown(r.service, "s"))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (v *loading) outcomeTable() htmlTable {
	t := htmlTable{Title: v.levelTitle("Outcomes"), Head: []string{"outcome", "calls", "share", ""}, Wordy: map[int]bool{3: true}}
	for _, o := range outcomesOf(v.last.Outcomes) {
		t.Rows = append(t.Rows, []string{fit(o.name, maxID), count(float64(o.n)), o.share(), o.denominator()})
	}
	return t
}

func (v *loading) checkTable() htmlTable {
	t := htmlTable{Title: "Objectives", Head: []string{"objective", "actual", "target", "status", "n", "95% interval"}, Wordy: map[int]bool{3: true}}
	for _, c := range checksInOrder(v.Checks) {
		t.Rows = append(t.Rows, []string{fit(checkName(c.Key), maxID), actualText(c), limitText(c), statusWord(c.Status), denominator(c.N), interval(c.Interval, c.Unit)})
	}
	return t
}

// Half reports a table that leaves room for another beside it on a wide page.
func (t htmlTable) Half() bool { return len(t.Head) <= 6 }

// Numeric reports whether a column holds numbers, which the page sets flush right.
func (t htmlTable) Numeric(column int) bool { return column > 0 && !t.Wordy[column] }

// Box is the drawing's own coordinates, for its viewBox.
func (d *drawing) Box() string { return "0 0 " + strconv.Itoa(d.W) + " " + strconv.Itoa(d.H) }

// sized is a drawing of a figure, for the template.
type sized struct {
	D           *drawing
	Label, Size string
}

// Sized is the figure's drawing for a class of pages, wide or narrow.
func (f figure) Sized(size string) sized {
	if size == "narrow" {
		return sized{f.Narrow, f.Label, size}
	}
	return sized{f.Wide, f.Label, size}
}

// Scale reports a step of the heat map's scale.
func (l legendItem) Scale() bool { return len(l.Class) == 2 && l.Class[0] == 'h' }

// Swatch is the path of a mark in its legend, 26 by 12 pixels.
func (l legendItem) Swatch() string {
	var b pen
	switch {
	case strings.HasPrefix(l.Class, "line"):
		return "M1 6H25"
	case l.Class == "dot no":
		b.cross(13, 6, 4)
	case strings.HasPrefix(l.Class, "dot"):
		b.circle(13, 6, 4)
	default:
		b.box(0, 0, 26, 12)
	}
	return b.String()
}
