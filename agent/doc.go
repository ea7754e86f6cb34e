// Package agent is the daemon near the target: it pulls units, runs them and
// publishes what was observed. It knows no controller; it knows the wire.
//
// Who starts whom:
//
//	Run ─┬─ heartbeat   renews the entry in the fleet registry
//	     ├─ pull        one unit at a time: run, publish, acknowledge
//	     │   ├─ claim   renews the claim on the unit while it runs
//	     │   └─ report  says how far the unit is
//	     └─ (bus)       control messages and gang shares arrive on the bus's
//	         └─ gang    goroutines; a share waits for go on one of its own
//
// Run returns when all of them have, with every session and process of every
// target closed. A unit never fails silently: what could not be measured is a
// result with a Failure.
package agent
