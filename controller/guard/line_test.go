package guard

import (
	"fmt"
	"testing"
	"time"
)

// TestQuotaWaitIsHonest: an agent that waits as told gets its tokens.
func TestQuotaWaitIsHonest(t *testing.T) {
	for _, rate := range []float64{0.3, 1, 7, 100, 12_345} {
		q := NewQuota(0)
		q.Seen(0, Signal{Rate: 2 * rate})
		for now, i := time.Duration(0), 0; i < 100; i++ {
			n, wait := q.Grant(now, "a", 1_000_000)
			if n > 0 {
				continue
			}
			now += wait
			if n, again := q.Grant(now, "a", 1_000_000); n == 0 {
				t.Fatalf("at %v/s: waited %v and is told to wait %v more", rate, wait, again)
			}
		}
	}
}

// queue runs agents that ask as soon as they may, each with its own delay, for a
// minute; it returns what each got.
func queue(rate float64, delays []time.Duration, wants []int64) []int64 {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: second, Limit: int64(rate), Window: second})
	due, got := make([]time.Duration, len(delays)), make([]int64, len(delays))
	for now := time.Duration(0); now < 61*second; now += time.Millisecond {
		for i := range delays {
			if now < due[i] {
				continue
			}
			n, wait := q.Grant(now, fmt.Sprint(i), wants[i])
			got[i] += n
			due[i] = now + wait + delays[i]
		}
	}
	return got
}

// TestQuotaFairness: agents that ask equally get equally, near or far, and one
// that hammers gets no more.
func TestQuotaFairness(t *testing.T) {
	for _, rate := range []float64{10, 100, 5000} {
		for _, far := range []time.Duration{0, 5, 20} {
			delays, wants := make([]time.Duration, 16), make([]int64, 16)
			for i := range delays {
				delays[i], wants[i] = time.Millisecond*time.Duration(1+i%2*int(far)), 100
			}
			checkEqual(t, fmt.Sprintf("rate %v, every second agent %v ms away", rate, int(far)), queue(rate, delays, wants), rate)
		}
	}
}

func checkEqual(t *testing.T, name string, got []int64, rate float64) {
	t.Helper()
	least, most, sum := got[0], got[0], int64(0)
	for _, n := range got {
		least, most, sum = min(least, n), max(most, n), sum+n
	}
	if float64(most) > 1.3*float64(least)+2 {
		t.Errorf("%s: between %d and %d", name, least, most)
	}
	if total := 0.95 * rate * 60; float64(sum) < 0.97*total {
		t.Errorf("%s: %d of %.0f handed out", name, sum, total)
	}
}

// TestQuotaModestAgentGetsWhatItWants: one call every two seconds, a second late for
// each turn, although others want all there is.
func TestQuotaModestAgentGetsWhatItWants(t *testing.T) {
	delays := []time.Duration{time.Second, time.Millisecond, time.Millisecond, time.Millisecond}
	got := queue(100, delays, []int64{1, 1000, 1000, 1000})
	if got[0] < 29 {
		t.Errorf("an agent that asks for one call every two seconds got %d in a minute: %v", got[0], got)
	}
}

// TestQuotaTurnIsAShareAtMost: the first to find a full bucket does not empty it.
func TestQuotaTurnIsAShareAtMost(t *testing.T) {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: second, Limit: 100, Window: second})
	for now := second; now < 3*second; now += time.Millisecond {
		for i := range 4 {
			q.Grant(now, fmt.Sprint(i), 1)
		}
	}
	if n, _ := q.Grant(4500*time.Millisecond, "0", 100); n != 6 {
		t.Errorf("%d granted of a bucket of 23.75 for four, want 6", n)
	}
}

// TestQuotaForgetsTheLost: agents that never come back for their turn cost the
// others a second.
func TestQuotaForgetsTheLost(t *testing.T) {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: second, Limit: 100, Window: second})
	for i := range 500 { // their turns would last for 5 s
		q.Grant(500*time.Millisecond, fmt.Sprint("lost", i), 10)
	}
	got, due := int64(0), time.Duration(0)
	for now := second; now < 20*second; now += time.Millisecond {
		if now < due {
			continue
		}
		n, wait := q.Grant(now, "alive", 10)
		if due = now + wait; now >= 10*second {
			got += n
		}
	}
	if got < 900 {
		t.Errorf("the survivor got %d in 10 s at 95/s", got)
	}
	if len(q.line.turns) > 1 || len(q.line.visits) > 1 {
		t.Errorf("%d turns and %d agents remembered", len(q.line.turns), len(q.line.visits))
	}
}

// TestQuotaTurnsAfterPause: agents that ask in a pause are told different times,
// in the order in which they asked.
func TestQuotaTurnsAfterPause(t *testing.T) {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: 5 * second, Limit: 100, Window: second})
	last := 5*second - 1
	for i := range 16 {
		_, wait := q.Grant(second, fmt.Sprint(i), 1)
		if due := second + wait; due <= last {
			t.Errorf("agent %d is due at %v, the one before it at %v", i, due, last)
		} else {
			last = due
		}
	}
	if most := 5*second + 200*time.Millisecond; last > most {
		t.Errorf("the last turn is at %v, want %v at most", last, most)
	}
}

// BenchmarkQuotaGrant is a fleet of 1,000 agents in line.
func BenchmarkQuotaGrant(b *testing.B) {
	q := NewQuota(0)
	q.Seen(0, Signal{RetryAfter: time.Millisecond, Limit: 1000, Window: second})
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("agent-", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		q.Grant(time.Duration(i)*time.Millisecond, names[i%1000], 10)
		i++
	}
}
