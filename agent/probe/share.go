package probe

import "ordeal/agent/wire"

// share is the part of a stage's operations that a unit works: those in r whose
// index falls, modulo level, into [first, first+workers).
type share struct {
	r                     wire.Range
	level, first, workers uint64
}

// shareOf reads a load unit. One with some of the callers of its level works,
// over the whole stage, the operations that belong to them; one with all of
// them works its own range. In an open loop Level is what the target is told
// about its load, so there the whole stage marks a unit that is not shared; one
// that several agents share is cut by arrivals.
func shareOf(u *wire.Unit) share {
	l := u.Load
	if l.Parts > 1 {
		return share{r: l.Stage, level: uint64(l.Parts), first: uint64(l.Part), workers: 1}
	}
	workers, level := uint64(max(l.Workers, 1)), uint64(max(l.Level, 1))
	part := workers < level && (l.MilliRate <= 0 || u.Ops != l.Stage)
	if part {
		return share{r: l.Stage, level: level, first: uint64(l.FirstWorker), workers: workers}
	}
	return share{r: u.Ops, level: workers, workers: workers}
}

// nth is the k-th operation of the share, ascending in k. ok is false past its
// end, and skip is true for a place before its beginning that holds none.
func (s share) nth(k uint64) (op uint64, skip, ok bool) {
	op = s.r.From - s.r.From%s.level + k/s.workers*s.level + s.first + k%s.workers
	if op >= s.r.To {
		// A later worker's place in the same round may not lie in the range
		// while an earlier one's did; the rounds after it hold none either.
		return 0, false, false
	}
	return op, op < s.r.From, true
}

// stripe is the operations of one worker of a share, counted from 0.
func (s share) stripe(w uint64) share {
	return share{r: s.r, level: s.level, first: s.first + w, workers: 1}
}

// Planned is the number of operations a closed loop by count has to make; 0 where
// a duration or a schedule of arrivals decides.
func Planned(u *wire.Unit) (n int64) {
	if u.Load == nil || u.Load.Duration > 0 || u.Load.MilliRate > 0 {
		return 0
	}
	s := shareOf(u)
	for w := s.first; w < s.first+s.workers; w++ {
		n += int64(upTo(s.r.To, s.level, w) - upTo(s.r.From, s.level, w))
	}
	return n
}

// upTo is how many numbers below end leave the remainder w when divided by level.
func upTo(end, level, w uint64) uint64 {
	if end <= w {
		return 0
	}
	return (end-w-1)/level + 1
}
