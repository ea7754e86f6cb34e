// Package policy judges what was measured: Summary → Verdict.
//
// In go a policy (a YAML file the user owns, or the built-in one) and the
// probes of a finished run; out come one check per threshold, the score
// breakdown and a verdict of three values: passed, failed, no verdict. Nothing
// here reads a file, a clock or a random number, and nothing is ever charged
// for being unmeasured: it leaves the denominator and is named.
//
//	thresholds ─▶ checks ─▶ dimensions ─▶ composite ─▶ caps ─▶ verdict
//	  limit        status     mean of       weighted     89/49    true, false,
//	               0..100     its checks    mean                  null
//
// A check has two answers. Its score follows from the observed value alone, so
// scores compare with those of other tools that read the same file. Its status
// follows from the 95 % interval: it fails only when the evidence excludes the
// limit and passes as proven only when the evidence excludes a violation. In
// between it is unproven (the observed value meets the limit) or undecided (it
// misses it). Unproven does not stop a pass unless the policy is strict;
// undecided leaves the run without a verdict, and the outcome says how many
// measurements would settle it.
//
// Counts of what happened to the cases sent (accepted_invalid,
// duplicate_mutations, crashes against a limit of zero) are exact: the claim
// is about those cases, so one violation proves a violation and none proves
// none. How far that reaches is the denominator's business, which travels with
// the check.
package policy
