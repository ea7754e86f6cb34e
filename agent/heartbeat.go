package agent

import (
	"context"
	"runtime"
	"time"

	"ordeal/agent/probe"
	"ordeal/agent/wire"
)

// beatAgain is how soon a beat that failed is tried again: the registry may not
// exist yet, or the server may be away for a moment.
const beatAgain = 500 * time.Millisecond

// heartbeat renews the agent's entry in the registry. A missed beat is not an
// error: the registry keeps an entry for three of them.
func (a *Agent) heartbeat(ctx context.Context) {
	m := meter{at: time.Now(), cpu: probe.CPUTime()}
	for ctx.Err() == nil {
		wait := wire.Heartbeat
		if a.beat(ctx, &m) != nil {
			wait = beatAgain
		}
		for _, r := range a.runs.idle(time.Now()) {
			a.close(r)
		}
		a.rest(ctx, wait)
	}
}

// beat sends one.
func (a *Agent) beat(ctx context.Context, m *meter) error {
	ctx, cancel := context.WithTimeout(ctx, wire.Heartbeat)
	defer cancel()
	return a.announce(ctx, m.milli(time.Now()))
}

// rest waits for the next beat, or for something to say before it.
func (a *Agent) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-a.news:
	case <-timer.C:
	}
}

// meter measures how much of the machine the process uses.
type meter struct {
	at    time.Time
	cpu   time.Duration
	share int64
}

// milli is the CPU used since the last beat, in thousandths of one core. Two
// beats in one moment say the same.
func (m *meter) milli(now time.Time) int64 {
	passed := now.Sub(m.at)
	if passed < beatAgain {
		return m.share
	}
	cpu := probe.CPUTime()
	m.share = int64((cpu - m.cpu) * 1000 / passed)
	m.at, m.cpu = now, cpu
	return m.share
}

// cores is how many the process may use at once.
func cores() int { return runtime.GOMAXPROCS(0) }
