package plan

import (
	"fmt"
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// Stage is a set of units that belong together: all of it is done before the
// next stage begins.
type Stage struct {
	Name  string // latency, concurrency-8, contract-echo, degradation, recovery, ...
	Probe string
	Phase string
	Level int // callers at once; 0 where it has no meaning
	Units []wire.Unit
	// Parallel bounds how many units are out at once: 1 where two at once would
	// change what is measured, 0 where it does not matter.
	Parallel int
	// Gang: the one unit is shared out among agents that start together.
	Gang bool
}

// Sizes of units.
const (
	virtualUnitOps  = 50_000
	faultedUnitOps  = 1_000
	contractUnitOps = 50
	maxUnitOps      = 10_000
	unitSpan        = 3 * time.Second // aim of one unit on a real target
)

// timedOps is the range of a stage that --level-duration ends: more operations
// than any load makes in its time, and few enough that the blocks of a ramp fit
// a word and a float64 each.
const timedOps = 1 << 40

// planner carries what every stage needs.
type planner struct {
	spec   *spec.Spec
	survey *wire.Survey
	choice *Choice
	// latency of the preflight call, for sizing units.
	latency time.Duration
}

// Survey is the first stage of every scan: connect and list.
func Survey(s *spec.Spec) Stage {
	return single("survey", "survey", wire.Unit{Kind: wire.SurveyUnit, Target: s.Target})
}

// Preflight makes one real call with the chosen arguments.
func Preflight(s *spec.Spec, c *Choice) Stage {
	return single("preflight", "survey", wire.Unit{Kind: wire.PreflightUnit, Target: s.Target, Call: call(c, "preflight")})
}

func single(name, probe string, u wire.Unit) Stage {
	u.Stage = name
	return Stage{Name: name, Probe: probe, Phase: "survey", Units: []wire.Unit{u}, Parallel: 1}
}

// Build plans everything after the preflight. The stages of a probe stand
// together, probes in the order baseline (contract last: it sends garbage),
// chaos. Behavior needs no traffic of its own.
func Build(s *spec.Spec, survey *wire.Survey, c *Choice, preflight *wire.Preflight) []Stage {
	p := &planner{spec: s, survey: survey, choice: c, latency: time.Duration(preflight.LatencyUS) * time.Microsecond}
	var stages []Stage
	latency := s.Selected("latency")
	if latency {
		stages = append(stages, p.latencyStage())
	}
	if s.Selected("cost") && !latency && survey.ReportsUsage {
		st := p.latencyStage()
		stages = append(stages, rename(st, "cost", "cost"))
	}
	if s.Selected("concurrency") {
		stages = append(stages, p.ramp()...)
	}
	if s.Selected("contract") {
		stages = append(stages, p.contract()...)
	}
	if s.Selected("fault") {
		stages = append(stages, p.chaos(latency)...)
	}
	return stages
}

// Number gives every unit its run and id; token is the stage's name in subjects.
func (st *Stage) Number(run string, index int) (token string) {
	token = fmt.Sprintf("s%02d", index)
	for i := range st.Units {
		u := &st.Units[i]
		u.V, u.Run, u.Stage, u.ID = wire.Version, run, st.Name, fmt.Sprintf("%s-%05d", token, i)
	}
	return token
}

// Operations is the number of operations the stage plans; 0 when a duration
// ends it, so that nobody knows beforehand.
func (st *Stage) Operations() int64 {
	var n int64
	for i := range st.Units {
		n += Operations(&st.Units[i])
	}
	return n
}

// Operations is the number of operations a unit plans, 0 for one that a
// duration ends.
func Operations(u *wire.Unit) int64 {
	if u.Load != nil && u.Load.Duration > 0 {
		return 0
	}
	return int64(u.Ops.Len())
}

func (p *planner) parallel() int {
	if p.survey.Virtual {
		return 0
	}
	return 1
}

func call(c *Choice, salt string) wire.CallSpec {
	return wire.CallSpec{Tools: c.Calls, OpIDSalt: salt}
}

// unitOps sizes the units of a closed loop with one caller.
func (p *planner) unitOps() uint64 {
	if p.survey.Virtual {
		return virtualUnitOps
	}
	if p.latency <= 0 {
		return maxUnitOps
	}
	return min(max(uint64(unitSpan/p.latency), 1), maxUnitOps)
}

// loadOps is how many operations a level may make: what was asked for, or as
// many as its duration allows.
func (p *planner) loadOps() uint64 {
	if p.spec.LevelDuration > 0 {
		return timedOps
	}
	return uint64(p.spec.Requests)
}

// latencyStage is the baseline: one caller, or an arrival rate.
func (p *planner) latencyStage() Stage {
	s := p.spec
	whole := wire.Range{From: uint64(s.Warmup), To: uint64(s.Warmup) + p.loadOps()}
	st := Stage{Name: "latency", Probe: "latency", Phase: "baseline", Level: 1, Parallel: p.parallel(), Gang: s.MilliRate > 0 && !p.survey.Virtual}
	size := p.unitOps()
	if s.MilliRate > 0 || s.LevelDuration > 0 {
		size = whole.Len() // one schedule, one clock
	}
	for _, r := range split(whole, size) {
		load := p.load(1, whole)
		if r.From == whole.From {
			load.Warmup = s.Warmup
		}
		if s.MilliRate > 0 {
			load.MilliRate, load.MaxInFlight, load.Level = s.MilliRate, s.MaxInFlight, p.expectedInFlight()
		}
		st.Units = append(st.Units, wire.Unit{Kind: wire.LoadUnit, Target: s.Target, Call: call(p.choice, s.Seed), Ops: r, Load: load})
	}
	st.budget(s.BackoffBudget)
	return st
}

// budget divides what a load stage may wait for quotas over its units.
func (st *Stage) budget(whole time.Duration) {
	for i := range st.Units {
		st.Units[i].Load.BackoffBudget = whole / time.Duration(len(st.Units))
	}
}

// expectedInFlight by Little's law, from the preflight's latency: it only
// tells a saturating mock how loaded it is.
func (p *planner) expectedInFlight() int {
	n := p.spec.Rate * p.latency.Seconds()
	return max(1, min(int(n+0.5), p.spec.MaxInFlight))
}

func (p *planner) load(level int, stage wire.Range) *wire.Load {
	return &wire.Load{Workers: level, Level: level, Stage: stage, Duration: p.spec.LevelDuration,
		BackoffMax: p.spec.BackoffMax, BackoffBudget: p.spec.BackoffBudget, CheckOutput: true}
}

// Levels of a ramp: doubling from 1, and the ceiling itself.
func Levels(ceiling int) []int {
	var levels []int
	for l := 1; l < ceiling; l *= 2 {
		levels = append(levels, l)
	}
	return append(levels, ceiling)
}

// ramp is one gang stage per level, each with its own block of operations.
func (p *planner) ramp() []Stage {
	var stages []Stage
	n := p.loadOps()
	for i, level := range Levels(p.spec.Concurrency) {
		ops := wire.Range{From: uint64(i) * n, To: uint64(i+1) * n}
		load := p.load(level, ops)
		load.Warmup = p.spec.Warmup
		st := Stage{Name: fmt.Sprintf("concurrency-%d", level), Probe: "concurrency", Phase: "baseline", Level: level, Gang: !p.survey.Virtual}
		u := wire.Unit{Kind: wire.LoadUnit, Target: p.spec.Target, Call: call(p.choice, p.spec.Seed), Ops: ops, Load: load}
		st.Units = []wire.Unit{u}
		if p.survey.Virtual {
			st.Units = Share(u, int(min(uint64(level), (n+virtualUnitOps-1)/virtualUnitOps)))
		}
		stages = append(stages, st)
	}
	return stages
}

func (p *planner) contract() []Stage {
	tools, _ := ContractTools(p.spec, p.survey, p.choice)
	var stages []Stage
	for _, t := range tools {
		st := Stage{Name: "contract-" + t.Tool.Name, Probe: "contract", Phase: "baseline", Parallel: p.parallel()}
		for _, r := range split(wire.Range{To: uint64(p.spec.ContractCases)}, contractUnitOps) {
			st.Units = append(st.Units, wire.Unit{Kind: wire.ContractUnit, Target: p.spec.Target, Ops: r,
				Call:     wire.CallSpec{OpIDSalt: "contract:" + p.spec.Seed},
				Contract: &wire.Contract{Tool: t.Tool, Baseline: t.Baseline, RealArgs: t.RealArgs, MaxCases: p.spec.ContractCases}})
		}
		stages = append(stages, st)
	}
	return stages
}

func rename(st Stage, name, probe string) Stage {
	st.Name, st.Probe = name, probe
	return st
}

// split cuts a range into parts of at most size operations.
func split(r wire.Range, size uint64) []wire.Range {
	size = max(size, 1)
	var parts []wire.Range
	for from := r.From; from < r.To; from += size {
		parts = append(parts, wire.Range{From: from, To: min(from+size, r.To)})
	}
	return parts
}
