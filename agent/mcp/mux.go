package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ordeal/metrics"
)

const (
	maxAbandoned = 4096 // ids of timed-out calls remembered, to tell a late reply from a duplicate
	maxAnswering = 64   // answers to server requests under way at once
	sampleShown  = 120
)

// mux relates answers on one stream to the calls that wait for them. A reply
// that cannot be read fails the calls it names, and no other.
type mux struct {
	c     *Client
	write func(ctx context.Context, body []byte) (begun bool, err error)

	mu        sync.Mutex
	pending   map[int64]*waiter
	abandoned map[int64]struct{}
	highest   int64         // id sent so far
	lines     int           // messages read
	ended     string        // why the stream carries no more answers
	gone      chan struct{} // closed then

	limits  *time.Timer // at the earliest limit of a plain call; nil before the first
	limited bool        // limits is set

	answering chan struct{} // slots
	wg        sync.WaitGroup
}

// waiter is a call in flight. Its channel has room for the one arrival it gets:
// whoever removes it from pending sends at most once.
type waiter struct {
	call   *call
	arrive chan arrival
	noise  int // unreadable lines since it was sent
	sample string

	plain bool      // a plain success is all it is about, and it has no context of its own
	until time.Time // of a plain one
}

type arrival struct {
	msg     message
	at      time.Time
	bytes   int
	good    bool            // a plain success, of which no message is needed
	outcome metrics.Outcome // unless a message came
	text    string
	failed  bool
	over    bool  // the limit of the call has passed
	err     error // the request could not be sent
	begun   bool  // but a part of it was
}

func newMux(c *Client, write func(context.Context, []byte) (bool, error)) *mux {
	return &mux{c: c, write: write, pending: map[int64]*waiter{}, abandoned: map[int64]struct{}{}, gone: make(chan struct{}), answering: make(chan struct{}, maxAnswering)}
}

func (m *mux) roundTrip(ctx context.Context, c *call, x *metrics.Exchange) (message, bool) {
	w := &waiter{call: c, arrive: make(chan arrival, 1)}
	if ended := m.enter(w); ended != "" {
		x.Executed = metrics.No
		m.c.fail(x, metrics.Connection, ended)
		return message{}, false
	}
	start := time.Now()
	begun, err := m.write(ctx, c.body)
	if begun {
		x.BytesOut = int64(len(c.body))
	}
	if err != nil {
		x.Latency = time.Since(start)
		if a, late := m.leave(w, endGrace(err)); late {
			return m.arrived(a, start, w, x)
		}
		m.unsent(ctx, c, begun, err, x)
		return message{}, false
	}
	select {
	case a := <-w.arrive:
		return m.arrived(a, start, w, x)
	case <-ctx.Done():
	}
	if a, late := m.leave(w, 0); late {
		return m.arrived(a, start, w, x)
	}
	x.Latency = time.Since(start)
	m.c.expired(ctx, x)
	m.close(w, x)
	if c.method != "server/discover" && c.method != "initialize" {
		m.cancelled(c.id) // a server that has not begun a session expects no notice
	}
	return message{}, false
}

// unsent books a request that was not, or only in part, written.
func (m *mux) unsent(ctx context.Context, c *call, begun bool, err error, x *metrics.Exchange) {
	m.c.transportFailure(ctx, err, x)
	switch {
	case !begun:
		x.Executed = metrics.No
	case ctx.Err() != nil:
		m.cancelled(c.id) // brings the rest of the line along
	}
}

// endGrace is how long the end of the stream may take to explain an error of a
// write better than the error does itself.
func endGrace(err error) time.Duration {
	if errors.Is(err, syscall.EPIPE) {
		return 300 * time.Millisecond
	}
	return 0
}

func (m *mux) enter(w *waiter) (ended string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == "" {
		m.pending[w.call.id] = w
		m.highest = max(m.highest, w.call.id)
	}
	return m.ended
}

// leave gives up waiting. When the answer has come after all, or comes within
// grace, it is returned.
func (m *mux) leave(w *waiter, grace time.Duration) (arrival, bool) {
	if grace > 0 {
		select {
		case a := <-w.arrive:
			return a, true
		case <-time.After(grace):
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending[w.call.id] != w {
		return <-w.arrive, true
	}
	m.abandon(w)
	return arrival{}, false
}

// abandon stops waiting. Callers hold mu.
func (m *mux) abandon(w *waiter) {
	delete(m.pending, w.call.id)
	if len(m.abandoned) < maxAbandoned {
		m.abandoned[w.call.id] = struct{}{}
	}
}

func (m *mux) arrived(a arrival, start time.Time, w *waiter, x *metrics.Exchange) (message, bool) {
	x.Latency = a.at.Sub(start)
	x.BytesIn = int64(a.bytes)
	m.close(w, x)
	if a.failed {
		x.Delivered = a.bytes > 0
		m.c.fail(x, a.outcome, a.text)
		return message{}, false
	}
	return a.msg, true
}

// close moves what was gathered during the call into its exchange.
func (m *mux) close(w *waiter, x *metrics.Exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.ClientTime = w.call.answers.sum()
	x.Notes = append(x.Notes, w.call.steps.notes...)
	if w.noise > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("%d unreadable lines came during the call, the first: %s", w.noise, w.sample))
	}
}

// cancelled tells the server that nobody waits any more, without waiting itself.
func (m *mux) cancelled(id int64) {
	body := cancelNotice(id)
	m.wg.Go(func() {
		ctx, done := context.WithTimeout(context.Background(), m.c.cfg.StopGrace)
		defer done()
		_, _ = m.write(ctx, body) // a notice: nobody can do more about it
	})
}

func cancelNotice(id int64) []byte {
	params := append([]byte(`{"requestId":`), strconv.FormatInt(id, 10)...)
	params = append(params, `,"reason":"no answer within the limit"}`...)
	return appendRequest(nil, 0, "notifications/cancelled", params, "")
}

// end fails every pending call, now and later.
func (m *mux) end(outcome metrics.Outcome, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != "" {
		return
	}
	m.ended = text
	close(m.gone)
	if m.limits != nil {
		m.limits.Stop()
	}
	for _, w := range m.pending {
		m.deliver(w, arrival{at: time.Now(), failed: true, outcome: outcome, text: text})
	}
}

func (m *mux) broken() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}
