package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"ordeal/agent/wire"
)

const (
	// An ask that failed is made again after retryFirst, doubling up to retryMost,
	// half of it drawn: agents of one fleet must not come back in one instant.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
	// signalEvery bounds how often rate limits are told; what is met in between
	// is told together.
	signalEvery = 50 * time.Millisecond
	// idleKeep is how long granted calls are kept between two units of a run.
	idleKeep = 250 * time.Millisecond
	never    = 365 * 24 * time.Hour
)

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
	signal     *wire.QuotaSignal
	told       time.Time // when the last signal was sent
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
	l.add(&s)
	l.mu.Unlock()
	l.poke()
}

// add merges a signal into the one that waits. mu is held.
func (l *lease) add(s *wire.QuotaSignal) {
	if l.signal == nil {
		l.signal = s
		return
	}
	l.signal.RetryAfter = max(l.signal.RetryAfter, s.RetryAfter)
	if s.Limit > 0 {
		l.signal.Limit, l.signal.Window = s.Limit, s.Window
	}
}

// keep asks whenever something is due, until ctx ends.
func (l *lease) keep(ctx context.Context) {
	timer := time.NewTimer(never)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := l.due(time.Now())
		if wait <= 0 {
			l.once(ctx)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C:
		}
	}
	if l.ration.kept() > 0 {
		l.once(context.WithoutCancel(ctx)) // others may make them
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(errReleased)
	l.answer(errReleased)
}

// due is how long the next ask has time; 0 or less when it is due.
func (l *lease) due(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiters) > 0 {
		return 0
	}
	next := now.Add(never)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	switch {
	case l.holders > 0:
		sooner(l.renew)
		if at, hungry := l.ration.hungry(); hungry {
			sooner(at)
		}
		if l.signal != nil {
			sooner(l.told.Add(signalEvery))
		}
	case l.ration.kept() > 0:
		sooner(l.idle.Add(idleKeep))
	}
	return max(next.Sub(now), l.retry.Sub(now))
}

// once asks once.
func (l *lease) once(ctx context.Context) {
	ask, epoch, patience := l.compose()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent := time.Now()
	grant, err := l.ask(limited, l.run, ask)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.failed(&ask, fmt.Errorf("%w: %w", errNoAnswer, err))
	case !l.adopt(grant.Generation):
		l.failed(&ask, fmt.Errorf("%w: the answer is of no use: %w", errNoAnswer, errReplaced))
	case grant.Denied != "":
		l.denied(&deniedError{grant.Denied})
	case grant.TTL <= 0:
		l.failed(&ask, fmt.Errorf("%w: it grants no time", errNoAnswer))
	default:
		l.granted(sent, &grant)
		l.ration.granted(&grant, ask.Calls, epoch)
		l.answer(nil)
	}
}

// compose is the next ask: what is in it is not said again.
func (l *lease) compose() (ask wire.Ask, epoch uint64, patience time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask = wire.Ask{Agent: l.agent, Quota: l.signal}
	if l.signal != nil {
		l.signal, l.told = nil, time.Now()
	}
	if l.holders > 0 || len(l.waiters) > 0 {
		ask.Calls, epoch = l.ration.want()
	} else {
		ask.Returned, epoch = l.ration.giveBack()
	}
	if patience = wire.AskWait; l.ttl > 0 {
		patience = min(patience, max(l.ttl/3, retryFirst))
	}
	return ask, epoch, patience
}

// failed puts the next ask off. mu is held, as in all that follows.
func (l *lease) failed(ask *wire.Ask, err error) {
	if ask.Quota != nil {
		l.add(ask.Quota)
	}
	pause := min(retryFirst<<min(l.fails, 8), retryMost)
	l.fails++
	l.retry = time.Now().Add(pause/2 + rand.N(pause/2))
	l.answer(err)
}

func (l *lease) denied(why *deniedError) {
	l.watch.refused()
	l.drop(why)
	l.retry = time.Now().Add(retryMost)
	l.answer(why)
}

// granted begins a term or prolongs the one in force, counted from when it was
// asked for.
func (l *lease) granted(sent time.Time, g *wire.Grant) {
	l.fails, l.retry = 0, time.Time{}
	l.ttl, l.renew = g.TTL, sent.Add(g.TTL/3)
	end := after(sent, g.TTL)
	if l.term != nil && l.term.end.Load().passed() {
		l.overdue()
	}
	if l.term != nil {
		l.term.generation = g.Generation
		l.term.end.Store(end)
		l.term.timer.Reset(time.Until(end.mono))
		return
	}
	t := &term{lease: l, generation: g.Generation}
	t.ctx, t.cancel = context.WithCancelCause(l.base)
	t.end.Store(end)
	t.timer = time.AfterFunc(time.Until(end.mono), func() { _ = t.check() })
	l.term = t
	l.watch.held(1)
}

// expire ends a term that is over; nil when it was prolonged meanwhile.
func (l *lease) expire(t *term) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.lost:
		return ErrLeaseExpired
	case !t.end.Load().passed():
		return nil
	}
	l.overdue()
	return ErrLeaseExpired
}

func (l *lease) overdue() {
	if l.holders > 0 {
		l.watch.expired()
	}
	l.drop(ErrLeaseExpired)
}

// drop ends the term in force, and with it the work and the calls under it.
func (l *lease) drop(cause error) {
	if l.term == nil {
		return
	}
	l.term.lost = true
	l.term.timer.Stop()
	l.term.cancel(cause)
	l.term = nil
	l.ration.void()
	l.watch.held(-1)
}

// answer tells those who wait how the ask went.
func (l *lease) answer(err error) {
	for _, w := range l.waiters {
		w <- err
	}
	l.waiters = nil
}
