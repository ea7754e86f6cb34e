package controller

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"ordeal/controller/measure"
	"ordeal/controller/plan"
	"ordeal/controller/policy"
	"ordeal/controller/report"
	"ordeal/controller/result"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// document measures and judges what was merged; cut is why the run ended early.
func (r *run) document(cut error) *result.Document {
	s := &r.opt.Spec
	if s.Load != nil {
		return r.loadDocument(cut)
	}
	summary := r.merger.Summary()
	probes, caveats := measure.Probes(measure.Input{Spec: s, Survey: r.survey, Summary: summary, Prices: r.opt.Prices,
		Plan: r.stages, Preflight: r.preflight})
	judged := policy.Evaluate(r.opt.Policy, policy.Input{Probes: probes, Caveats: caveats, Selected: s.Probes, Phases: s.Phases,
		Requests: int64(s.Requests), Oracle: s.VerifyTool != ""})
	doc := &result.Document{
		SchemaVersion: result.SchemaVersion, OrdealVersion: r.opt.Version, Command: r.opt.Command,
		Target: r.target(), Verdict: judged.Verdict, Breakdown: judged.Breakdown, Checks: judged.Checks,
		Probes: probes, Caveats: caveats, Histograms: r.histograms(),
	}
	doc.Run = r.header(cut)
	doc.Fleet = measure.Fleet(summary, func(id string) (string, map[string]string) { return r.fleet[id].Version, r.fleet[id].Labels })
	return stored(doc)
}

// stored is the document as its JSON gives it back, so that every format renders
// the same now as from the file later.
func stored(doc *result.Document) *result.Document {
	doc, err := report.ParseJSON(bytes.NewReader(asJSON(doc)))
	if err != nil {
		panic(fmt.Sprintf("controller: a document that cannot be read again: %v", err))
	}
	return doc
}

func asJSON(doc *result.Document) []byte {
	var buf bytes.Buffer
	if err := report.JSON(&buf, doc); err != nil {
		panic(fmt.Sprintf("controller: a document that cannot be stored: %v", err))
	}
	return buf.Bytes()
}

func (r *run) header(cut error) result.Run {
	summary := r.merger.Summary()
	h := result.Run{ID: r.id, StartedAt: r.started.UTC(), DurationS: time.Since(r.started).Seconds(), Invocation: append([]string{}, r.opt.Words...), Partial: cut != nil,
		Seed: r.opt.Spec.Seed, Spec: r.specJSON(), Fleet: r.agents(), Calls: summary.Calls, Reissued: summary.Reissued, Time: r.time(),
		Comparability: r.comparability()}
	if cut != nil {
		h.PartialReason = cut.Error()
	}
	return h
}

// agents that did the work, as they present themselves; one that came and went
// between the ends of the run is unknown.
func (r *run) agents() []result.Agent {
	fleet := []result.Agent{}
	for _, a := range r.merger.Summary().Fleet {
		met := r.fleet[a.ID]
		fleet = append(fleet, result.Agent{ID: a.ID, Version: cmp.Or(met.Version, "unknown"), Labels: met.Labels, Units: a.Units, Operations: a.Operations})
	}
	return fleet
}

// time splits the duration: of agents that work beside each other the busiest
// counts.
func (r *run) time() result.Time {
	var t result.Time
	for _, st := range r.merger.Summary().Stages {
		busiest := time.Duration(0)
		for _, d := range st.Busy {
			busiest = max(busiest, d)
		}
		t.CallsAndWaitsS += busiest.Seconds()
	}
	if r.survey != nil {
		t.StartupS = (time.Duration(r.survey.StartupUS) * time.Microsecond).Seconds()
	}
	t.OwnS = max(0, time.Since(r.started).Seconds()-t.CallsAndWaitsS-t.StartupS)
	return t
}

func (r *run) specJSON() json.RawMessage {
	raw, err := r.opt.Spec.JSON()
	if err != nil {
		panic(fmt.Sprintf("controller: a validated spec cannot be encoded: %v", err))
	}
	return raw
}

func (r *run) target() result.Target {
	t := Target(&r.opt.Spec)
	if r.survey == nil {
		return t
	}
	t.Name, t.Version, t.ProtocolVersion = r.survey.Name, r.survey.Version, r.survey.ProtocolVersion
	t.Capabilities, t.Language = r.survey.Capabilities, r.survey.Language
	t.Tools, t.Virtual = len(r.survey.Tools), r.survey.Virtual
	if c := r.choice; c != nil {
		t.Tool, t.ToolArgsSource, t.Mutability = c.Name(), c.ArgsSource, string(c.Mutability)
		if len(c.Calls) > 0 {
			t.ToolArgs = c.Calls[0].Args
		}
	}
	return t
}

// comparability is what another result must share with this one for a
// comparison to mean anything.
func (r *run) comparability() result.Comparability {
	s, t := &r.opt.Spec, r.target()
	rules, err := json.Marshal(r.opt.Policy)
	if err != nil {
		panic(fmt.Sprintf("controller: a valid policy cannot be encoded: %v", err))
	}
	kinds := []string{}
	for _, k := range plan.FaultKinds(s) {
		kinds = append(kinds, k.String())
	}
	fields := map[string]string{
		"target":    strings.Join([]string{t.Kind, t.URI, t.Name, t.Version}, " "),
		"protocol":  t.ProtocolVersion,
		"tool":      t.Tool,
		"tool_args": string(t.ToolArgs),
		"seed":      s.Seed,
		"schedule":  fmt.Sprintf("%s ppb=%d kinds=%s retries=%d", schedule.Digest()[:16], s.FaultRatePPB, strings.Join(kinds, ","), s.MaxRetries),
		"load":      r.loadText(),
		"probes":    strings.Join(s.Probes, ",") + " " + strings.Join(s.Phases, ","),
		"policy":    digest(string(rules)),
		"ordeal":    r.opt.Version,
	}
	text := ""
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		text += k + "=" + fields[k] + "\n"
	}
	return result.Comparability{Hash: digest(text), Fields: fields}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// histograms of every stage that sent load.
func (r *run) histograms() map[string]result.Histogram {
	out := map[string]result.Histogram{}
	add := func(name string, d *metrics.Dist) {
		if d.N() == 0 {
			return
		}
		data, err := d.HDR()
		if err != nil {
			return // a value beyond the geometry: the metrics say so
		}
		out[name] = result.Histogram{Encoding: "hdr-v2-base64", Unit: "us", Data: data}
	}
	for _, st := range r.merger.Summary().Stages {
		if st.Tally == nil {
			continue
		}
		add(st.Name+"/latency", &st.Tally.Latency)
		if r.opt.Spec.Load != nil {
			add(st.Name+"/service", &st.Tally.Service)
		}
		add(st.Name+"/failed", &st.Tally.Failed)
		add(st.Name+"/timed_out", &st.Tally.TimedOut)
		add(st.Name+"/ttft", &st.Tally.TTFT)
	}
	return out
}

func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(strings.TrimRight(text, "\n")) {
			if !yield(strings.TrimRight(line, "\n")) {
				return
			}
		}
	}
}
