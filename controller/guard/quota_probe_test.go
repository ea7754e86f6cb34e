package guard

import (
	"testing"
	"time"
)

// The first call of a run may be refused before anybody knows how fast the fleet
// sends: it must find a rate within seconds, not hours.
func TestQuotaFindsAnUnknownRate(t *testing.T) {
	q := NewQuota(0)
	q.Seen(100*time.Millisecond, Signal{RetryAfter: time.Second})
	granted, refused := int64(0), 0
	tokens, last := 20.0, time.Duration(0) // the target's own bucket: 20 calls/s
	for now := 1100 * time.Millisecond; now < 21*time.Second; now += 10 * time.Millisecond {
		tokens = min(20, tokens+20*(now-last).Seconds())
		last = now
		n, _ := q.Grant(now, "a", 4)
		for range n {
			granted++
			if tokens >= 1 {
				tokens--
				continue
			}
			refused++
			q.Seen(now, Signal{RetryAfter: time.Second, Rate: 20})
		}
	}
	if granted < 200 || refused > 15 {
		t.Errorf("%d calls granted in 20 s, %d refused; want at least half of 400 and few refusals", granted, refused)
	}
}
