// Package wire is the contract between a controller and its agents: the unit
// of work that goes out, the result that comes back, the lease under which it
// is worked, and the subjects, streams and limits they travel under. It does no
// I/O.
//
//	                 controller                                agent
//	unit      work queue of the pool        ───────▶   one at a time
//	event                                   ◀───────   began, returned, unstored
//	lease     ask, every third of the TTL   ◀──────▶   grant: leave to work, calls, pauses
//	progress                                ◀───────   samples, may be lost
//	result    stream                        ◀───────   counts once
//	request   prepare, abort, ping          ◀──────▶   ready
//	control   go, halt, release, quota      ───────▶   to all agents of a run
//	name      who is called that?                      agents, of each other
//
// A unit is self-contained: an agent that has never heard of the run can work
// it. It holds references to secrets (${env:NAME}, ${file:/path}), never their
// values; the agent resolves them.
//
// Protocol versions:
//
//	1  2026-12  units survey, preflight, oracle, load, recovery, contract;
//	            leases with generations, gangs with a start time
package wire
