package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	ask, told, epoch, patience := l.compose()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent := time.Now()
	grant, err := l.ask(limited, l.run, ask)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.failed(told, fmt.Errorf("%w: %w", errNoAnswer, err))
	case !l.adopt(grant.Generation):
		l.failed(told, fmt.Errorf("%w: the answer is of no use: %w", errNoAnswer, errReplaced))
	case grant.Denied != "":
		l.denied(&deniedError{grant.Denied})
	case grant.TTL <= 0:
		l.failed(told, fmt.Errorf("%w: it grants no time", errNoAnswer))
	default:
		l.granted(sent, &grant)
		l.ration.granted(&grant, ask.Calls, epoch)
		l.answer(nil)
	}
}

// compose is the next ask: what is in it is not said again.
func (l *lease) compose() (ask wire.Ask, told *refusal, epoch uint64, patience time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask = wire.Ask{Agent: l.agent}
	if told = l.signal; told != nil {
		l.signal, l.told = nil, time.Now()
		told.Age = l.told.Sub(told.sent)
		ask.Quota = &told.QuotaSignal
	}
	if l.holders > 0 || len(l.waiters) > 0 {
		ask.Calls, epoch = l.ration.want()
	} else {
		ask.Returned, epoch = l.ration.giveBack()
	}
	if patience = wire.AskWait; l.ttl > 0 {
		patience = min(patience, max(l.ttl/3, retryFirst))
	}
	return ask, told, epoch, patience
}

// failed puts the next ask off; what was told is told again. mu is held, as in
// all that follows.
func (l *lease) failed(told *refusal, err error) {
	if told != nil {
		l.add(told)
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
