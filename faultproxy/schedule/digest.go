package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"
)

// Digest returns the SHA-256, in hex, of the decisions on the operations
// from <= op < to, attempts 0 to attempts-1 of each in turn, one byte per
// decision: the number of its kind. Two schedules of one digest inject the same
// faults there.
func (s *Schedule) Digest(from, to uint64, attempts uint32) string {
	h := sha256.New()
	line := make([]byte, attempts)
	for op := from; op < to; op++ {
		for attempt := range attempts {
			line[attempt] = byte(s.At(op, attempt).Kind)
		}
		h.Write(line)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Digest returns the SHA-256, in hex, of a fixed set of draws and decisions:
// words of every lane at coordinates that use all bits, mapped integers, kinds,
// windows and bursts. An agent sends it when it joins; one that computes
// another value would inject other faults under the same seed and is refused. It
// takes milliseconds the first time and nothing afterwards.
func Digest() string { return ownDigest() }

var ownDigest = sync.OnceValue(digest)

func digest() string {
	h := sha256.New()
	for _, seed := range []string{"", "42", "déjà vu"} {
		stream := New(seed)
		for _, op := range []uint64{0, 1, 1<<40 + 7, 1<<64 - 1} {
			for _, lane := range []Lane{LaneFire, LaneKind, LaneDelay, LaneCut, LanePayload, LaneBurst, 1<<32 - 1} {
				h.Write(probeWords(stream.Block(op, uint32(op>>20), lane, KeyOf("probe"))))
			}
		}
	}
	h.Write([]byte(probeSchedule().Digest(0, 3_000, 3)))
	return hex.EncodeToString(h.Sum(nil))
}

// probeWords lays out a block and what the integer mappings make of it.
func probeWords(block [4]uint64) []byte {
	var out []byte
	for _, w := range block {
		out = binary.BigEndian.AppendUint64(out, w)
	}
	out = binary.BigEndian.AppendUint64(out, Below(block[1], uint64(One)))
	out = binary.BigEndian.AppendUint64(out, uint64(Between(block[2], -70, 1_000_000)))
	return binary.BigEndian.AppendUint64(out, uint64(FromTable(block[3], []int64{1_000, 2_000, 50_000, 9_000_000})))
}

// probeSchedule uses every feature of a rule.
func probeSchedule() *Schedule {
	s, err := Build("probe", []Rule{
		{ID: "outage", Kinds: []Kind{ConnectionRefused}, RatePPB: One, From: 1_000, To: 1_050},
		{ID: "bursts", Kinds: []Kind{RateLimit, ServerError}, RatePPB: 900_000_000, Burst: &Burst{Enter: 20_000_000, Leave: 200_000_000, Span: 3}},
		{ID: "placed", Kinds: []Kind{Timeout, Malformed}, RatePPB: 250_000_000, From: 500, To: 600, Exactly: 37},
		{ID: "noise", Kinds: append(DefaultKinds(), ResponseLost), RatePPB: 200_000_000},
	})
	if err != nil {
		panic(err) // the rules above are constant
	}
	return s
}
