// Package lead holds the lease of a run and speaks for it.
//
//	Create ─┐            ┌─ renew    the record, every third of the TTL, by compare-and-set
//	        ├─ Leader ───┼─ answer   agents that ask for leave to work, calls, pauses
//	Take   ─┘            ├─ obey     an order to halt
//	                     └─ Finish   document, last state, end of the lease
//
// In go the record of a run, orders and requests of agents; out come renewals,
// grants and a context that ends when the run must. It hands out no unit and
// looks into no result.
//
// # Who leads
//
// The record of a run is changed by compare-and-set alone. Whoever takes a run
// over raises its generation in the same write, so one generation has one holder
// for ever, and the write after that of the former holder fails: it is fenced. A
// write whose answer was lost is told from the write of somebody else by the
// claim, a number each holder draws.
//
// A leader is sure of its lead when its last stored renewal was sent less than
// the TTL ago on its monotonic clock, over a connection that has stood since. It
// looks at the moment of answering, never before: a process that was stopped
// and woken, or comes back from a cut, says nothing before it has renewed. While
// not sure it is silent, which is what agents and successors count on.
//
// A successor asks who leads. Three answers are possible:
//
//	an answer      the run is led: refused
//	nobody there   no subscription: the process is gone, its socket closed. Taken
//	               once that has lasted longer than a reconnect takes
//	silence        stopped, hanging or cut off: the record decides. Not renewed for
//	               TTL + 1 s since it was read: taken; renewed: refused
//
// After silence no two leaders are sure at once: the former one's last renewal was
// stored before the successor read the record, hence sent before it, and a lease
// counts from the sending; the second beyond the TTL is for clocks that differ in
// speed. After nobody was there: its connection is gone, so it is not sure until
// it has a new one and has renewed over it, which fails. Two gaps are known. A
// connection that the server has closed and the holder does not miss yet, for
// some seconds (see bus.Link): what it says in that time reaches nobody. And a
// cluster that is cut in two, with the holder on the smaller side: it is taken
// for gone on the larger one, and for the rest of its lease it speaks to the
// agents on its own side; see Inherited below.
//
// A successor subscribes before it writes, and is silent until it is sure.
// Otherwise a second one would find nobody there between the two and take the run
// from it. Two who begin at the same time race for one compare-and-set; the loser
// asks again and gets an answer.
//
// # What agents may do
//
// An agent works under a lease that lasts the granted time from the sending of
// its request. The time granted is what is left of the leader's own lease, so an
// agent's leave ends no later than the lead it came from, whichever way that
// ended: a third of the TTL is the most that it costs. From this follows
//
//   - at most a TTL after a controller has vanished, nothing works for it;
//   - after silence, the successor finds no agent at work under its predecessor;
//   - after nobody was there, agents may work on for the rest of the TTL. Those
//     that can be reached learn of the new generation with the next grant, request
//     or control message, drop the old work and ignore lower generations from then
//     on. One that cannot be reached ends with its lease: [Leader.Inherited] says
//     when. A gang that must have the target to itself waits until then for the
//     agents of the record that do not answer;
//   - a go that a stopped controller sends when it wakes starts nothing: it carries
//     a lower generation, and where that is not known yet the leases are over.
//
// A plain TTL in each grant would bound the time after the last answer as well,
// but a controller that can no longer renew could answer to the end of its
// sureness, and leave work behind that outlasts it by a TTL.
//
// A budget of calls holds over the death of controllers: what may be granted is
// written into the record before it is, a twentieth of the budget at a time, and
// a successor goes on behind that. At most so much of it is lost with each.
//
// The monotonic clock stands still while a machine is suspended. A controller
// that wakes from that may hold itself sure for a moment; its generation
// gives it away.
package lead
