// Package schedule decides which attempt of which operation meets which fault,
// as a pure function of a seed and the rules.
//
// In goes (seed, rules) once and (operation, attempt) per question; out comes a
// Decision. Nothing here injects, waits, reads a clock, keeps a position or
// uses floating point in a draw. So the schedule is the same on one agent or
// five hundred, in any order of asking, on any processor, and for a unit of
// work that is issued a second time.
//
// # The draw
//
//	key   = first 128 bits of SHA-256("chaos/v1" 00 "seed" 00 seed)
//	rule  = first  64 bits of SHA-256("chaos/v1" 00 "rule" 00 rule id)
//	block = Philox4x64-10(counter = [operation, attempt<<32 | lane, rule, 1], key)
//
// One rule on one attempt asks, in this order:
//
//	lane 0  fires?       high word of w × 10^9 below the rate in parts per 10^9
//	lane 5  placed?      instead of lane 0 on first attempts, if the rule says Exactly
//	lane 7  burst?       only if the rule has one; by epoch, not by attempt
//	lane 1  which kind   equal shares of the rule's kinds, in the order of Kind
//	lane 2  how long     ┐
//	lane 3  where to cut ├ words for the proxy, which draws nothing itself
//	lane 4  what damage  ┘
//
// Lanes and rules are coordinates, not positions in a sequence: a new lane or a
// new rule shifts no other draw. The words are frozen as vectors in testdata.
//
// # Operation numbers
//
// Every pass of a run over the same numbers needs rule ids of its own (ForPass),
// and every other user of a Stream an id of its own (KeyOf).
package schedule
