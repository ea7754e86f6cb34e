package schedule

import (
	"fmt"
	"math"
)

// Burst is a Gilbert–Elliott chain: an epoch is good or bad, a good one is
// followed by a bad one with chance Enter, a bad one by a good one with chance
// Leave. The mean burst lasts 1/Leave epochs and the share of bad epochs is
// Enter/(Enter+Leave).
type Burst struct {
	Enter PPB `json:"enter_ppb"`
	Leave PPB `json:"leave_ppb"`
	// Span is the number of operations that make one epoch; 0 means 1.
	Span uint64 `json:"span,omitempty"`
}

// maxWalk bounds the expected walk of Bad, 1/(Enter+Leave) epochs.
const maxWalk = 10_000

// Validate refuses chances above 1, chains that are practically stuck, and an
// Enter above 1-Leave: good and bad would then alternate, the opposite of
// bursts.
func (b Burst) Validate() error {
	switch enter, leave := uint64(b.Enter), uint64(b.Leave); {
	case enter > uint64(One) || leave > uint64(One):
		return fmt.Errorf("burst: enter %d and leave %d are parts per %d", b.Enter, b.Leave, One)
	case enter+leave > uint64(One):
		return fmt.Errorf("burst: enter %v is above 1 - leave %v, epochs would alternate; lower one of them", b.Enter, b.Leave)
	case enter == 0 || leave == 0:
		return fmt.Errorf("burst: enter %v and leave %v must both be above 0, or the state never changes", b.Enter, b.Leave)
	case (enter+leave)*maxWalk < uint64(One):
		return fmt.Errorf("burst: enter %v and leave %v together are below 1/%d; use longer epochs", b.Enter, b.Leave, maxWalk)
	}
	return nil
}

// Bad reports whether an epoch is bad, as a pure function of (stream, rule,
// epoch). One draw U per epoch decides for both states: U < Enter ends bad,
// U >= 1-Leave ends good, anything between keeps the state. So the state is
// that of the latest epoch whose draw did decide, and looking for it backwards
// is an exact sample of the stationary chain (coupling from the past) without a
// history to share. Epochs may be negative: the chain has no start. b must be
// valid; the expected walk is 1/(Enter+Leave) epochs.
func (b Burst) Bad(s Stream, rule RuleKey, epoch int64) bool {
	for {
		u := Below(s.Draw(rule, uint64(epoch), 0, LaneBurst), uint64(One))
		if u < uint64(b.Enter) {
			return true
		}
		if u >= uint64(One-b.Leave) {
			return false
		}
		epoch-- // wraps at the lowest epoch, which costs nothing but elegance
	}
}

func (b Burst) epoch(op uint64) int64 { return int64(op / max(1, b.Span)) }

// Floor returns the share of operations disrupted by a burst that an ideal
// caller recovers, when bad epochs fault every call and retry k comes delays[k]
// epochs after the attempt before it:
//
//	1 - Π (π + (1-π) λ^delay),  π = Enter/(Enter+Leave),  λ = 1-Enter-Leave
//
// It is 0 for immediate retries, where the formula for independent faults
// promises nearly everything.
func (b Burst) Floor(delays ...int) float64 {
	enter, leave := b.Enter.Float(), b.Leave.Float()
	bad, lambda := enter/(enter+leave), 1-enter-leave
	lost := 1.0
	for _, d := range delays {
		lost *= bad + (1-bad)*math.Pow(lambda, float64(d))
	}
	return 1 - lost
}
