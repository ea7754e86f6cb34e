// Package merge adds up what the agents observed.
//
// In go results of units, late, twice or out of order; out comes a Summary in
// which every unit counts exactly once, for the first incarnation that
// completed. Counters add, histograms add bucket by bucket, percentiles are
// never averaged. No I/O, no clock, no judgement.
package merge
