// Package agent is the daemon near the target: it pulls units, runs them and
// publishes what was observed. It knows no controller; it knows the wire.
//
// Who starts whom:
//
//	Run ─┬─ heartbeat   renews the entry in the fleet registry
//	     ├─ pull        one unit at a time: run, publish, acknowledge
//	     │   ├─ claim   renews the claim on the unit while it runs
//	     │   └─ report  says how far the unit is
//	     └─ (bus)       control messages and offers of gang shares arrive on the
//	         │          bus's goroutines, which never wait for work
//	         ├─ share   one at a time: gets ready, waits for go, is measured
//	         └─ close   the targets of a released run
//
// Run returns when all of them have, with every session and process of every
// target closed. A unit never fails silently: what could not be measured is a
// result with a Failure. Only what the agent's own stop has cut is no result: the
// unit goes back to the queue, and another agent measures it whole.
package agent
