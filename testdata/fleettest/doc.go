// Package fleettest gives tests a fleet to break: nats-servers, agents and scans
// that are processes of their own, a cable between them that can be cut, a target
// that keeps a trace of every call, a disk that really fills and cores that are
// really busy.
//
//	scan ──┐                                ┌── agent ── MCPServer (trace)
//	       ├── Cut ── NATS (SmallDisk) ── Cut ┤
//	scan ──┘                                └── agent      HogCPU
//
// Whatever a function here starts ends with the test that asked for it, and with
// the test process, should that die first: children bear a parent-death signal,
// the small disk's mount lives in a namespace of its own. When the test fails, the
// tails of all logs are printed. Helpers end the test themselves where they
// cannot do their work, so call them from the test's own goroutine.
//
// Linux only. Ports come from below the ephemeral range, and stay the same over
// a restart.
package fleettest
