// Package wire is the contract between a controller and its agents: the unit
// of work that goes out, the result that comes back, and the subjects, streams
// and limits they travel under. It does no I/O.
//
// A unit is self-contained: an agent that has never heard of the run can work
// it. It holds references to secrets (${env:NAME}, ${file:/path}), never their
// values; the agent resolves them.
//
// Protocol versions:
//
//	1  2026-12  units survey, preflight, oracle, load, recovery, contract
package wire
