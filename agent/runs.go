package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ordeal/agent/wire"
)

const (
	// keptReleased bounds how many released runs an agent remembers. Their queued
	// units are taken back by their controller; this catches what was on its way.
	keptReleased = 256
	// idleClose is how long an agent keeps the servers and sessions of a run it
	// has nothing in hand of: its controller may have died without a word. The
	// next unit opens them again.
	idleClose = 10 * time.Minute
)

var errReleased = errors.New("the run is over")

// runs holds what an agent keeps between the units of a run: its context, which
// halt cancels, its lease, and its open targets.
type runs struct {
	agent string
	ask   func(ctx context.Context, run string, a wire.Ask) (wire.Grant, error)
	watch leaseWatch

	mu       sync.Mutex
	byID     map[string]*run
	released []release // oldest first, at most keptReleased
	cause    error     // set once the agent stops: later runs begin cancelled
	keepers  sync.WaitGroup
}

// release is a run that is over, as far as its controller of that generation is
// concerned: a later one may take it up again.
type release struct {
	run        string
	generation uint64
}

// run is one run at this agent.
type run struct {
	lease  *lease
	ration *ration
	users  int       // guarded by runs.mu
	since  time.Time // when it was last used, guarded by runs.mu

	mu      sync.Mutex
	closed  bool
	unsaid  []wire.Event // declined units that no controller heard of
	targets map[string]*opened
	gates   map[string]chan int64 // gang → its start, on the agent's clock
}

// enter returns the run for a message of a generation, creating it on first
// sight; leave must follow. The error says why nothing may be done for it.
func (rs *runs) enter(id string, generation uint64) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.enterLocked(id, generation)
}

// enterLocked is enter with mu held.
func (rs *runs) enterLocked(id string, generation uint64) (*run, error) {
	for i, rel := range rs.released {
		if rel.run != id {
			continue
		}
		if generation <= rel.generation {
			return nil, errReleased
		}
		rs.released = append(rs.released[:i], rs.released[i+1:]...)
		break
	}
	r := rs.byID[id]
	if r == nil {
		r = rs.create(id)
	}
	if !r.lease.see(generation) {
		return nil, fmt.Errorf("generation %d: %w", generation, errReplaced)
	}
	r.users++
	return r, nil
}

// unit is enter for a unit of a queue. One that an earlier controller has queued
// is worked all the same, under the lease of the one that leads: that finds it
// queued, and does not queue it again.
func (rs *runs) unit(id string, generation uint64) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for {
		known := generation
		if r := rs.byID[id]; r != nil {
			known = max(generation, r.lease.seen())
		}
		r, err := rs.enterLocked(id, known)
		if !errors.Is(err, errReplaced) { // else a controller took over just now
			return r, err
		}
	}
}

// create makes a run and starts the keeper of its lease. mu is held.
func (rs *runs) create(id string) *run {
	r := &run{targets: map[string]*opened{}, gates: map[string]chan int64{}, since: time.Now()}
	r.lease = newLease(rs, id)
	r.ration = r.lease.ration
	if rs.cause != nil {
		r.lease.end(rs.cause)
	}
	rs.byID[id] = r
	return r
}

func (rs *runs) leave(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.users--
	r.since = time.Now()
}

// known returns a run that the agent has something of, and adopts the
// generation; nil for others and for older generations.
func (rs *runs) known(id string, generation uint64) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byID[id]; r != nil && r.lease.see(generation) {
		return r
	}
	return nil
}

// stop cancels every run, present and future.
func (rs *runs) stop(cause error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.cause = cause
	for _, r := range rs.byID {
		r.lease.end(cause)
	}
}

// release cancels a run and forgets all but its id. The caller closes what it
// returns; nil when the agent had nothing of the run, or has seen a later
// controller of it.
func (rs *runs) release(id string, generation uint64) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.byID[id]
	if r != nil && !r.lease.see(generation) {
		return nil
	}
	rs.remember(release{id, generation})
	delete(rs.byID, id)
	if r != nil {
		r.lease.end(errReleased)
	}
	return r
}

func (rs *runs) remember(rel release) {
	for i := range rs.released {
		if rs.released[i].run == rel.run {
			rs.released[i].generation = max(rs.released[i].generation, rel.generation)
			return
		}
	}
	rs.released = append(rs.released, rel)
	if extra := len(rs.released) - keptReleased; extra > 0 {
		rs.released = append(rs.released[:0], rs.released[extra:]...)
	}
}

// forget drops a run without remembering that it is over; false when that was
// done already.
func (rs *runs) forget(id string, r *run) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byID[id] != r {
		return false
	}
	delete(rs.byID, id)
	return true
}

// idle forgets the runs that nobody has used for a while. The caller closes them.
func (rs *runs) idle(now time.Time) (unused []*run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for id, r := range rs.byID {
		if r.users == 0 && now.Sub(r.since) > idleClose {
			delete(rs.byID, id)
			unused = append(unused, r)
		}
	}
	return unused
}

// close closes every run, side by side: each takes up to its shut-down bound.
func (rs *runs) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range rs.byID {
		wg.Go(r.close)
	}
	wg.Wait()
	rs.keepers.Wait()
}

// start tells the share of a gang when to begin; late for a gang that nobody
// here belongs to.
func (r *run) start(gang string, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.gates[gang] <- at:
	default: // no such gang, or a repeated go
	}
}

// gate is where the share of a gang waits for its start; done takes it away.
func (r *run) gate(gang string) (started <-chan int64, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := make(chan int64, 1)
	r.gates[gang] = g
	return g, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.gates[gang] == g {
			delete(r.gates, gang)
		}
	}
}
