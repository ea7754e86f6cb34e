package metrics

import (
	"cmp"
	"slices"
	"time"
)

// KeptTrajectories bounds how many whole trajectories a Behavior carries; it
// keeps those with the lowest operation index that did not recover, then those
// that did.
const KeptTrajectories = 50

// Behavior is what a set of trajectories amounts to. Behaviors of disjoint
// sets merge in any order.
type Behavior struct {
	Operations  int64 `json:"operations"`
	Attempts    int64 `json:"attempts"`
	Retried     int64 `json:"retried"` // operations with more than one attempt
	MaxAttempts int64 `json:"max_attempts"`
	Succeeded   int64 `json:"succeeded"`
	Disrupted   int64 `json:"disrupted"` // first attempt failed
	Recovered   int64 `json:"recovered"`
	Loops       int64 `json:"loops"` // repeated cycles in the call sequence
	// CleanAttempts are attempts no fault was injected into, CleanFailed those
	// of them that failed: what the target alone answers for.
	CleanAttempts int64 `json:"clean_attempts"`
	CleanFailed   int64 `json:"clean_failed"`
	// DisruptedClean are disrupted operations that had at least one clean
	// retry, RecoveredClean those of them that recovered.
	DisruptedClean int64 `json:"disrupted_clean"`
	RecoveredClean int64 `json:"recovered_clean"`
	// QuotaOps are operations with an attempt that the target refused for quota:
	// how they fared tells about the quota, so they leave Disrupted and
	// Recovered; QuotaAttempts leave CleanAttempts and CleanFailed.
	QuotaOps      int64 `json:"quota_ops,omitempty"`
	QuotaAttempts int64 `json:"quota_attempts,omitempty"`
	// Redelivered counts acknowledged executions beyond the first of one operation.
	Redelivered int64            `json:"redelivered"`
	Unmeasured  int64            `json:"unmeasured"` // operations cut by a cancel or a failure of ours
	Faults      map[string]int64 `json:"faults,omitempty"`
	Unrecovered map[string]int64 `json:"unrecovered,omitempty"` // by the kind of the last fault, or "none"
	Recovery    Dist             `json:"recovery"`              // recovery latency, µs
	Kept        []Trajectory     `json:"kept,omitempty"`

	BackoffWaits     int64 `json:"backoff_waits"`
	BackoffWaitedUS  int64 `json:"backoff_waited_us"`    // really waited
	BackoffVirtualUS int64 `json:"backoff_simulated_us"` // booked on a virtual clock
	BackoffUnwaited  int64 `json:"backoff_unwaited"`     // retries sent without the wait they asked for: budget spent
}

// Fold adds one trajectory.
func (b *Behavior) Fold(t *Trajectory) {
	if len(t.Invocations) == 0 {
		return
	}
	if !t.Invocations[len(t.Invocations)-1].Outcome.Measured() {
		b.Unmeasured++
		return
	}
	n := int64(len(t.Invocations))
	b.Operations++
	b.Attempts += n
	b.MaxAttempts = max(b.MaxAttempts, n)
	if n > 1 {
		b.Retried++
	}
	if t.Succeeded() {
		b.Succeeded++
	}
	if t.Looped() {
		b.Loops++
	}
	b.foldAttempts(t)
	switch {
	case t.Limited():
		b.QuotaOps++
	case t.Disrupted():
		b.foldDisrupted(t)
		b.keep(t)
	}
}

func (b *Behavior) foldAttempts(t *Trajectory) {
	executed := int64(0)
	for i := range t.Invocations {
		inv := &t.Invocations[i]
		switch {
		case inv.Fault != "":
			count(&b.Faults, inv.Fault)
		case inv.Quota:
			b.QuotaAttempts++
		default:
			b.CleanAttempts++
			if inv.Outcome != OK {
				b.CleanFailed++
			}
		}
		if inv.Executed == Yes && inv.Delivered {
			executed++
		}
	}
	b.Redelivered += max(0, executed-1)
}

func (b *Behavior) foldDisrupted(t *Trajectory) {
	b.Disrupted++
	clean := slices.ContainsFunc(t.Invocations[1:], func(i Invocation) bool { return i.Fault == "" })
	if clean {
		b.DisruptedClean++
	}
	if t.Recovered() {
		b.Recovered++
		if clean {
			b.RecoveredClean++
		}
		b.Recovery.Record(int64(t.RecoveryLatency() / time.Microsecond))
		return
	}
	last := t.Invocations[len(t.Invocations)-1].Fault
	if last == "" {
		last = "none"
	}
	count(&b.Unrecovered, last)
}

// keep puts a trajectory in its place among the kept ones, if it has one. In
// the steady state (fifty unrecovered operations of lower index are kept) this
// is one comparison. What is kept is a copy: a caller may reuse its slice.
func (b *Behavior) keep(t *Trajectory) {
	full := len(b.Kept) >= KeptTrajectories
	if full && compareKept(t, &b.Kept[len(b.Kept)-1]) >= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(b.Kept, t, func(have Trajectory, t *Trajectory) int { return compareKept(&have, t) })
	if full {
		b.Kept = b.Kept[:KeptTrajectories-1]
	}
	own := *t
	own.Invocations = slices.Clone(t.Invocations)
	b.Kept = slices.Insert(b.Kept, at, own)
}

// compareKept orders trajectories by worth: not recovered first, then by
// operation index, then by label.
func compareKept(a, z *Trajectory) int {
	if a.Succeeded() != z.Succeeded() {
		if z.Succeeded() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Op, z.Op), cmp.Compare(a.Label, z.Label))
}

// Merge adds all of o.
func (b *Behavior) Merge(o *Behavior) {
	if o == nil {
		return
	}
	b.Operations += o.Operations
	b.Attempts += o.Attempts
	b.Retried += o.Retried
	b.MaxAttempts = max(b.MaxAttempts, o.MaxAttempts)
	b.Succeeded += o.Succeeded
	b.Disrupted += o.Disrupted
	b.Recovered += o.Recovered
	b.Loops += o.Loops
	b.CleanAttempts += o.CleanAttempts
	b.CleanFailed += o.CleanFailed
	b.DisruptedClean += o.DisruptedClean
	b.RecoveredClean += o.RecoveredClean
	b.QuotaOps += o.QuotaOps
	b.QuotaAttempts += o.QuotaAttempts
	b.Redelivered += o.Redelivered
	b.Unmeasured += o.Unmeasured
	mergeCounts(&b.Faults, o.Faults)
	mergeCounts(&b.Unrecovered, o.Unrecovered)
	b.Recovery.Merge(&o.Recovery)
	for i := range o.Kept {
		b.keep(&o.Kept[i])
	}
	b.BackoffWaits += o.BackoffWaits
	b.BackoffWaitedUS += o.BackoffWaitedUS
	b.BackoffVirtualUS += o.BackoffVirtualUS
	b.BackoffUnwaited += o.BackoffUnwaited
}
