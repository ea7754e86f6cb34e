// Package agent is the daemon near the target: it pulls units, runs them and
// publishes what was observed. It knows no controller; it knows the wire.
//
// Who starts whom:
//
//	Run ─┬─ heartbeat   announces the agent and renews that; sees to idle runs
//	     ├─ watchName   leaves when another process bears the agent's name
//	     ├─ pull        one per pool, one unit at a time: run, store, acknowledge
//	     │   ├─ claim   renews the claim on the unit until it is out of hand
//	     │   └─ sample  tells how far the unit is, and what was observed since
//	     ├─ lease       one per run: asks for leave, calls and pauses (keep); a timer
//	     │              of its own cuts the work when leave runs out
//	     └─ (bus)       control messages and requests arrive on the bus's goroutines:
//	         │          control messages and pings never wait for work
//	         ├─ share   one at a time: gets ready, waits for go, is measured, stored
//	         │   └─ sample
//	         └─ close   the targets of a run that is over
//
// Run returns when all of them have, with every session and process of every
// target closed.
//
// # Work
//
// An agent calls one target for one unit or share at a time. Whether it may is
// decided in three places, each right before what it allows: enter (is the run
// over, is this from a controller that was replaced), hold (does its controller
// grant leave), Take (is there leave at this moment, and a call of the ration).
//
//	       ┌────────────── given back ◀── stopped, lease over, not storable
//	unit ─▶ claimed ─▶ leave ─▶ began ─▶ worked ─▶ stored ─▶ acknowledged
//	       └─▶ dropped ◀── the run is over
//
// A unit never fails silently: what could not be measured is a result with a
// Failure. What the agent's own stop or the end of its lease has cut is no
// result: the unit goes back to the queue, if it is certainly still this agent's
// to give, and another one measures it whole. A share of a gang has no queue: cut
// by the lease it is published for what it is, cut by the agent's stop it is not
// published, and the gang begins again without this agent.
//
// # Time
//
// Three clocks: the monotonic one and the wall clock together for leases and
// claims (what either says is over is over), and the agent's own, which is never
// stepped, for the start of a gang.
package agent
