package agent

import (
	"fmt"
	"sync"
	"time"
)

// drain lets go of what is in hand: nothing new is taken; what there is may go on
// for Options.Drain, and is cut and given back then. It returns once all of it is
// published or given back.
//
//	working ──ctx ends──▶ draining ──all done, or Drain is over──▶ cut ──▶ gone
func (a *Agent) drain(loops *sync.WaitGroup) {
	a.mu.Lock()
	a.draining = true
	hand := a.hand
	a.mu.Unlock()
	a.tell()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		loops.Wait()
		a.sharing.Wait()
	}()
	if a.opt.Drain > 0 {
		if hand.unit != "" {
			a.opt.Log(fmt.Sprintf("draining: unit %s of run %s has %v to finish", hand.unit, hand.run, a.opt.Drain))
		}
		select {
		case <-idle:
		case <-time.After(a.opt.Drain):
			a.opt.Log("the time to drain is over: what is left is given back")
		}
	}
	a.cut()
	<-idle
}

// cut ends what is in hand.
func (a *Agent) cut() {
	a.runs.stop(ErrStopped)
	close(a.stopped)
}

// tell has the registry know at once.
func (a *Agent) tell() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}
