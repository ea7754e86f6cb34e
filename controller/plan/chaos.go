package plan

import (
	"time"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
	"ordeal/faultproxy/schedule"
)

// Rule ids of the two fault passes: each draws independently of the other.
const (
	degradationRule = "call/degradation"
	recoveryRule    = "call/recovery"
)

// chaos is the degradation pass (the latency probe again, under faults) and the
// recovery pass, with the oracle's reads around it.
func (p *planner) chaos(degradation bool) []Stage {
	var stages []Stage
	if degradation {
		st := rename(p.latencyStage(), "degradation", "fault")
		st.Phase = "chaos"
		if !p.survey.Virtual && p.spec.MilliRate == 0 && p.spec.LevelDuration == 0 {
			st.Units = merged(st.Units, faultedUnitOps)
			st.budget(p.spec.BackoffBudget)
		}
		for i := range st.Units {
			st.Units[i].Faults = p.faults(degradationRule)
			st.Units[i].Call.OpIDSalt = "degradation:" + p.spec.Seed
			st.Units[i].Load.Warmup = 0
		}
		stages = append(stages, st)
	}
	recovery := p.recovery()
	if p.choice.Verify == nil {
		return append(stages, recovery)
	}
	whole := wire.Range{From: recovery.Units[0].Ops.From, To: recovery.Units[len(recovery.Units)-1].Ops.To}
	return append(stages, p.oracle("oracle-before", whole), recovery, p.oracle("oracle-after", whole))
}

// merged re-cuts consecutive units into larger ones.
func merged(units []wire.Unit, size uint64) []wire.Unit {
	whole := wire.Range{From: units[0].Ops.From, To: units[len(units)-1].Ops.To}
	var out []wire.Unit
	for _, r := range split(whole, size) {
		u, load := units[0], *units[0].Load
		u.Ops, u.Load = r, &load
		out = append(out, u)
	}
	return out
}

func (p *planner) recovery() Stage {
	s := p.spec
	from := uint64(s.Warmup) + uint64(s.Requests)
	size := uint64(faultedUnitOps)
	if p.survey.Virtual {
		size = virtualUnitOps
	}
	parts := split(wire.Range{From: from, To: from + uint64(s.Requests)}, size)
	st := Stage{Name: "recovery", Probe: "fault", Phase: "chaos", Level: 1, Parallel: p.parallel()}
	for _, r := range parts {
		st.Units = append(st.Units, wire.Unit{Kind: wire.RecoveryUnit, Target: s.Target, Ops: r,
			Call: call(p.choice, RecoverySalt(s)), Faults: p.faults(recoveryRule),
			Recovery: &wire.Recovery{MaxRetries: s.MaxRetries, BackoffMax: s.BackoffMax, BackoffBudget: s.BackoffBudget / time.Duration(len(parts))}})
	}
	return st
}

// RecoverySalt is the namespace of the operation ids the oracle counts.
func RecoverySalt(s *spec.Spec) string { return "recovery:" + s.Seed }

// FaultKinds injected by a scan: response_lost only when writing is allowed,
// since its point is a call that was carried out and looks lost.
func FaultKinds(s *spec.Spec) []schedule.Kind {
	kinds := schedule.DefaultKinds()
	if s.AllowMutating {
		kinds = append(kinds, schedule.ResponseLost)
	}
	return kinds
}

func (p *planner) faults(rule string) *wire.Faults {
	f := &wire.Faults{Seed: p.spec.Seed, Rule: rule, RatePPB: p.spec.FaultRatePPB}
	for _, k := range FaultKinds(p.spec) {
		f.Kinds = append(f.Kinds, k.String())
	}
	return f
}

// Oracle reads the state before anything was written: ids already present make
// the count stale.
func Oracle(s *spec.Spec, c *Choice) Stage {
	p := &planner{spec: s, choice: c, survey: &wire.Survey{}}
	from := uint64(s.Warmup) + uint64(s.Requests)
	st := p.oracle("oracle-stale", wire.Range{From: from, To: from + uint64(s.Requests)})
	st.Phase = "survey"
	return st
}

func (p *planner) oracle(name string, ops wire.Range) Stage {
	args := p.spec.VerifyArgs
	if args == nil {
		args = []byte("{}")
	}
	st := single(name, "fault", wire.Unit{Kind: wire.OracleUnit, Target: p.spec.Target, Ops: ops,
		Oracle: &wire.Oracle{Tool: p.choice.Verify.Name, Args: args, Path: p.spec.VerifyCount, Salt: RecoverySalt(p.spec), Names: []string{p.choice.Name()}}})
	st.Phase = "chaos"
	return st
}
