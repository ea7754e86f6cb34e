package report

import (
	"io"
	"strings"
)

// loadReport is REPORT.md of a load test, behind its head: the load itself in one
// compact section, then what every report has.
func (p *page) loadReport(w io.Writer, r *reading) error {
	v := r.loading()
	p.heading(2, "Verdict")
	p.line("> **", esc(v.loadVerdictText()), "**")
	p.actual(r)
	p.loadSection(v)
	for _, phase := range append([]reportPhase{{"load", "Measurements", "Every number of the load, of its last level."}}, reportPhases...) {
		if r.hasPhase(phase.name) {
			p.phase(r, phase)
		}
	}
	p.caveats(r)
	p.fleetSection(r)
	p.howRun(r)
	_, err := io.WriteString(w, p.String())
	return err
}

func (r *reading) hasPhase(name string) bool {
	for _, p := range r.Probes {
		if p.Phase == name {
			return true
		}
	}
	return false
}

func (p *page) loadSection(v *loading) {
	p.heading(2, "Load")
	p.loadFacts(v)
	p.loadRows(v.levelTitle("Throughput"), v.throughput())
	p.loadLatency(v)
	p.loadOutcomes(v)
	p.loadCourse(v)
	p.loadLevels(v)
	p.loadSteps(v)
	p.loadRows("Streams", v.streams())
	p.loadRows("Generator", v.generator())
}

func (p *page) loadFacts(v *loading) {
	item := func(label, text string) {
		if text != "" {
			p.line("- **", label, ":** ", esc(text))
		}
	}
	item("Model", v.modelText())
	item("Note", sentenceCase(v.hiddenStall()))
	item("Profile", v.profileText())
	item("Measured", v.measuredText())
	item("SLO", v.load.SLO)
}

func (p *page) loadRows(title string, rows []loadRow) {
	if len(rows) == 0 {
		return
	}
	p.heading(3, esc(title))
	for _, r := range rows {
		if r.name == "" {
			p.line("- **", esc(r.text), "**")
			continue
		}
		p.line("- ", esc(r.name), ": ", esc(r.text))
	}
}

func (p *page) loadLatency(v *loading) {
	p.heading(3, esc(v.levelTitle("Latency")))
	rows := v.percentiles()
	if rows == nil {
		p.line("None: ", esc(v.noLatency()), ".")
		return
	}
	head := []string{"percentile", "latency", "n", "95% interval"}
	if v.open() {
		head[1] = "from due"
	}
	service := hasService(rows)
	if service {
		head = append(head, "from sent")
	}
	var body [][]string
	for _, r := range rows {
		row := []string{r.name, shown(r.response, "s"), denominator(r.response.N), interval(r.response.Interval, "s")}
		if service {
			row = append(row, shown(r.service, "s"))
		}
		body = append(body, row)
	}
	p.table(head, body)
}

func (p *page) loadOutcomes(v *loading) {
	rows := outcomesOf(v.last.Outcomes)
	if len(rows) == 0 {
		return
	}
	p.heading(3, esc(v.levelTitle("Outcomes")))
	var body [][]string
	for _, o := range rows {
		body = append(body, []string{escCell(o.name), count(float64(o.n)), o.share() + " " + o.denominator()})
	}
	p.table([]string{"outcome", "calls", "share"}, cutRows(body))
}

// loadCourse is the course as blocks, in a fence that keeps their widths.
func (p *page) loadCourse(v *loading) {
	rows := v.courses(sparkColumns)
	if rows == nil {
		return
	}
	var b strings.Builder
	for _, c := range rows {
		b.WriteString(pad(c.name, 11) + spark(c.values) + "  max " + c.most + "\n")
	}
	if marks := v.cutOff(sparkColumns); marks != "" {
		b.WriteString(pad("cut off", 11) + marks + "\n")
	}
	p.heading(3, "Over time")
	p.fence("text", b.String())
}

func (p *page) loadLevels(v *loading) {
	if v.load.Knee == nil && len(v.load.Levels) < 2 {
		return
	}
	p.heading(3, "Levels")
	var body [][]string
	for _, lv := range v.load.Levels {
		body = append(body, escRow(v.levelCells(lv)))
	}
	p.table(levelHead, cutRows(body))
	if text := v.kneeText(); text != "" {
		p.line()
		p.line("Knee: ", esc(text))
	}
}

func (p *page) loadSteps(v *loading) {
	if len(v.load.Steps) == 0 {
		return
	}
	p.heading(3, "Steps of the workload")
	var body [][]string
	for _, s := range v.load.Steps {
		body = append(body, escRow(stepCells(s)))
	}
	p.table(stepHead, cutRows(body))
}

func escRow(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = escCell(c)
	}
	return out
}
