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
	inHand := a.inHand()
	a.mu.Unlock()
	a.opt.Log("draining: " + inHand)
	a.tell()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		loops.Wait()
		a.sharing.Wait()
	}()
	if a.opt.Drain > 0 {
		select {
		case <-idle:
		case <-time.After(a.opt.Drain):
			a.opt.Log("the time to drain is over: what is left is given back")
		}
	}
	a.cut()
	<-idle
}

// inHand says what a draining agent holds, which is one unit or share at most,
// and for how long. It is called with mu held.
func (a *Agent) inHand() string {
	if a.hand.unit == "" {
		return "0 in hand"
	}
	return fmt.Sprintf("1 in hand, %v to finish: unit %s of run %s", a.opt.Drain, a.hand.unit, a.hand.run)
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
