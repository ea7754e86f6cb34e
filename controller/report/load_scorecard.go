package report

import (
	"cmp"
	"io"
	"strings"

	"ordeal/controller/result"
)

// MaxLoadWidth is the widest the scorecard of a load test gets, in columns.
const MaxLoadWidth = 100

// loadColumn is where the values of its header begin.
const loadColumn = 10

// sparkLabel is the room for the largest value beside a course.
const sparkLabel = 20

// maxSteps and maxLevels bound the tables of a load in the terminal.
const (
	maxSteps  = 24
	maxLevels = 44 // a search has at most 40
)

// LoadScorecard writes what a person reads in the terminal after a load test. Its
// first line is the verdict. Width is at most MaxLoadWidth columns, which 0 stands
// for. The error is w's.
func LoadScorecard(w io.Writer, doc *result.Document, opt ScorecardOptions) error {
	r := read(doc)
	s := &sheet{width: min(max(cmp.Or(opt.Width, MaxLoadWidth), MinWidth), MaxLoadWidth), color: opt.Color}
	s.load(r.loading(), opt)
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *sheet) load(v *loading, opt ScorecardOptions) {
	s.loadVerdict(v)
	s.loadHeader(v)
	s.rowsUnder(v.levelTitle("Throughput"), v.throughput())
	s.latencies(v)
	s.outcomes(v)
	s.course(v)
	if len(v.Checks) > 0 {
		s.line(strong, "Objectives")
		s.checks(v.reading)
	}
	s.levels(v)
	s.steps(v)
	s.rowsUnder("Streams", v.streams())
	s.rowsUnder("Generator", v.generator())
	s.fleet(v.reading)
	s.caveats(v.reading, opt.Verbose)
	s.findings(v.reading, opt.Verbose)
	s.hint(v.reading, opt.Hint)
}

func (s *sheet) loadVerdict(v *loading) {
	text := v.loadVerdictText()
	t := map[string]tone{"PASS": "1;32", "FAIL": bad, "NO VERDICT": "1;33"}[loadVerdictWord(v.Verdict)]
	for _, line := range wrap(text, s.width) {
		s.line(t, line)
	}
	s.blank()
}

func (s *sheet) loadHeader(v *loading) {
	s.title(cmp.Or(v.Command, "load"))
	field := func(label, text string) {
		if text != "" {
			s.para(strong, label, loadColumn, text)
		}
	}
	field("Target:", v.targetLine())
	if clean(v.Target.URI) != clean(v.Target.Name) {
		field("URI:", clean(v.Target.URI))
	}
	field("Tool:", toolLine(v.Target))
	field("Model:", v.modelText())
	if text := v.hiddenStall(); text != "" {
		s.para(caveat, "", loadColumn, sentenceCase(sentence(text)))
	}
	field("Load:", v.profileText())
	field("Measured:", v.measuredText())
	field("SLO:", clean(v.load.SLO))
	if v.Target.Virtual {
		field("Clock:", "virtual clock: latency is reported, not slept")
	}
	if v.Run.Partial {
		s.para(caveat, "Partial:", loadColumn, sentence(cmp.Or(clean(v.Run.PartialReason), "the run did not finish")))
	}
	s.blank()
}

// levelTitle says which of several levels a block is about.
func (v *loading) levelTitle(title string) string {
	if len(v.load.Levels) > 1 {
		return title + " of the last level, " + v.asked(v.last.Asked)
	}
	return title
}

// rowsUnder writes rows with dotted leads under a heading; nothing without rows.
func (s *sheet) rowsUnder(title string, rows []loadRow) {
	if len(rows) == 0 {
		return
	}
	s.line(strong, title)
	for _, r := range rows {
		lead := ""
		if r.name != "" {
			head := fit(r.name, nameColumn-5)
			lead = "  " + head + " " + strings.Repeat(".", nameColumn-4-columns(head))
		}
		s.paraIn(r.tone, lead, nameColumn, r.text)
	}
	s.blank()
}

// paraIn is para with the tone on the text.
func (s *sheet) paraIn(t tone, lead string, indent int, text string) {
	for i, line := range wrap(text, s.width-indent) {
		if i > 0 || lead == "" {
			lead = strings.Repeat(" ", indent)
		}
		s.WriteString(pad(lead, indent) + s.paint(t, line) + "\n")
	}
}

func (s *sheet) latencies(v *loading) {
	s.line(strong, v.levelTitle("Latency"))
	rows := v.percentiles()
	if rows == nil {
		s.line(quiet, "  none: "+v.noLatency())
		s.blank()
		return
	}
	head := []string{"", "latency", "n", "95% interval"}
	if v.open() {
		head[1] = "from due"
	}
	service := hasService(rows)
	if service {
		head = append(head, "from sent")
	}
	var body [][]cell
	for _, r := range rows {
		row := []cell{{r.name, ""}, {shown(r.response, "s"), strong}, {denominator(r.response.N), quiet}, {interval(r.response.Interval, "s"), quiet}}
		if service {
			row = append(row, cell{shown(r.service, "s"), ""})
		}
		body = append(body, row)
	}
	s.grid(head, body)
	s.blank()
}

// noLatency says why there is no percentile.
func (v *loading) noLatency() string {
	switch {
	case v.last.Generator.Saturated:
		return "withheld, the agents were the limit"
	case v.last.Sent == 0 && len(v.last.Outcomes) == 0:
		return "no call was sent"
	case v.last.Outcomes["ok"] == 0:
		return "no call was answered well"
	}
	return "not measured"
}

func (s *sheet) outcomes(v *loading) {
	rows := outcomesOf(v.last.Outcomes)
	if len(rows) == 0 {
		return
	}
	s.line(strong, v.levelTitle("Outcomes"))
	var body [][]cell
	for _, o := range rows[:min(len(rows), maxSteps)] {
		t := tone("")
		switch {
		case o.of <= 0:
			t = quiet
		case o.name != "ok" && o.n > 0:
			t = caveat
		}
		body = append(body, []cell{{o.name, t}, {count(float64(o.n)), strong}, {o.share(), ""}, {o.denominator(), quiet}})
	}
	s.grid([]string{"", "calls", "share", ""}, body)
	if m := v.last.ErrorRate; m.N > 0 {
		s.line("", "  error rate "+shown(m, "rate")+", 95% interval "+interval(m.Interval, "rate")+", n "+denominator(m.N))
	}
	s.blank()
}

func (s *sheet) course(v *loading) {
	room := min(sparkColumns, s.width-nameColumn-sparkLabel)
	rows := v.courses(room)
	if rows == nil {
		return
	}
	groups := grouped(len(v.load.Periods), room)
	each := float64(groups[0].to-groups[0].from) * v.load.PeriodS
	s.line(strong, "Over time, a column is "+lasting(each))
	for _, c := range rows {
		lead := "  " + c.name + " " + strings.Repeat(".", nameColumn-4-columns(c.name)) + " "
		s.WriteString(lead + s.paint(note, spark(c.values)) + "  " + s.paint(quiet, fit("max "+c.most, s.width-nameColumn-len(c.values)-2)) + "\n")
	}
	if marks := v.cutOff(room); marks != "" {
		lead := "  cut off " + strings.Repeat(".", nameColumn-4-len("cut off")) + " "
		s.WriteString(lead + s.paint(quiet, marks) + "\n")
	}
	s.blank()
}

func (s *sheet) levels(v *loading) {
	if v.load.Knee == nil && len(v.load.Levels) < 2 {
		return
	}
	title := "Levels"
	if v.load.Knee != nil {
		title = "Search for the knee"
	}
	s.line(strong, title)
	tones := map[string]tone{"yes": good, "no": bad, "not judged": caveat}
	var body [][]string
	for _, lv := range v.load.Levels[:min(len(v.load.Levels), maxLevels)] {
		body = append(body, v.levelCells(lv))
	}
	s.gridOfText(levelHead, body, func(row, column int) tone {
		switch column {
		case 3, 7:
			return quiet
		case 6:
			return tones[body[row][column]]
		}
		return ""
	})
	if more := len(v.load.Levels) - maxLevels; more > 0 {
		s.line("", "  "+times(int64(more), "more level"))
	}
	if text := v.kneeText(); text != "" {
		s.paraIn(strong, "  knee "+strings.Repeat(".", nameColumn-8), nameColumn, text)
	}
	s.blank()
}

func (s *sheet) steps(v *loading) {
	if len(v.load.Steps) == 0 {
		return
	}
	s.line(strong, "Steps of the workload")
	var body [][]string
	for _, step := range v.load.Steps[:min(len(v.load.Steps), maxSteps)] {
		body = append(body, stepCells(step))
	}
	s.gridOfText(stepHead, body, func(_, column int) tone {
		if column == 1 || column == 4 || column == 7 {
			return quiet
		}
		return ""
	})
	if more := len(v.load.Steps) - maxSteps; more > 0 {
		s.line("", "  "+times(int64(more), "more step"))
	}
	s.blank()
}

// gridOfText is grid with a last column that is cut rather than left out.
func (s *sheet) gridOfText(head []string, body [][]string, toneOf func(row, column int) tone) {
	last := len(head) - 1
	used := 0
	for k := range last {
		w := columns(head[k])
		for _, row := range body {
			w = max(w, columns(row[k]))
		}
		used += w + 2
	}
	room := s.width - 2 - used
	var cells [][]cell
	for i, row := range body {
		out := make([]cell, len(row))
		for k, text := range row {
			if k == last && room >= columns(head[last]) {
				text = fit(text, room)
			}
			out[k] = cell{text, toneOf(i, k)}
		}
		cells = append(cells, out)
	}
	s.grid(head, cells)
}
