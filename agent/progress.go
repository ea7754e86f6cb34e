package agent

import (
	"sync"
	"time"

	"ordeal/agent/wire"
)

// progressEvery is how often a running unit says how far it is.
const progressEvery = 200 * time.Millisecond

// reporter publishes how far a unit is, every progressEvery while that changes:
// the executor tells it as often as it likes, and what it said last is said.
func (a *Agent) reporter(u *wire.Unit) (report func(done, errs int64), stop func()) {
	var mu sync.Mutex
	p := wire.Progress{Stage: u.Stage, Unit: u.ID, Agent: a.opt.ID}
	said := p
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			mu.Lock()
			now := p
			mu.Unlock()
			if now != said {
				said = now
				_ = a.bus.PublishProgress(u.Run, now) // for display only
			}
		}
	}()
	report = func(done, errs int64) {
		mu.Lock()
		defer mu.Unlock()
		p.Done, p.Errors = done, errs
	}
	return report, func() { close(ended); <-gone }
}
