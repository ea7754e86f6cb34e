package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"ordeal/agent/wire"
)

// haltLag is how much later than a denial a halt may be heard.
const haltLag = 100 * time.Millisecond

// Causes that end what an agent has in hand.
var (
	// ErrLeaseExpired means that the controller of the run was not heard of for
	// the length of the lease.
	ErrLeaseExpired = errors.New("the lease has run out: no word from the controller of the run")
	errNoAnswer     = errors.New("no controller answers for the run")
	errReplaced     = errors.New("it comes from a controller that was replaced")
)

// deniedError is the controller's word that nothing may be done for a run any
// more.
type deniedError struct{ why string }

func (e *deniedError) Error() string { return e.why }

// lease is an agent's leave to work for one run. While anybody holds it, it is
// asked for every third of its length; one ask is under way at most, which
// carries all there is to say:
//
//	hold ─▶ ask ─▶ granted ─┬─ ask, every TTL/3 ─▶ prolonged
//	          │             ├─ TTL after the last granted ask was sent ─▶ term over, work cut
//	          │             └─ denied ─▶ term over, work dropped
//	          └─ no answer, denied ─▶ nothing begins
type lease struct {
	run, agent string
	ask        func(ctx context.Context, run string, a wire.Ask) (wire.Grant, error)
	ration     *ration
	watch      leaseWatch
	wake       chan struct{} // tells the keeper that more is due; holds one
	quit       context.CancelFunc

	mu         sync.Mutex
	base       context.Context // ends with a halt, the release of the run, or the agent
	cancel     context.CancelCauseFunc
	halted     bool   // by the controller of generation
	generation uint64 // the highest one seen
	term       *term  // nil = no leave
	ttl        time.Duration
	holders    int
	idle       time.Time    // since when nobody holds it
	waiters    []chan error // want to hold it
	renew      time.Time    // the next ask
	retry      time.Time    // no ask before, after one that failed
	fails      int          // in a row
	signal     *refusal     // to be told
	told       time.Time    // when the last one was
}

// refusal is a rate limit that was met, with the time at which the refused call
// was sent.
type refusal struct {
	wire.QuotaSignal
	sent time.Time
}

// leaseWatch is told how leases fare; see metrics/prom.
type leaseWatch interface {
	held(change int)
	expired()
	refused()
}

// newLease makes the lease of a run and starts its keeper, for which rs waits.
func newLease(rs *runs, id string) *lease {
	l := &lease{run: id, agent: rs.agent, ask: rs.ask, watch: rs.watch, wake: make(chan struct{}, 1)}
	l.ration = &ration{poke: l.poke}
	l.base, l.cancel = context.WithCancelCause(context.Background())
	ctx, quit := context.WithCancel(context.Background())
	l.quit = quit
	rs.keepers.Go(func() { l.keep(ctx) })
	return l
}

// see adopts a generation; false when a higher one was seen.
func (l *lease) see(generation uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.adopt(generation)
}

// seen is the highest generation so far.
func (l *lease) seen() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation
}

// adopt is see with mu held. Calls that another controller granted are void: the
// new one does not know of them.
func (l *lease) adopt(generation uint64) bool {
	if generation < l.generation {
		return false
	}
	if generation > l.generation {
		l.ration.void()
		if l.halted { // the one before it did that, and this one goes on
			l.drop(context.Cause(l.base))
			l.base, l.cancel = context.WithCancelCause(context.Background())
			l.halted = false
		}
	}
	l.generation = generation
	return true
}

// end cancels all work of the run that there is and will be.
func (l *lease) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = false
	l.cancel(cause)
}

// halt is end until another controller takes the run up.
func (l *lease) halt(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.base.Err() == nil {
		l.halted = true
		l.cancel(cause)
	}
}

// hold returns the term in which work may begin, and asks for one if there is
// none. release must follow once the work is done, unless there was an error.
func (l *lease) hold(ctx context.Context) (*term, error) {
	l.mu.Lock()
	l.holders++
	if t := l.valid(); t != nil {
		l.mu.Unlock()
		l.poke()
		return t, nil
	}
	answered, base := make(chan error, 1), l.base
	l.waiters = append(l.waiters, answered)
	l.mu.Unlock()
	l.poke()
	var err error
	select {
	case err = <-answered:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-base.Done():
		err = context.Cause(base)
	}
	l.mu.Lock()
	t := l.valid()
	l.mu.Unlock()
	switch {
	case err == nil && t != nil:
		return t, nil
	case err == nil:
		err = errNoAnswer // it came too late
	}
	l.release()
	return nil, err
}

// wasHalted reports whether its controller has halted the run, which may be heard
// a moment later than that it denies any leave: these come on two ways.
func (l *lease) wasHalted() bool {
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	select {
	case <-base.Done():
	case <-time.After(haltLag):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halted
}

// inForce reports whether there is leave at the moment.
func (l *lease) inForce() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid() != nil
}

// valid is the term in force, given by the controller that leads. mu is held.
func (l *lease) valid() *term {
	if l.term == nil || l.term.end.Load().passed() || l.term.generation < l.generation {
		return nil
	}
	return l.term
}

func (l *lease) release() {
	l.mu.Lock()
	if l.holders--; l.holders == 0 {
		l.idle = time.Now()
	}
	l.mu.Unlock()
	l.poke()
}

func (l *lease) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// quota tells the fleet of a rate limit, at once unless it has just done so.
func (l *lease) quota(s wire.QuotaSignal) {
	l.mu.Lock()
	l.add(&refusal{s, time.Now().Add(-s.Age)})
	l.mu.Unlock()
	l.poke()
}

// add merges a refusal into the one that waits: the longest wait, the last limit,
// and the youngest call, since it may be news where an older one is an echo of
// what the fleet pauses for already. mu is held.
func (l *lease) add(r *refusal) {
	if l.signal == nil {
		l.signal = r
		return
	}
	l.signal.RetryAfter = max(l.signal.RetryAfter, r.RetryAfter)
	if r.Limit > 0 {
		l.signal.Limit, l.signal.Window = r.Limit, r.Window
	}
	if r.sent.After(l.signal.sent) {
		l.signal.sent = r.sent
	}
}
