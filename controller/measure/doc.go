// Package measure turns the merged observations of a run into the metrics,
// findings and caveats of its probes.
//
// In go what was asked for (Spec), what the target offers (Survey), what the
// agents observed (Summary) and prices; out come one result.Probe per selected
// probe and the caveats that qualify their numbers. One file per probe:
//
//	latency.go openloop.go     service time, or response time at an arrival rate
//	cost.go price.go           tokens and money
//	concurrency.go ramp.go     the ramp, level by level (level.go)
//	contract*.go case.go       malformed calls
//	fault.go                   both passes under injected faults
//	behavior.go effects.go     trajectories of the recovery pass, and the state oracle
//	caveat*.go                 every way a number is withheld or qualified
//	fleet.go                   who did the work, and how the values of a label compare
//	outlier.go crowd.go        which agents stand out: the rule, the comparison,
//	stratified.go weighted.go  its exact test, the value of the rest
//
// Nothing here judges: no threshold of a policy is read, and a limit that
// appears below (saturation at 5 %, a knee at three times the unloaded p95) only
// names a feature of a curve. No I/O, no clock, no randomness: the same input
// gives the same output.
//
// # Missing numbers
//
// A number that the evidence does not carry is nil, never zero, and a caveat
// says why and what would help. Suppressing caveats name the metrics they
// silence; annotating ones leave the value and add their id to it. What a reader
// may still want of a silenced number stays under a second name (observed_p99_s,
// unscored_crash_rate, caller_retry_amplification).
//
// # Denominators
//
// Cancelled attempts and failures of our own leave every numerator and
// denominator. Attempts refused for quota leave error_rate when a quota was
// seen; error_rate_raw keeps them. Percentiles are over successes; timeouts
// stand beside them as censored samples.
package measure
