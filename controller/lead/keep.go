package lead

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

const (
	// lookEvery is how often the keeper looks whether the connection still is the
	// one over which it renewed.
	lookEvery = 250 * time.Millisecond
	// noteEvery is how often what Note changes is stored at most.
	noteEvery = 500 * time.Millisecond
	// A write that failed is tried again after retryAfter at least and twice that
	// at most, so that the controllers of many runs do not come back in one instant.
	retryAfter = 50 * time.Millisecond
	// writeWait bounds one write, beside a third of the TTL.
	writeWait = 2 * time.Second
)

// keep writes the record when a renewal or a change is due, on one goroutine, until
// ctx ends or the lead is lost.
func (l *Leader) keep(ctx context.Context) {
	t := tale{log: l.opt.Log, run: l.run, sure: true}
	for ctx.Err() == nil {
		if wait := l.due(time.Now()); wait > 0 {
			if l.rest(ctx, min(wait, lookEvery)) {
				t.tell(l.Sure(), nil)
			}
			continue
		}
		err := l.write(ctx)
		if errors.Is(err, bus.ErrFenced) {
			l.lose(err)
			return
		}
		if ctx.Err() == nil {
			t.tell(l.Sure(), err)
		}
	}
}

// rest waits until there may be something to do; false when ctx has ended.
func (l *Leader) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.poke:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// due is how long the next write has time; 0 or less when it is due.
func (l *Leader) due(now time.Time) time.Duration {
	link := l.opt.Bus.Reconnects()
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := l.record.TTL/3 - now.Sub(l.sent)
	switch {
	case l.urgent || link != l.link:
		wait = 0
	case l.changes > l.stored:
		wait = min(wait, noteEvery-now.Sub(l.sent))
	}
	return max(wait, l.retry.Sub(now))
}

// write stores the record with a further renewal. Only bus.ErrFenced means that
// the lead is lost.
func (l *Leader) write(ctx context.Context) error {
	next, revision, change, unclear := l.next()
	limited, cancel := context.WithTimeout(ctx, min(next.TTL/3, writeWait))
	defer cancel()
	sent, link := time.Now(), l.opt.Bus.Reconnects()
	written, err := l.opt.Bus.UpdateRun(limited, &next, revision)
	if errors.Is(err, bus.ErrFenced) {
		return l.fenced(ctx, revision, unclear)
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unclear = true
		l.later()
		return err
	}
	l.wrote(&next, written, change, sent, link)
	l.meter.stored(&next)
	return nil
}

// wrote takes note of a write that was stored.
func (l *Leader) wrote(r *wire.Run, revision, change uint64, sent time.Time, link uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision, l.sent, l.link, l.unclear, l.retry = revision, sent, link, false, time.Time{}
	l.record.Renewals, l.record.Active = r.Renewals, r.Active
	l.stored = change
	l.urgent = l.urgent && l.changes > change
	close(l.progress)
	l.progress = make(chan struct{})
}

// next is the record to be stored, upon which revision, and up to which change.
func (l *Leader) next() (r wire.Run, revision, change uint64, unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r = clone(&l.record)
	r.Renewals++
	r.Active = l.before + time.Since(l.began)
	return r, l.revision, l.changes, l.unclear
}

// later puts the next attempt off. l.mu is held.
func (l *Leader) later() { l.retry = time.Now().Add(retryAfter + rand.N(retryAfter)) }

// fenced finds out who has written the record. When an answer was lost it may
// have been this leader: then it goes on from there.
func (l *Leader) fenced(ctx context.Context, known uint64, unclear bool) error {
	limited, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	r, revision, err := l.opt.Bus.Run(limited, l.run)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, bus.ErrNoRun):
		return fmt.Errorf("run %s: %w: its record is gone", l.run, bus.ErrFenced)
	case err != nil && unclear:
		l.later()
		return err
	case err != nil:
		return fmt.Errorf("run %s: %w", l.run, bus.ErrFenced)
	case r.Claim == l.record.Claim:
		if revision > known { // else read from a server that lags behind
			l.revision = revision
		}
		l.later()
		return errors.New("the answer to the last renewal was lost")
	case r.State != wire.Running:
		return fmt.Errorf("run %s: %w: it is %s: %s", l.run, bus.ErrFenced, r.State, r.Reason)
	}
	return fmt.Errorf("run %s: %w: %s, generation %d", l.run, bus.ErrFenced, r.Holder, r.Generation)
}

// tale tells people when a leader is not sure any more, and when it is again.
type tale struct {
	log  func(string)
	run  string
	sure bool
	at   time.Time
	last error // why the last renewal failed
}

func (t *tale) tell(sure bool, err error) {
	if err != nil {
		t.last = err
	}
	switch {
	case t.sure && !sure:
		t.at = time.Now()
		why := "the connection to NATS was lost"
		if t.last != nil {
			why = t.last.Error()
		}
		t.log(fmt.Sprintf("run %s: its lease is not renewed, so this controller answers no agent: %s", t.run, why))
	case !t.sure && sure:
		t.log(fmt.Sprintf("run %s: its lease is renewed after %v without", t.run, time.Since(t.at).Round(time.Millisecond)))
	}
	if t.sure = sure; sure {
		t.last = nil
	}
}
