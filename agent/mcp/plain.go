package mcp

import (
	"context"
	"encoding/json"
	"time"

	"ordeal/metrics"
)

// The fast way of a call on stdio: its line is laid out in the outbox, the reader
// recognises a plain success where it lies, and one timer watches the limits of
// all calls. What the reader does not recognise arrives as a message, for the
// thorough judge.

// plain makes a call on stdio. done is false when it has to be made in the thorough
// way; nothing was sent then.
func (s *Session) plain(ctx context.Context, tool string, args json.RawMessage) (x metrics.Exchange, done bool) {
	l, h := s.c.pipe.Load(), s.handle.Load()
	if l == nil || h == nil || s.c.cfg.Progress || s.c.thorough || ctx.Err() != nil {
		return x, false
	}
	f := h.frames.of(s.c, tool, func(*frame) {})
	if !f.fits(args) {
		return x, false
	}
	w, _ := l.idle.Get().(*waiter)
	if w == nil {
		w = &waiter{call: &call{method: "tools/call"}, arrive: make(chan arrival, 1), plain: true}
	}
	w.call.id = s.c.ids.Add(1)
	start := time.Now()
	w.until = start.Add(s.c.cfg.Timeout)
	a, odd := l.plainTrip(ctx, w, f, args, start)
	if odd != nil {
		x = *odd
	} else {
		x = metrics.Exchange{Outcome: metrics.OK, Delivered: true, Executed: metrics.Yes, Latency: a.at.Sub(start),
			BytesOut: int64(f.bodyLen(w.call.id, args)), BytesIn: int64(a.bytes)}
		l.idle.Put(w)
	}
	s.settle(h, &x)
	return x, true
}

// plainTrip is roundTrip for a call on the fast way. It returns the arrival of a
// plain success, or the exchange of anything else.
func (l *stdioLink) plainTrip(ctx context.Context, w *waiter, f *frame, args []byte, start time.Time) (arrival, *metrics.Exchange) {
	ended, alone := l.enterPlain(w, start)
	if ended != "" {
		x := &metrics.Exchange{Executed: metrics.No}
		l.c.fail(x, metrics.Connection, ended)
		return arrival{}, x
	}
	var a arrival
	seq, err := l.out.call(f, w.call.id, args, alone)
	if err != nil {
		late := false
		if a, late = l.leave(w, endGrace(err)); !late {
			a = arrival{at: time.Now(), err: err}
		}
		return a, l.settlePlain(ctx, a, w, f, args, seq, start)
	}
	select {
	case a = <-w.arrive:
		if a.good && w.noise == 0 && w.call.untouched() {
			return a, nil
		}
	case <-ctx.Done():
		late := false
		if a, late = l.leave(w, 0); !late {
			a = arrival{over: true}
		}
	}
	return a, l.settlePlain(ctx, a, w, f, args, seq, start)
}

// settlePlain books an arrival that is no plain success.
func (l *stdioLink) settlePlain(ctx context.Context, a arrival, w *waiter, f *frame, args []byte, seq int64, start time.Time) *metrics.Exchange {
	x := &metrics.Exchange{BytesOut: int64(f.bodyLen(w.call.id, args))}
	ctx, done := context.WithDeadlineCause(ctx, w.until, errCallLimit) // has ended when the call is over
	defer done()
	switch {
	case a.over:
		l.gaveUp(ctx, w, seq, start, x)
	case a.err != nil:
		x.Latency = a.at.Sub(start)
		if !a.begun {
			x.BytesOut = 0
		}
		l.unsent(ctx, w.call, a.begun, a.err, x)
	case a.good:
		l.arrived(a, start, w, x)
		x.Outcome, x.Delivered, x.Executed = metrics.OK, true, metrics.Yes
	default:
		if msg, ok := l.arrived(a, start, w, x); ok {
			l.c.judge(&msg, x, true, false)
		}
	}
	return x
}

// gaveUp books a call whose limit or context has ended.
func (l *stdioLink) gaveUp(ctx context.Context, w *waiter, seq int64, start time.Time, x *metrics.Exchange) {
	x.Latency = time.Since(start)
	l.c.expired(ctx, x)
	l.mux.close(w, x)
	if l.out.withdraw(seq) {
		x.Executed, x.BytesOut = metrics.No, 0
		return
	}
	l.cancelled(w.call.id)
}

// enterPlain is enter, and sets the timer when it has to strike earlier. alone says
// that no other call is in flight.
func (l *stdioLink) enterPlain(w *waiter, now time.Time) (ended string, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != "" {
		return l.ended, false
	}
	l.pending[w.call.id] = w
	l.highest = max(l.highest, w.call.id)
	if !l.limited {
		l.limit(w.until.Sub(now))
	}
	return "", len(l.pending) == 1
}

// limit sets the timer. All plain calls have one limit, so the first of them to
// begin is the first to end. Callers hold mu.
func (m *mux) limit(in time.Duration) {
	m.limited = true
	if m.limits == nil {
		m.limits = time.AfterFunc(in, m.strike)
		return
	}
	m.limits.Reset(in)
}

// strike ends the calls whose limit has passed, and waits for the next ones.
func (m *mux) strike() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limited = false
	var next time.Time
	for _, w := range m.pending {
		switch {
		case !w.plain:
		case !w.until.After(now):
			m.abandon(w)
			w.arrive <- arrival{over: true}
		case next.IsZero() || w.until.Before(next):
			next = w.until
		}
	}
	if !next.IsZero() {
		m.limit(next.Sub(now))
	}
}

// untouched reports a call that the server neither asked nor told anything during.
func (c *call) untouched() bool {
	return c.steps.count == 0 && c.steps.notes == nil && c.answers.idle()
}
