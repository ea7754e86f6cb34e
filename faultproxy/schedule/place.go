package schedule

import "math/bits"

// placeRounds is twice the four rounds that make a Feistel network a
// pseudo-random permutation (Luby and Rackoff 1988), because windows are often
// so small that the halves have two or three bits.
const placeRounds = 8

// place returns the position of index i, 0 <= i < n, in a permutation of 0..n-1
// drawn by the rule: a Feistel network over the next even number of bits,
// walked until it lands inside (at most four steps on average). Like every
// other draw it needs no table and no agreement among agents; "the first m
// places" are exactly m operations, wherever they are asked for.
func place(s Stream, rule RuleKey, i, n uint64) uint64 {
	half := (bits.Len64(n-1) + 1) / 2
	mask := uint64(1)<<half - 1
	for {
		left, right := i>>half, i&mask
		for round := range uint32(placeRounds) {
			left, right = right, left^s.Draw(rule, right, round, LanePlace)&mask
		}
		if i = left<<half | right; i < n {
			return i
		}
	}
}
