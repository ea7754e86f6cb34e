// Package stat turns counts, ranks and moments into intervals, and intervals
// into decisions.
//
// In go successes and trials, sample sizes, means; out come intervals,
// p-values, ranks, sample sizes and a three-way decision. Nothing here reads a
// clock, draws a random number, keeps state or does I/O, so a report computed
// twice from the same counts is the same report.
//
// Which function for which question:
//
//	shown proportion                  Wilson, ClusterWilson when operations share sessions
//	claim that must hold              LowerBound, UpperBound (one-sided Clopper–Pearson)
//	looked at while it still grows    ConfidenceSequence
//	difference of two arms            Newcombe; McNemar when the arms share operations
//	percentile of a latency           QuantileRanks, LowerRank, UpperRank, NearestRank
//	mean of a token count             MeanInterval
//	error rate over rising load       PAVA
//	how many operations are needed    WilsonTrials, ExactTrials, SampleSize, NonInferiority
//	what this run cannot see          DetectableDrop, Carries
//
// A confidence level conf is a probability in (0, 1), 0.95 for 95 %. Arguments
// that no measurement can produce (a negative count, more successes than
// trials, a level outside (0, 1)) are mistakes of the caller and panic: an
// interval computed from them would look like any other. A sample that is
// merely too small is not a mistake; it yields the widest interval or ok=false.
//
// Accuracy: the incomplete beta function behind the exact bounds keeps a
// relative error below 1e-11 for shape parameters up to 10^8, because its
// leading factor uses the saddle-point form of C. Loader (2000), "Fast and
// Accurate Computation of Binomial Probabilities", and not a difference of
// log-gammas.
package stat
