// Package merge adds up what the agents observed.
//
// In go results of units, one by one, late, twice or out of order; out comes a
// Summary in which every unit counts exactly once, for the first incarnation
// that completed. Counters add, histograms add bucket by bucket, percentiles are
// never averaged. No I/O, no clock, no judgement.
//
//	merge.go      which result counts
//	stage.go      adding it to its stage
//	generator.go  times of agents that were the limit themselves
//	gang.go       what became of a gang
//	share.go      the same work by label and by agent
//	spread.go     a small histogram for each agent
//
// # Memory
//
// A result is added and forgotten: what grows with the number of units is the
// book of which of them counted, about 100 bytes and the id for each. Everything
// else is bounded by the number of stages, agents and label values, and these
// by MaxAgents and MaxGroups.
//
// A Merger is not safe for concurrent use.
package merge
