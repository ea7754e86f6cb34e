package fleettest

import (
	"sync"
	"time"
)

// tokens is a token bucket. Its zero value lets everything pass.
type tokens struct {
	mu    sync.Mutex
	rate  float64 // a second; 0 is no limit
	burst float64
	left  float64
	at    time.Time
}

func (b *tokens) set(rate float64, burst int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rate, b.burst, b.left, b.at = rate, float64(burst), float64(burst), now
}

// take takes a token, or says how long it will be until there is one.
func (b *tokens) take(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate == 0 {
		return 0, true
	}
	b.left = min(b.burst, b.left+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	if b.left >= 1 {
		b.left--
		return 0, true
	}
	return time.Duration((1 - b.left) / b.rate * float64(time.Second)), false
}
