package metrics

import "testing"

// How an operation fares against a quota tells about the quota: it leaves what
// the target is judged by, and is counted apart.
func TestQuotaLeavesRecovery(t *testing.T) {
	attempt := func(o Outcome, quota bool, fault string) Invocation {
		return Invocation{Outcome: o, Quota: quota, Fault: fault, Delivered: true}
	}
	var b Behavior
	b.Fold(&Trajectory{Op: 1, Invocations: []Invocation{attempt(RateLimited, true, ""), attempt(OK, false, "")}})
	b.Fold(&Trajectory{Op: 2, Invocations: []Invocation{attempt(RateLimited, true, ""), attempt(RateLimited, true, "")}})
	b.Fold(&Trajectory{Op: 3, Invocations: []Invocation{attempt(RateLimited, false, "rate_limit"), attempt(OK, false, "")}})
	got := [...]int64{b.Operations, b.Disrupted, b.Recovered, b.QuotaOps, b.QuotaAttempts, b.CleanAttempts, b.CleanFailed}
	want := [...]int64{3, 1, 1, 2, 3, 2, 0}
	if got != want {
		t.Errorf("operations, disrupted, recovered, quota ops, quota attempts, clean, clean failed = %v, want %v", got, want)
	}
	var merged Behavior
	merged.Merge(&b)
	merged.Merge(&b)
	if merged.QuotaOps != 4 || merged.QuotaAttempts != 6 {
		t.Errorf("merged twice: %d operations, %d attempts; want 4 and 6", merged.QuotaOps, merged.QuotaAttempts)
	}
}
