package measure

import (
	"fmt"

	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics"
)

// behavior analyses the trajectories of the recovery pass. It sends nothing.
func behavior(in *Input, s *sheet) {
	if !in.Spec.Selected("fault") {
		s.probe.Applicable = false
		s.probe.Summary = "the scan injects no faults"
		s.caveat(noFaultPhase())
		return
	}
	b := s.trajectories(in.Summary.Stage("recovery"),
		"recovery_rate", "retry_amplification", "duplicate_mutations", "survivability", "recovery_ideal")
	s.probe.DurationS = 0 // the time was the fault probe's
	if b == nil {
		return
	}
	s.operations(b)
	s.recovery(b)
	s.behaviorCounts(b)
	s.survival(b)
	s.floors(in, b)
	s.callerStrategy(in, b)
	s.baselineError(in, b)
	s.effects(in, b)
	s.recoveryCaveats(in, b)
	s.floorCaveat(b)
	s.behaviorFindings(in, b)
	s.behaviorSummary(in, b)
}

func (s *sheet) behaviorCounts(b *metrics.Behavior) {
	n := b.Operations
	s.count("operations_retried", b.Retried, n)
	s.count("max_attempts_single_operation", b.MaxAttempts, n)
	s.count("unrecovered", b.Disrupted-b.Recovered, b.Disrupted)
	s.count("loops_detected", b.Loops, n)
	s.count("exhausted_budgets", n-b.Succeeded, n)
	s.count("operations_failed", n-b.Succeeded, n)
	s.count("operations_succeeded", b.Succeeded, n)
	s.rate("operation_failure_rate", n-b.Succeeded, n)
	s.count("duplicate_deliveries", b.Redelivered, b.Attempts)
	s.fact("injected_faults_by_kind", copied(b.Faults), b.Attempts)
	s.fact("unrecovered_by_fault_kind", copied(b.Unrecovered), b.Disrupted-b.Recovered)
	s.count("quota_operations", b.QuotaOps, n)
	s.fact("nothing_completed", b.Succeeded == 0, n)
}

// survival is what the target alone answers for: attempts no fault was put in.
func (s *sheet) survival(b *metrics.Behavior) {
	s.count("clean_attempts", b.CleanAttempts, b.Attempts)
	s.count("clean_failed", b.CleanFailed, b.CleanAttempts)
	s.rate("survivability", b.CleanAttempts-b.CleanFailed, b.CleanAttempts)
	s.rate("recovery_rate_given_clean", b.RecoveredClean, b.DisruptedClean)
	if b.CleanAttempts == 0 {
		s.caveat(noCleanAttempt())
	}
}

// floors records what recovery to expect of a target that never fails by
// itself: on average over schedules (recovery_floor, 1 - rate^retries), and on
// the very schedule that was drawn (recovery_ideal).
func (s *sheet) floors(in *Input, b *metrics.Behavior) {
	s.count("max_retries", int64(in.Spec.MaxRetries), b.Operations)
	s.put("fault_rate", "rate", in.Spec.FaultRate, b.Attempts)
	s.missing("rate", 0, "recovery_floor", "recovery_ideal")
	rate, err := schedule.PPBFromFloat(in.Spec.FaultRate)
	if err == nil && in.Spec.MaxRetries > 0 {
		s.put("recovery_floor", "rate", schedule.Floor(rate, uint32(in.Spec.MaxRetries)), b.Operations)
	}
	ideal, err := idealOf(in.Plan)
	if err != nil {
		s.caveat(idealUnknown(err.Error()))
		return
	}
	if v, ok := ideal.RecoveryRate(); ok {
		s.put("recovery_ideal", "rate", v, ideal.Disrupted)
		return
	}
	s.caveat(idealUnknown("the schedule disrupts no operation"))
}

// idealOf replays the schedule of the planned recovery pass.
func idealOf(stages []plan.Stage) (schedule.Ideal, error) {
	var total schedule.Ideal
	for i := range stages {
		if stages[i].Name != "recovery" {
			continue
		}
		for _, u := range stages[i].Units {
			rule := schedule.Rule{ID: u.Faults.Rule, RatePPB: schedule.PPB(u.Faults.RatePPB)}
			for _, name := range u.Faults.Kinds {
				kind, err := schedule.ParseKind(name)
				if err != nil {
					return total, err
				}
				rule.Kinds = append(rule.Kinds, kind)
			}
			drawn, err := schedule.Build(u.Faults.Seed, []schedule.Rule{rule})
			if err != nil {
				return total, err
			}
			total = total.Add(drawn.Replay(u.Ops.From, u.Ops.To, uint32(u.Recovery.MaxRetries)))
		}
	}
	if total.Operations == 0 {
		return total, fmt.Errorf("the plan holds no recovery pass")
	}
	return total, nil
}

// callerStrategy moves amplification to a name of its own when the retries are
// ours and so tell nothing about the target.
func (s *sheet) callerStrategy(in *Input, b *metrics.Behavior) {
	s.fact("caller_strategy_applicable", in.Survey.OwnRetries, b.Operations)
	s.missing("x", b.Operations, "caller_retry_amplification")
	if !in.Survey.OwnRetries {
		s.put("caller_retry_amplification", "x", float64(b.Attempts)/float64(b.Operations), b.Operations)
		s.caveat(ownRetryLoop())
	}
	if b.Succeeded == 0 {
		s.caveat(nothingCompleted(b.Operations))
	}
}

// baselineError withholds recovery when nothing worked before the first fault.
func (s *sheet) baselineError(in *Input, b *metrics.Behavior) {
	s.missing("rate", 0, "recovery_rate_baseline_error")
	s.missing("rate", b.Disrupted, "unscored_recovery_rate")
	st := in.Summary.Stage("latency")
	if st == nil || st.Degraded() || st.Tally == nil || st.Tally.Measured() == 0 {
		return
	}
	t := st.Tally
	s.rate("recovery_rate_baseline_error", t.Failures(), t.Measured())
	if t.Successes() == 0 {
		s.rate("unscored_recovery_rate", b.Recovered, b.Disrupted)
		s.caveat(baselineAllFailed(t.Measured()))
	}
}

// floorCaveat notes an interval that reaches across the floor: the sample
// cannot tell this target from a perfect one.
func (s *sheet) floorCaveat(b *metrics.Behavior) {
	floor, ok := s.probe.Metrics["recovery_floor"].Number()
	if iv := decided(b.Recovered, b.Disrupted); ok && b.Disrupted > 0 && iv.Lo < floor && floor < iv.Hi {
		s.caveat(intervalSpansFloor(b.Recovered, b.Disrupted, iv, floor))
	}
}

func (s *sheet) behaviorFindings(in *Input, b *metrics.Behavior) {
	s.recoveryFindings(in, b)
	if b.CleanFailed > 0 {
		iv := s.probe.Metrics["survivability"].Interval
		s.finding("clean_failures", result.Warning, fmt.Sprintf(
			"%d of %d attempts failed although nothing was done to them.", b.CleanFailed, b.CleanAttempts),
			fmt.Sprintf("95%% interval of the success rate %.1f%%-%.1f%%", 100*iv.Lo, 100*iv.Hi))
	}
	if x := float64(b.Attempts) / float64(b.Operations); in.Survey.OwnRetries && x > amplified {
		s.finding("amplification", result.Warning, fmt.Sprintf("The target's own retries made %d calls of %d operations (%.2fx), up to %d for one.", b.Attempts, b.Operations, x, b.MaxAttempts), "")
	}
	if b.Loops > 0 {
		s.finding("loops", result.Warning, fmt.Sprintf("%s repeated the same block of calls three times or more.", plural(b.Loops, "operation", "operations")), "")
	}
}

func (s *sheet) behaviorSummary(in *Input, b *metrics.Behavior) {
	s.probe.Summary = fmt.Sprintf("%s, %.2f calls per operation", recoveredText(in, b), float64(b.Attempts)/float64(b.Operations))
	if v := s.probe.Metrics["duplicate_mutations"].Value; v != nil && s.probe.Metrics["effect_oracle_status"].Value == oracleOK {
		s.probe.Summary += fmt.Sprintf(", %v duplicate mutations", v)
	}
	if b.Succeeded == 0 {
		s.probe.Summary += ", nothing completed"
	}
	if !in.Survey.OwnRetries {
		s.probe.Summary += "; retries and faults are ours: the phase falls only if the server also fails"
	}
}
