package report

import (
	"cmp"

	"ordeal/controller/result"
)

// fleetSection tells in REPORT.md who measured, where that was more than one agent.
func (p *page) fleetSection(r *reading) {
	if !r.fleetMatters() {
		return
	}
	p.heading(2, "Fleet")
	p.fleetList(r)
	p.groupTable(r.Fleet.Breakdown, maxTableRows)
	p.agentTable(r.Fleet.Agents)
	p.gangTable(r.Fleet.Gangs)
}

func (p *page) fleetList(r *reading) {
	for _, l := range r.fleetLines() {
		if l.lead == "" {
			p.line("- ", esc(l.text))
			continue
		}
		p.line("- **", esc(l.lead), ":** ", esc(l.text))
	}
}

func (p *page) groupTable(b *result.LabelBreakdown, most int) {
	if b == nil || len(b.Groups) == 0 {
		return
	}
	p.line()
	p.line("By ", code(name(b.Label)), ", ", esc(comparedOver(b)), ".")
	p.line()
	var body [][]string
	for _, g := range b.Groups[:min(len(b.Groups), most)] {
		row := groupRow(g)
		row[0] = codeCell(row[0])
		for i := 1; i < len(row); i++ {
			row[i] = escCell(row[i])
		}
		body = append(body, append(row, escCell(listed(countsOf(g.Outcomes), 4))))
	}
	p.table(append(append([]string{escCell(name(b.Label))}, groupHead...), "outcomes, all stages"), body)
	if more := len(b.Groups) - most; more > 0 {
		p.line()
		p.line(times(int64(more), "more value"), ".")
	}
}

func countsOf(m map[string]int64) []tallied {
	values := map[string]any{}
	for k, n := range m {
		values[k] = float64(n)
	}
	return tallies(values)
}

func (p *page) agentTable(agents []result.FleetAgent) {
	var body [][]string
	for _, a := range agents {
		clock := absent
		if a.ClockOffsetUS != nil && a.ClockBoundUS != nil {
			clock = seconds(*a.ClockOffsetUS/1e6) + " ± " + seconds(*a.ClockBoundUS/1e6)
		}
		body = append(body, []string{codeCell(name(a.ID)), escCell(a.Version), escCell(labelsText(a.Labels)), count(float64(a.Units)),
			count(float64(a.Operations)), escCell(clock), map[bool]string{true: "**lost**"}[a.Lost]})
	}
	if len(body) > 0 {
		p.line()
		p.table([]string{"agent", "version", "labels", "units", "operations", "clock offset", ""}, cutRows(body))
	}
}

func (p *page) gangTable(gangs []result.Gang) {
	var body [][]string
	for _, g := range gangs {
		skew := absent
		if g.SkewUS != nil && g.SkewBoundUS != nil {
			skew = seconds(*g.SkewUS/1e6) + " ± " + seconds(*g.SkewBoundUS/1e6)
		}
		body = append(body, []string{escCell(stageLabel(g.Stage)), count(float64(g.Agents)), escCell(achieved(g)), count(float64(g.Attempts)),
			cmp.Or(escCell(names(g.Lost)), absent), escCell(skew), map[bool]string{true: "**degraded**"}[g.Degraded]})
	}
	if len(body) > 0 {
		p.line()
		p.table([]string{"carried out together", "agents", "took part", "attempts", "lost", "start skew", ""}, cutRows(body))
	}
}

// whoMeasured is the fleet in the fix guide: how far its numbers reach, and what
// of them is not about the server.
func (p *page) whoMeasured(r *reading) {
	if !r.fleetMatters() {
		return
	}
	p.heading(2, "Who measured")
	p.fleetList(r)
	p.groupTable(r.Fleet.Breakdown, maxGroups)
	if len(r.Fleet.Outliers) > 0 {
		p.line()
		p.line("An outlier saw the same server as the others. Look at that agent and its way to the server before changing the server for it.")
	}
}
