// Package probe works units: one executor per kind of unit, one file per
// executor.
//
// In goes a wire.Unit and a connected target; out comes a wire.Result with what
// was observed: tallies, trajectories, a survey, the fate of malformed calls.
// Nothing here judges: what is good or bad is the policy's business. A failure
// of the target is data; a unit that could not be worked at all says why in
// Result.Failure. No call is repeated unless repeating is what is measured.
//
//	Run ─┬─ survey      who is there, what does it offer
//	     ├─ preflight   one call with the chosen arguments
//	     ├─ oracle      the target's state, counted by operation id
//	     ├─ load        closed loop: workers; open loop: pacer ─▶ slots; calls, or a workload
//	     ├─ recovery    each operation until it succeeds, one after the other
//	     └─ contract    malformed calls, a control before each
//
// Goroutines of a load (whoever starts one waits for it):
//
//	Run ─ closed loop ─▶ one per worker, each with session, clock and book of its own
//	    ├ open loop ───▶ pacer (a timer of the kernel) ─▶ at most MaxInFlight slots,
//	    │                the one idle last first; as many books as calls end at once
//	    └ meter ───────▶ one that looks twice a second whether the generator keeps up
//
// A panic in any of them fails the unit and ends the others. Each call to the
// target is made by leave of the agent, asked for right before it: see Leave.
//
// A book is added to the unit's tally every few hundred calls, so memory does not
// grow with the number of calls and the calls themselves meet no lock. A call is
// counted under the moment it was due, or in a closed loop begun: in the tally when
// that is in the measured part, in its period always. What the system refused the
// generator, a descriptor or a port, is no failure of the target.
//
// Operations and draws do not know about agents: which operation a worker of a
// virtual target makes depends on its number in the level alone, so the merged
// result of any split is the result of one agent, byte for byte. On a real
// target workers of one unit take the next operation off a shared counter,
// because there a slow call must not hold back the calls behind it.
package probe
