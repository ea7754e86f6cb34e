package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	// domain separates these hashes from any other use of the same texts.
	domain = "chaos/v1"
	// layoutVersion is the last counter word. It changes with any change of
	// what the other words mean, so that old digests fail loudly.
	layoutVersion = 1
)

// Stream is the source of all draws of one seed: an immutable key. It has no
// position; a draw is looked up by its coordinates, and any number of
// goroutines on any number of machines may do so.
type Stream struct {
	key [2]uint64
}

// New returns the stream of a seed. Any text is a seed; "42" and "042" are two.
func New(seed string) Stream {
	sum := sha256.Sum256([]byte(domain + "\x00seed\x00" + seed))
	return Stream{key: [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}}
}

// RuleKey is the counter word of a rule id. Whoever draws under an id of its
// own, a mock target for its latency as well as a fault rule, is independent of
// everybody else and stays so when others come and go.
type RuleKey uint64

// KeyOf hashes a rule id. It is meant to be called once per rule, not per draw.
func KeyOf(id string) RuleKey {
	sum := sha256.Sum256([]byte(domain + "\x00rule\x00" + id))
	return RuleKey(binary.BigEndian.Uint64(sum[:]))
}

// Lane numbers the independent uses of one (rule, operation, attempt). Lanes
// below 16 belong to this package; other packages number theirs from 16 on.
type Lane = uint32

const (
	LaneFire    Lane = 0 // does the rule fire?
	LaneKind    Lane = 1 // which of its kinds
	LaneDelay   Lane = 2 // how long, where a fault takes time
	LaneCut     Lane = 3 // where a body is cut
	LanePayload Lane = 4 // which of several damages
	LanePlace   Lane = 5 // place of an operation in a permutation
	LaneBurst   Lane = 7 // state of a burst, by epoch
)

// Block returns four independent uniform words at a coordinate.
func (s Stream) Block(op uint64, attempt uint32, lane Lane, rule RuleKey) [4]uint64 {
	return philox([4]uint64{op, uint64(attempt)<<32 | uint64(lane), uint64(rule), layoutVersion}, s.key)
}

// Draw returns the first word of the block at a coordinate.
func (s Stream) Draw(rule RuleKey, op uint64, attempt uint32, lane Lane) uint64 {
	return s.Block(op, attempt, lane, rule)[0]
}

// Below maps a uniform word to 0..n-1 by the high word of a 128-bit product; 0
// when n is 0. No value's chance is off by more than 2^-64, which for every n
// of ours is far below what any run could notice.
func Below(w, n uint64) uint64 {
	hi, _ := bits.Mul64(w, n)
	return hi
}

// Hit reports whether a uniform word falls under a rate.
func Hit(w uint64, rate PPB) bool { return Below(w, uint64(One)) < uint64(rate) }

// Between maps a uniform word to the integers lo..hi, both included: a base
// latency in microseconds with its jitter is Between(w, base-jitter,
// base+jitter). It panics when lo is above hi.
func Between(w uint64, lo, hi int64) int64 {
	if lo > hi {
		panic(fmt.Sprintf("schedule: no integer between %d and %d", lo, hi))
	}
	n := uint64(hi) - uint64(lo) + 1
	if n == 0 { // the whole range of int64
		return int64(w)
	}
	return int64(uint64(lo) + Below(w, n))
}

// FromTable maps a uniform word to a value of the distribution whose quantiles
// at 0, 1/(m-1), ... 1 are the m entries of table, in ascending order, straight
// lines between them. It is how a long-tailed duration is drawn without
// floating point: the table holds microseconds. It panics on an empty table.
func FromTable(w uint64, table []int64) int64 {
	if len(table) == 1 {
		return table[0]
	}
	cell, rest := bits.Mul64(w, uint64(len(table)-1))
	lo, hi := table[cell], table[cell+1]
	step, _ := bits.Mul64(rest, uint64(hi-lo)+1)
	return lo + int64(step)
}
