package guard

import (
	"math"
	"time"
)

const (
	burstTime = 250 * time.Millisecond // of the rate, which the bucket holds
	perShare  = 16                     // slices of an agent's share of the bucket
)

// bucket holds the tokens of the fleet.
type bucket struct {
	tokens float64
	last   time.Duration // up to when it is filled
}

// burst is the size of the bucket at a rate in calls/s.
func burst(rate float64) float64 { return max(1, rate*burstTime.Seconds()) }

// fill adds what flows in at a rate; a bucket made for a higher rate spills.
func (b *bucket) fill(rate, seconds float64) {
	b.tokens = min(b.tokens+rate*seconds, burst(rate))
}

// untilHalf is how long the bucket will be less than half full if nobody takes
// from it.
func (b *bucket) untilHalf(rate float64) time.Duration {
	return seconds(max(0, burst(rate)/2-b.tokens) / rate)
}

// seconds is a duration of at most 292 years.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// portion is what a turn of one of so many agents is worth: a sixteenth of its share
// of the bucket, so that the fleet does not call in bursts, and what flowed for it
// while it was away; its share of the bucket at most. It is rounded up: the line,
// not the portion, keeps the fleet to the rate.
func portion(rate float64, agents int, away time.Duration) int64 {
	share := burst(rate) / float64(max(1, agents))
	flowed := rate / float64(max(1, agents)) * away.Seconds()
	return max(1, int64(math.Ceil(min(share/perShare+flowed, share))))
}
