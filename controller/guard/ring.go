package guard

import (
	"time"

	"ordeal/metrics"
)

// A window is divided into 20 slots, but none shorter than 100 ms: agents report
// every 200 ms or more. It is looked at in whole slots, so it reaches back up to
// one slot further than written.
const (
	slotsPerWindow = 20
	minSlot        = 100 * time.Millisecond
	spareSlots     = 2 // for samples stamped a little ahead
)

// seen is the sum of some samples.
type seen struct {
	outcomes metrics.Counts
	latency  metrics.Dist
}

func (s *seen) reset() {
	clear(s.outcomes)
	s.latency.Reset()
}

// merge ignores counts that are not positive: no delta has any.
func (s *seen) merge(outcomes metrics.Counts, latency *metrics.Dist) {
	for o, n := range outcomes {
		if n > 0 {
			s.outcomes[o] += n
		}
	}
	s.latency.Merge(latency)
}

// slot holds the samples of one stretch of time: number epoch since the start.
type slot struct {
	epoch int64
	seen
}

// ring holds the slots of one window. A slot is emptied when the time comes
// round to it again, so nothing has to be called as time passes.
type ring struct {
	window, width time.Duration
	latency       bool // some condition needs latencies
	slots         []slot
	sum           seen // of the window, as last looked at
	looked        bool // sum is of this Check
}

func newRing(window time.Duration) *ring {
	r := &ring{window: window, width: max(minSlot, window/slotsPerWindow)}
	whole := int((window + r.width - 1) / r.width)
	r.slots = make([]slot, whole+1+spareSlots)
	for i := range r.slots {
		r.slots[i] = slot{epoch: -1, seen: seen{outcomes: metrics.Counts{}}}
	}
	r.sum.outcomes = metrics.Counts{}
	return r
}

func (r *ring) epoch(at time.Duration) int64 { return int64(at / r.width) }

func (r *ring) add(at time.Duration, s *Sample) {
	e := r.epoch(at)
	sl := &r.slots[e%int64(len(r.slots))]
	switch {
	case sl.epoch > e:
		return // too late: the window has left this time behind
	case sl.epoch < e:
		sl.epoch = e
		sl.reset()
	}
	if r.latency {
		sl.merge(s.Outcomes, &s.Latency)
		return
	}
	sl.merge(s.Outcomes, nil)
}

// last is the sum of the slots that overlap the window before now.
func (r *ring) last(now time.Duration) *seen {
	if r.looked {
		return &r.sum
	}
	r.looked = true
	r.sum.reset()
	from, to := r.epoch(max(0, now-r.window)), r.epoch(now)
	for i := range r.slots {
		if sl := &r.slots[i]; sl.epoch >= from && sl.epoch <= to {
			r.sum.merge(sl.outcomes, &sl.latency)
		}
	}
	return &r.sum
}
