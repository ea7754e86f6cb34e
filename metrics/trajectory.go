package metrics

import (
	"slices"
	"time"
)

// Invocation is one attempt inside a trajectory.
type Invocation struct {
	Attempt     int     `json:"attempt"` // from 1
	Outcome     Outcome `json:"outcome"`
	Delivered   bool    `json:"delivered"`
	Executed    Tri     `json:"executed"`
	Fault       string  `json:"fault,omitempty"` // injected kind
	Quota       bool    `json:"quota,omitempty"` // refused by the target for quota
	StartedUS   int64   `json:"started_us"`      // since the operation's first attempt
	LatencyUS   int64   `json:"latency_us"`
	WaitedUS    int64   `json:"waited_us,omitempty"` // back-off before this attempt
	Fingerprint string  `json:"fingerprint,omitempty"`
}

// Trajectory is one operation: all its attempts, in order.
type Trajectory struct {
	Op          uint64       `json:"op"`
	Label       string       `json:"label"`
	Invocations []Invocation `json:"invocations"`
}

// Limited reports whether the target refused an attempt for quota.
func (t *Trajectory) Limited() bool {
	return slices.ContainsFunc(t.Invocations, func(inv Invocation) bool { return inv.Quota })
}

// Disrupted reports whether the first attempt failed.
func (t *Trajectory) Disrupted() bool {
	return len(t.Invocations) > 0 && t.Invocations[0].Outcome != OK
}

// Succeeded reports whether the last attempt succeeded.
func (t *Trajectory) Succeeded() bool {
	return len(t.Invocations) > 0 && t.Invocations[len(t.Invocations)-1].Outcome == OK
}

// Recovered reports a success after a failed first attempt.
func (t *Trajectory) Recovered() bool { return t.Disrupted() && t.Succeeded() }

// RecoveryLatency is the time from the start of the first failed attempt to
// the end of the success that followed; 0 when there is none.
func (t *Trajectory) RecoveryLatency() time.Duration {
	var failedAt int64 = -1
	for _, inv := range t.Invocations {
		switch {
		case inv.Outcome != OK && failedAt < 0:
			failedAt = inv.StartedUS
		case inv.Outcome == OK && failedAt >= 0:
			return time.Duration(inv.StartedUS+inv.LatencyUS-failedAt) * time.Microsecond
		}
	}
	return 0
}

// Looped reports whether the trajectory ends in a repeated cycle of calls.
func (t *Trajectory) Looped() bool {
	if len(t.Invocations) < cycleRepeats {
		return false
	}
	period, _ := Cycle(t.Calls())
	return period > 0
}

// cycleRepeats is how often a block of calls must repeat to be a loop.
const cycleRepeats = 3

// Cycle finds the shortest block of calls that a sequence ends on repeating at
// least three times in a row (A-B-A-B-A-B has period 2). Calls are compared by
// fingerprint. A retry of a failed call is not a repetition: pass only the
// calls that were not retries. Period 0: no loop.
func Cycle(calls []string) (period, repeats int) {
	for p := 1; p*cycleRepeats <= len(calls); p++ {
		r := 1
		for i := len(calls) - 2*p; i >= 0 && slices.Equal(calls[i:i+p], calls[len(calls)-p:]); i -= p {
			r++
		}
		if r >= cycleRepeats {
			return p, r
		}
	}
	return 0, 0
}

// Calls is the sequence of fingerprints without retries: an attempt that
// repeats a failed one with the same fingerprint is left out.
func (t *Trajectory) Calls() []string {
	var calls []string
	for i := range t.Invocations {
		inv := &t.Invocations[i]
		if i > 0 && t.Invocations[i-1].Outcome != OK && t.Invocations[i-1].Fingerprint == inv.Fingerprint {
			continue
		}
		calls = append(calls, inv.Fingerprint)
	}
	return calls
}
