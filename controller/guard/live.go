package guard

import (
	"fmt"
	"time"

	"ordeal/metrics"
)

// DefaultMinCalls is how many calls a window must hold before its condition may
// trip: one failure among the first three calls is no error rate of a third.
const DefaultMinCalls = 20

// Sample is what one agent saw in one interval, and in no other sample. What
// the run's own faults did to a call is left out by the caller: a chaos run
// would stop for what it came to do.
type Sample struct {
	Outcomes metrics.Counts
	Latency  metrics.Dist // successes, µs
}

// Live holds the latest samples of a run, merged over all agents, and evaluates
// conditions on them. Percentiles are those of the merged distribution.
//
// Memory is bounded whatever the number of agents and calls: each distinct
// window is a ring of at most 24 slots, and a slot takes at most 190 KB (about
// 30 KB is usual), nothing of that for latencies unless a condition needs them.
type Live struct {
	rules    []rule
	rings    []*ring
	minCalls int64
}

type rule struct {
	Condition
	gauge
	ring *ring
}

// NewLive watches the given conditions. minCalls is the number of calls a window
// must hold for a condition on it to trip; 0 means DefaultMinCalls.
func NewLive(conditions []Condition, minCalls int64) *Live {
	l := &Live{minCalls: minCalls}
	if minCalls <= 0 {
		l.minCalls = DefaultMinCalls
	}
	for _, c := range conditions {
		if g, ok := gaugeNamed(c.metric); ok {
			r := l.ring(c.window)
			r.latency = r.latency || !g.rate()
			l.rules = append(l.rules, rule{c, g, r})
		}
	}
	return l
}

func (l *Live) ring(window time.Duration) *ring {
	for _, r := range l.rings {
		if r.window == window {
			return r
		}
	}
	r := newRing(window)
	l.rings = append(l.rings, r)
	return r
}

// Add merges a sample whose interval ended at the given time, on the clock of
// Check: a stamp of an agent's that is not mapped to it is better replaced by the
// time of receipt. A late sample counts where it belongs while its window still
// looks back that far. The sample counts as a whole at the end of its interval,
// so a window is as blurred at its edges as intervals are long.
func (l *Live) Add(at time.Duration, s Sample) {
	for _, r := range l.rings {
		r.add(max(at, 0), &s)
	}
}

// Check evaluates every condition over the window that ends now and reports the
// first, in the order given, that trips. A condition waits until the run is older
// than its window and the window holds enough calls: measured ones for a rate,
// successes for a latency. A percentile of few calls is their slowest (p99 of
// less than 100, p95 of less than 20).
func (l *Live) Check(now time.Duration) (Tripped, bool) {
	for _, r := range l.rings {
		r.looked = false
	}
	for _, r := range l.rules {
		if now < r.window {
			continue
		}
		value, n := r.read(r.ring.last(now), !r.orEqual)
		if n >= l.minCalls && r.exceeded(value) {
			return Tripped{Condition: r.Condition, Value: value, N: n}, true
		}
	}
	return Tripped{}, false
}

// Tripped is a condition that holds, and what it holds on.
type Tripped struct {
	Condition Condition
	Value     int64 // parts per 10^9 of a rate, µs of a latency (0.1 % above 8,192 calls)
	N         int64 // calls: measured ones of a rate, successes of a latency
}

// String is the reason in one line: stop: error_rate 0.62 > 0.5 over 10s (n=1240).
// A rate has two decimals, or as many as it takes to show that it is past the
// limit.
func (t Tripped) String() string {
	c := t.Condition
	return fmt.Sprintf("stop: %s %s %s %s over %s (n=%d)", c.metric, t.value(), c.op(), c.shown(c.limit), duration(c.window), t.N)
}

func (t Tripped) value() string {
	if g, _ := gaugeNamed(t.Condition.metric); !g.rate() {
		return t.Condition.shown(t.Value)
	}
	unit := int64(10_000_000)
	for places := 2; places < decimals; places, unit = places+1, unit/10 {
		if rounded := (t.Value + unit/2) / unit * unit; t.Condition.exceeded(rounded) {
			return t.Condition.text(rounded, places)
		}
	}
	return t.Condition.shown(t.Value)
}
