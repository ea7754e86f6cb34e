package measure

import (
	"fmt"

	"ordeal/controller/merge"
	"ordeal/controller/result"
	"ordeal/metrics"
)

const (
	fewDisrupted  = 10  // below it recovery is an anecdote
	amplified     = 2.0 // calls per operation
	slowRecovery  = 5.0 // seconds
	shownFailures = 10
)

// fault measures both passes under injected faults: the latency probe again
// (degradation), and operations retried until they succeed (recovery).
func fault(in *Input, s *sheet) {
	again, st := in.Summary.Stage("degradation"), in.Summary.Stage("recovery")
	if again != nil {
		s.level(again)
	}
	b := s.trajectories(st, "recovery_rate")
	if b == nil {
		return
	}
	s.injection(in, again, st)
	again = s.undegraded(again)
	s.degradation(again)
	s.operations(b)
	s.recovery(b)
	s.underFault(again, b)
	s.backoff(in, b)
	s.count("loops_detected", b.Loops, b.Operations)
	s.count("exhausted_budgets", b.Operations-b.Succeeded, b.Operations)
	s.count("duplicate_deliveries", b.Redelivered, b.Attempts)
	s.fact("unrecovered", unrecovered(b), b.Disrupted)
	s.faultCaveats(in, b)
	s.faultFindings(in, b)
	s.faultSummary(in, b)
}

// injection counts the faults of both passes. Calls includes what was not
// measured (warm-up).
func (s *sheet) injection(in *Input, again, st *merge.Stage) {
	kinds, calls := copied(st.Behavior.Faults), max(st.Calls, st.Behavior.Attempts)
	if again != nil && again.Tally != nil {
		calls += max(again.Calls, again.Tally.Calls())
		for k, n := range again.Tally.Faults {
			kinds[k] += n
		}
	}
	s.fact("faults", map[string]any{
		"total_rate": in.Spec.FaultRate, "seed": in.Spec.Seed, "timeout_s": in.Spec.Timeout.Seconds(),
	}, calls)
	s.count("max_retries", int64(in.Spec.MaxRetries), st.Behavior.Operations)
	s.count("calls", calls, calls)
	s.count("injected", sum(kinds), calls)
	s.fact("injected_by_kind", kinds, calls)
	s.rate("injection_rate", min(sum(kinds), calls), calls)
}

// undegraded withholds the repetition of the latency probe that lost a part of its
// load: it is treated like one that was not run.
func (s *sheet) undegraded(again *merge.Stage) *merge.Stage {
	if again == nil || !again.Degraded() {
		return again
	}
	s.missing("rate", 0, "degraded_error_rate")
	s.missing("s", 0, "degraded_p95_s")
	s.caveat(degraded(again, "degraded_error_rate", "degraded_p95_s", "error_rate_under_fault"))
	return nil
}

// degradation records what the latency probe saw under faults.
func (s *sheet) degradation(again *merge.Stage) {
	seen := map[string]any{}
	if again != nil && again.Tally != nil && again.Tally.Measured() > 0 {
		t := again.Tally
		one := map[string]any{"error_rate": float64(t.Failures()) / float64(t.Measured()), "requests": t.Measured(), "p50_s": nil, "p95_s": nil}
		s.rate("degraded_error_rate", t.Failures(), t.Measured())
		s.percentile("degraded_p95_s", &t.Latency, 0.95)
		if t.Latency.N() > 0 {
			one["p50_s"] = float64(t.Latency.Quantile(500)) / 1e6
			one["p95_s"] = float64(t.Latency.Quantile(950)) / 1e6
		}
		seen["latency"] = one
		s.withheld(again, "degraded_p95_s")
	}
	s.fact("baseline_probes_under_fault", seen, int64(len(seen)))
}

// operations records the counts of the recovery pass.
func (s *sheet) operations(b *metrics.Behavior) {
	n := b.Operations
	s.count("trajectories", n, n)
	s.count("attempts", b.Attempts, n)
	s.count("retries", b.Attempts-n, n)
	s.count("unmeasured", b.Unmeasured, n+b.Unmeasured)
	s.put("retry_amplification", "x", float64(b.Attempts)/float64(n), n)
	s.count("disrupted", b.Disrupted, n)
	s.count("recovered", b.Recovered, b.Disrupted)
	status := map[string]int64{"success": b.Succeeded}
	if failed := n - b.Succeeded; failed > 0 {
		status["failed"] = failed
	}
	s.fact("final_status_counts", status, n)
}

// recovery records recovered over disrupted operations and how long it took.
func (s *sheet) recovery(b *metrics.Behavior) {
	s.rate("recovery_rate", b.Recovered, b.Disrupted)
	d := &b.Recovery
	s.seconds("mean_recovery_latency_s", d.Mean(), d.N())
	s.seconds("max_recovery_latency_s", float64(d.Max()), d.N())
	s.percentile("p95_recovery_latency_s", d, 0.95)
}

// underFault is the share of failed attempts in both passes. Each operation of
// the recovery pass holds at most one success, its last attempt.
func (s *sheet) underFault(again *merge.Stage, b *metrics.Behavior) {
	failed, n := b.Attempts-b.Succeeded, b.Attempts
	if again != nil && again.Tally != nil {
		failed += again.Tally.Failures()
		n += again.Tally.Measured()
	}
	s.rate("error_rate_under_fault", failed, n)
}

func (s *sheet) backoff(in *Input, b *metrics.Behavior) {
	s.count("backoff_waits", b.BackoffWaits, b.Attempts)
	s.put("backoff_waited_s", "s", float64(b.BackoffWaitedUS)/1e6, b.BackoffWaits)
	s.put("backoff_simulated_s", "s", float64(b.BackoffVirtualUS)/1e6, b.BackoffWaits)
	s.count("backoff_unwaited", b.BackoffUnwaited, b.BackoffWaits+b.BackoffUnwaited)
	s.put("backoff_budget_s", "s", in.Spec.BackoffBudget.Seconds(), b.Operations)
	s.fact("backoff_budget_exhausted", b.BackoffUnwaited > 0, b.Operations)
}

// unrecovered names the first operations that never succeeded.
func unrecovered(b *metrics.Behavior) []string {
	labels := []string{}
	for i := range b.Kept {
		if !b.Kept[i].Succeeded() && len(labels) < shownFailures {
			labels = append(labels, b.Kept[i].Label)
		}
	}
	return labels
}

func (s *sheet) faultCaveats(in *Input, b *metrics.Behavior) {
	if injected, _ := s.probe.Metrics["injected"].Number(); injected == 0 {
		s.caveat(noneInjected())
		return
	}
	s.recoveryCaveats(in, b)
}

// recoveryCaveats are shared by the two probes that show recovery_rate.
func (s *sheet) recoveryCaveats(in *Input, b *metrics.Behavior) {
	if b.BackoffUnwaited > 0 {
		s.caveat(backoffSpent(b.BackoffUnwaited, in.Spec.BackoffBudget))
	}
	if b.QuotaOps > 0 {
		s.caveat(quotaLeftOut(b.QuotaOps, b.Operations))
	}
	switch {
	case b.Disrupted == 0:
		s.caveat(nothingDisrupted(b.Operations))
	case b.Disrupted < fewDisrupted:
		s.caveat(thinRecovery(in, b.Recovered, b.Disrupted))
	}
}

func (s *sheet) faultFindings(in *Input, b *metrics.Behavior) {
	injected, _ := s.probe.Metrics["injected"].Number()
	if injected == 0 {
		return
	}
	calls, _ := s.probe.Metrics["calls"].Number()
	kinds, _ := s.probe.Metrics["injected_by_kind"].Value.(map[string]int64)
	s.finding("injected", result.Info, fmt.Sprintf("%.0f faults were injected into %.0f calls (%.0f%%): %s.",
		injected, calls, 100*injected/calls, tally(kinds, 8)), "")
	if !in.Spec.Selected("behavior") {
		s.recoveryFindings(in, b)
	}
	if b.Redelivered > 0 {
		s.finding("duplicate_deliveries", result.Info, fmt.Sprintf("%s sent again although the target had acknowledged the work; only reading its state shows whether work was done twice.",
			plural(b.Redelivered, "call was", "calls were")), "")
	}
	if rate, ok := s.probe.Metrics["degraded_error_rate"].Number(); ok {
		s.finding("degradation", result.Info, fmt.Sprintf("Under faults the latency probe saw %.0f%% errors and p95 %s.", 100*rate, s.secsOf("degraded_p95_s")), "")
	}
}

// recoveryFindings belong to the behavior probe, and to this one when it runs
// alone. An operation that met nothing but injected faults lost a draw: that is
// the injector's doing and no failure of the target.
func (s *sheet) recoveryFindings(in *Input, b *metrics.Behavior) {
	lost := b.Disrupted - b.Recovered
	switch {
	case b.Disrupted == 0:
	case lost > 0 && b.CleanFailed == 0:
		s.finding("unrecovered_by_draw", result.Info, fmt.Sprintf(
			"%d of %d disrupted operations did not come back %s: a fault was injected into each of their attempts. No attempt left alone failed.",
			lost, b.Disrupted, within(in)), "")
	case lost > 0:
		s.finding("unrecovered", result.Critical, fmt.Sprintf(
			"%d of %d disrupted operations did not come back %s, by their last fault: %s. A user sees these fail.",
			lost, b.Disrupted, within(in), tally(b.Unrecovered, 4)), some(unrecovered(b), shownFailures))
	default:
		s.finding("recovered", result.Info, fmt.Sprintf("All %d disrupted operations came back %s.", b.Disrupted, within(in)), "")
	}
	s.slowRecovery(in, b)
}

// slowRecovery is a warning where the target retries; where we do, most of it is
// injected waiting.
func (s *sheet) slowRecovery(in *Input, b *metrics.Behavior) {
	mean, ok := s.probe.Metrics["mean_recovery_latency_s"].Number()
	if !ok || mean <= slowRecovery {
		return
	}
	severity, share := result.Warning, ""
	if !in.Survey.OwnRetries {
		severity, share = result.Info, " Injected timeouts and back-off are part of it."
	}
	s.finding("slow_recovery", severity, fmt.Sprintf("A disrupted operation is back after %s on average and %s at most.%s",
		secs(mean), s.secsOf("max_recovery_latency_s"), share), "")
}

func within(in *Input) string {
	return "within " + plural(int64(in.Spec.MaxRetries), "retry", "retries")
}

func (s *sheet) faultSummary(in *Input, b *metrics.Behavior) {
	injected, _ := s.probe.Metrics["injected"].Number()
	calls, _ := s.probe.Metrics["calls"].Number()
	s.probe.Summary = fmt.Sprintf("%s in %s", plural(int64(injected), "fault", "faults"), plural(int64(calls), "call", "calls"))
	if rate, ok := s.probe.Metrics["degraded_error_rate"].Number(); ok {
		s.probe.Summary += fmt.Sprintf("; under faults p95 %s, %.0f%% failed", s.secsOf("degraded_p95_s"), 100*rate)
	}
	if !in.Spec.Selected("behavior") {
		s.probe.Summary += "; " + recoveredText(in, b)
	}
}

// recoveredText is what became of the disrupted operations.
func recoveredText(in *Input, b *metrics.Behavior) string {
	if b.Disrupted == 0 {
		return "nothing needed recovery"
	}
	return fmt.Sprintf("%d of %s recovered (%.0f%%) %s", b.Recovered, plural(b.Disrupted, "disrupted operation", "disrupted operations"),
		100*float64(b.Recovered)/float64(b.Disrupted), within(in))
}
