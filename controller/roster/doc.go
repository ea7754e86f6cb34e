// Package roster is the live fleet as a controller sees it: who is there, who
// may get work of this build and who may not and why, and how far each agent's
// clock is from the controller's.
//
// In go the fleet registry and the answers to pings; out come members. Nothing
// is sent to an agent here but a ping, and no work is given out.
//
//	registry ── Open ── All, Members, Wait        who fits, who is refused
//	pings    ── Clock ── Reading                  offset ± bound, kept in Member
package roster
