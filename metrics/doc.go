// Package metrics holds what was observed, in a form that can be added up in
// any order: outcomes, exchanges, distributions, tallies and trajectories.
//
// In go single exchanges (one attempt of one operation); out come tallies and
// behaviours that merge without loss, so that a run on sixteen agents equals
// the run on one. Nothing here does I/O, reads a clock, or judges.
package metrics
