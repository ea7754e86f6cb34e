// Package plan turns what the user asked for and what the survey found into
// stages of work units.
//
// In go a Spec and a Survey; out come stages, or a Refusal when the scan would
// mislead or do harm. The same spec and survey give the same plan, whatever the
// number of agents: a unit's share of the operations is a value. No I/O, no
// clock, no randomness.
package plan
