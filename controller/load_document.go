package controller

import (
	"encoding/json"
	"fmt"
	"strings"

	"ordeal/controller/measure"
	"ordeal/controller/result"
	"ordeal/controller/spec"
)

// loadDocument measures a load test and judges it by its SLO.
func (r *run) loadDocument(cut error) *result.Document {
	in := measure.LoadInput{Input: measure.Input{Spec: &r.opt.Spec, Survey: r.survey, Summary: r.merger.Summary(), Prices: r.opt.Prices,
		Preflight: r.preflight}, Levels: r.levels, Knee: r.knee}
	for i := range r.stages {
		in.Stages = append(in.Stages, r.stages[i].Name)
	}
	load, probe, checks, caveats := measure.Load(in)
	doc := &result.Document{
		SchemaVersion: result.SchemaVersion, OrdealVersion: r.opt.Version, Command: r.opt.Command,
		Target: r.target(), Verdict: loadVerdict(r.opt.Spec.Load, load, checks, cut), Breakdown: []result.Dimension{}, Checks: checks,
		Probes: []result.Probe{probe}, Caveats: caveats, Histograms: r.histograms(), Load: load,
	}
	doc.Run = r.header(cut)
	doc.Fleet = measure.Fleet(in.Summary, func(id string) (string, map[string]string) { return r.fleet[id].Version, r.fleet[id].Labels })
	return stored(doc)
}

// loadVerdict is the answer to what was asked: was the SLO met, the rate sustained,
// a knee found. There is none where nothing was asked, nothing was measured, or our
// own side was the limit.
func loadVerdict(l *spec.Load, load *result.Load, checks []result.Check, cut error) result.Verdict {
	v := result.Verdict{Policy: "slo", Reasons: []string{}}
	if cut != nil {
		v.Reasons = append(v.Reasons, "cut short: "+cut.Error())
	}
	if len(load.Levels) == 0 {
		v.Reasons = append(v.Reasons, "no load was sent")
		return v
	}
	if k := load.Knee; k != nil {
		return kneeVerdict(v, k)
	}
	level := load.Levels[len(load.Levels)-1]
	if level.Met == nil && level.Why != "" {
		v.Reasons = append(v.Reasons, level.Why)
		return v
	}
	var missed, open []string
	for _, c := range checks {
		switch c.Status {
		case result.Fail:
			missed = append(missed, c.Reason)
		case result.Undecided:
			open = append(open, "undecided, measure longer: "+c.Reason)
		case result.NA:
			open = append(open, c.Reason)
		}
	}
	v.Reasons = append(append(v.Reasons, missed...), open...)
	switch {
	case len(missed) > 0:
		no := false
		v.Passed = &no
	case l.SLO == "":
		for _, c := range checks {
			v.Reasons = append(v.Reasons, c.Reason)
		}
		v.Reasons = append(v.Reasons, "nothing was asked of the answers: give --slo")
	case len(open) == 0 && cut == nil:
		yes := true
		v.Passed = &yes
	}
	return v
}

func kneeVerdict(v result.Verdict, k *result.Knee) result.Verdict {
	switch {
	case k.Rate != nil:
		yes := true
		v.Passed = &yes
		v.Reasons = append(v.Reasons, fmt.Sprintf("%.4g calls/s meet the SLO, confirmed by %d of %d runs", *k.Rate, k.Met, k.Confirmations))
	case k.Lo == nil && k.Hi != nil:
		no := false
		v.Passed = &no
		v.Reasons = append(v.Reasons, fmt.Sprintf("no rate met the SLO, the lowest tried was %.4g calls/s", *k.Hi))
	default:
		v.Reasons = append(v.Reasons, "no knee: "+k.Ended)
	}
	return v
}

// loadText is the load as two results must share it to be compared.
func (r *run) loadText() string {
	s := &r.opt.Spec
	if s.Load == nil {
		return fmt.Sprintf("requests=%d concurrency=%d rate=%g level_duration=%v timeout=%v", s.Requests, s.Concurrency, s.Rate, s.LevelDuration, s.Timeout)
	}
	raw, err := json.Marshal(s.Load.Shown())
	if err != nil {
		panic(fmt.Sprintf("controller: a validated load cannot be encoded: %v", err))
	}
	return strings.TrimSpace(string(raw)) + " timeout=" + s.Timeout.String()
}
