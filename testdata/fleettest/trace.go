package fleettest

import (
	"maps"
	"sync"
	"time"
)

// Bucket is the width of Trace.Buckets.
const Bucket = 100 * time.Millisecond

// Trace records every call that arrives at a target, answered or refused, on a
// monotonic clock that begins at zero with the target.
type Trace struct {
	began time.Time

	mu       sync.Mutex
	arrivals []time.Duration // in order
	seen     map[string]int
	refused  int
	failed   int
}

func newTrace() *Trace { return &Trace{began: time.Now(), seen: map[string]int{}} }

// arrive takes the clock's reading under the lock, so that arrivals are in
// order.
func (tr *Trace) arrive(operation string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.arrivals = append(tr.arrivals, time.Since(tr.began))
	tr.seen[operation]++
}

// Now reads the trace's clock.
func (tr *Trace) Now() time.Duration { return time.Since(tr.began) }

// At is the reading of the trace's clock at an instant of this process.
func (tr *Trace) At(instant time.Time) time.Duration { return instant.Sub(tr.began) }

// Calls is the number of arrivals.
func (tr *Trace) Calls() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.arrivals)
}

// Last is when the latest call arrived; false if none has.
func (tr *Trace) Last() (time.Duration, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.arrivals) == 0 {
		return 0, false
	}
	return tr.arrivals[len(tr.arrivals)-1], true
}

// Between is the number of calls that arrived from one reading, inclusive, to
// another.
func (tr *Trace) Between(from, to time.Duration) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := 0
	for _, at := range tr.arrivals {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// Rate is the calls a second between two readings. Its resolution is one call:
// telling 0.5 % apart takes 200 calls at the least.
func (tr *Trace) Rate(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return float64(tr.Between(from, to)) / (to - from).Seconds()
}

// Buckets is the number of arrivals in each Bucket, from zero to the last call.
func (tr *Trace) Buckets() []int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var buckets []int
	for _, at := range tr.arrivals {
		for len(buckets) <= int(at/Bucket) {
			buckets = append(buckets, 0)
		}
		buckets[at/Bucket]++
	}
	return buckets
}

// Seen is the number of arrivals of each operation: the message a call brought,
// or all its arguments as they came if they hold no message.
func (tr *Trace) Seen() map[string]int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return maps.Clone(tr.seen)
}

// Repeated is the number of operations that arrived more than once.
func (tr *Trace) Repeated() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	repeated := 0
	for _, n := range tr.seen {
		if n > 1 {
			repeated++
		}
	}
	return repeated
}

// Refused is the number of calls turned away with 429.
func (tr *Trace) Refused() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.refused
}

// Failed is the number of calls answered with the status of Server.Fail.
func (tr *Trace) Failed() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.failed
}

func (tr *Trace) refuse() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.refused++
}

func (tr *Trace) fail() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.failed++
}
