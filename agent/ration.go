package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ordeal/agent/wire"
)

const (
	// sliceTime is how long the calls of one ask should last, at the pace of the
	// calls before; the next ones are asked for when half of them are left.
	sliceTime = 500 * time.Millisecond
	// askAgain is the least wait after an ask that brought nothing.
	askAgain = 5 * time.Millisecond
)

// spentError says that no call will be granted any more.
type spentError struct{ why string }

func (e *spentError) Error() string { return "no further calls: " + e.why }

// ration is the calls that an agent may make for a run.
//
//	unmetered ──Control{quota}, Grant.Metered──▶ metered: granted calls only, first come, first served
//	     ◀──────────a grant that is not─────────────┘
//
// While unmetered a call costs one atomic load.
type ration struct {
	metered atomic.Bool
	dry     atomic.Bool // metered, and nothing is left
	pause   atomic.Pointer[pause]
	poke    func() // says that there is something to ask for

	mu        sync.Mutex
	epoch     uint64 // rises with each pause: grants asked for before it are void
	left      int64
	low       int64 // from here on more is asked for
	used      int64 // since the last ask
	asked     time.Time
	notBefore time.Time // the controller knows that nothing can be had earlier
	missed    bool      // somebody would have taken one
	spent     string    // why no more will be granted
	queue     []chan error
}

// pause is a stop that the fleet agreed on.
type pause struct {
	number uint64
	end    time.Time
}

// take waits for a call.
func (r *ration) take(ctx context.Context) error {
	r.mu.Lock()
	switch {
	case !r.metered.Load():
		r.mu.Unlock()
		return nil
	case r.left > 0 && len(r.queue) == 0:
		r.use()
		r.mu.Unlock()
		return nil
	case r.left == 0 && r.spent != "":
		defer r.mu.Unlock()
		return &spentError{r.spent}
	}
	turn := make(chan error, 1)
	r.queue = append(r.queue, turn)
	r.mu.Unlock()
	r.poke()
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
		r.leave(turn)
		return context.Cause(ctx)
	}
}

// use takes one of the calls that are left. mu is held, as in all that follows
// without taking it.
func (r *ration) use() {
	r.left--
	r.used++
	r.dry.Store(r.left == 0)
	if r.left == r.low {
		r.poke()
	}
}

// leave gives up a place in the queue, or the call that came meanwhile.
func (r *ration) leave(turn chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.queue, turn); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
		return
	}
	if err := <-turn; err == nil && r.metered.Load() {
		r.left++
		r.used--
		r.serve()
	}
}

// serve lets go on whoever may.
func (r *ration) serve() {
	n := 0
	for ; n < len(r.queue); n++ {
		var err error
		switch {
		case !r.metered.Load():
		case r.left > 0:
			r.use()
		case r.spent != "":
			err = &spentError{r.spent}
		default:
			r.queue = slices.Delete(r.queue, 0, n)
			r.dry.Store(true)
			return
		}
		r.queue[n] <- err
	}
	r.queue = nil
	r.dry.Store(r.metered.Load() && r.left == 0)
}

// hungry reports whether calls are to be asked for, and when at the earliest.
func (r *ration) hungry() (at time.Time, hungry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hungry = r.metered.Load() && r.spent == "" && (len(r.queue) > 0 || r.missed || r.used > 0 && r.left <= r.low)
	return r.notBefore, hungry
}

// want is how many calls to ask for.
func (r *ration) want() (n int64, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.metered.Load() || r.spent != "" {
		return 0, r.epoch
	}
	now := time.Now()
	pace := int64(0) // of sliceTime
	if passed := now.Sub(r.asked); passed > 0 {
		pace = int64(float64(r.used) * float64(sliceTime) / float64(passed))
	}
	target := max(2*pace, int64(len(r.queue)), 1)
	r.used, r.asked, r.missed, r.low = 0, now, false, target/2
	return max(target-r.left, 0), r.epoch
}

// granted takes in what an ask of an epoch brought.
func (r *ration) granted(g *wire.Grant, wanted int64, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch != r.epoch {
		return // it was on its way when all were told to pause
	}
	r.metered.Store(g.Metered)
	r.notBefore = time.Time{}
	if !g.Metered {
		r.left, r.spent = 0, ""
		r.serve()
		return
	}
	r.left += max(g.Calls, 0)
	if g.Spent != "" {
		r.spent = g.Spent
	}
	if g.Calls <= 0 && wanted > 0 {
		r.notBefore = time.Now().Add(max(g.Wait, askAgain))
	}
	r.serve()
}

// kept is how many calls nobody has made yet.
func (r *ration) kept() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// giveBack takes them out for others.
func (r *ration) giveBack() (n int64, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, r.left = r.left, 0
	r.dry.Store(r.metered.Load())
	return n, r.epoch
}

// void drops them: their controller has counted them out.
func (r *ration) void() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.spent = 0, ""
	r.dry.Store(r.metered.Load())
}

// halt makes everybody pause, and ask from then on.
func (r *ration) halt(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	r.left = 0
	r.metered.Store(true)
	r.dry.Store(true)
	next := &pause{number: 1, end: time.Now().Add(max(d, 0))}
	if last := r.pause.Load(); last != nil {
		next.number = last.number + 1
	}
	r.pause.Store(next)
}

// isDry reports whether a call would have to wait, and asks for more if so.
func (r *ration) isDry() bool {
	if !r.dry.Load() {
		return false
	}
	r.mu.Lock()
	first := !r.missed
	r.missed = true
	r.mu.Unlock()
	if first {
		r.poke()
	}
	return true
}

// over is why no call will be granted any more; nil while one may be.
func (r *ration) over() error {
	if !r.dry.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left > 0 || r.spent == "" {
		return nil
	}
	return &spentError{r.spent}
}
