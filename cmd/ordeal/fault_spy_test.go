package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
	"ordeal/controller/plan"
)

// spy hears what passes over the subjects of a fleet, over a connection of its
// own: neither a controller nor an agent is asked. While the server is away it
// hears nothing.
type spy struct {
	mu       sync.Mutex
	changed  chan struct{}
	units    map[string]int64 // operations of the units of pools
	begun    []heard[wire.Event]
	results  []heard[outcome] // without resends, which the stream drops
	sent     map[string]bool  // ids of results
	controls []heard[wire.Control]
}

// heard is a message, its id for the stream, if any, and when it came.
type heard[T any] struct {
	at  time.Time
	id  string
	msg T
}

// outcome is a result without its numbers.
type outcome struct {
	Stage       string `json:"stage"`
	Unit        string `json:"unit"`
	Incarnation uint64 `json:"incarnation"`
	Agent       string `json:"agent"`
	Final       bool   `json:"final"`
}

func newSpy(t *testing.T, url string) *spy {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s := &spy{changed: make(chan struct{}), units: map[string]int64{}, sent: map[string]bool{}}
	listen(t, nc, wire.UnitSubjects, s, func(u heard[wire.Unit]) { s.units[u.msg.ID] = plan.Operations(&u.msg) })
	listen(t, nc, wire.EventSubject("*", "*"), s, func(e heard[wire.Event]) {
		if e.msg.Kind == wire.Began {
			s.begun = append(s.begun, e)
		}
	})
	listen(t, nc, wire.ResultSubjects, s, func(r heard[outcome]) {
		if !s.sent[r.id] {
			s.sent[r.id] = true
			s.results = append(s.results, r)
		}
	})
	listen(t, nc, wire.ControlSubject("*"), s, func(c heard[wire.Control]) { s.controls = append(s.controls, c) })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return s
}

// listen hands each message of a subject over with the spy locked.
func listen[T any](t *testing.T, nc *nats.Conn, subject string, s *spy, take func(heard[T])) {
	t.Helper()
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		now := time.Now()
		var msg T
		if json.Unmarshal(m.Data, &msg) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		take(heard[T]{now, m.Header.Get(nats.MsgIdHdr), msg})
		close(s.changed)
		s.changed = make(chan struct{})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// await returns once holds is true; it is called with the spy locked.
func (s *spy) await(ctx context.Context, what string, holds func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := holds(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}

// awaitBegun waits until an agent has begun n units; any agent when it is empty.
func (s *spy) awaitBegun(ctx context.Context, agent string, n int) error {
	return s.await(ctx, fmt.Sprintf("agent %q begins %d units", agent, n), func() bool { return s.begunBy(agent) >= n })
}

// begunBy is called with mu held.
func (s *spy) begunBy(agent string) (n int) {
	for _, e := range s.begun {
		if agent == "" || e.msg.Agent == agent {
			n++
		}
	}
	return n
}

// awaitResults waits for n results of any unit.
func (s *spy) awaitResults(ctx context.Context, n int) error {
	return s.await(ctx, fmt.Sprintf("%d results", n), func() bool { return len(s.results) >= n })
}

// awaitGo waits for the n-th go of a gang.
func (s *spy) awaitGo(ctx context.Context, n int) error {
	return s.await(ctx, fmt.Sprintf("go %d", n), func() bool { return s.gone() >= n })
}

func (s *spy) gone() (n int) {
	for _, c := range s.controls {
		if c.msg.Kind == wire.Go {
			n++
		}
	}
	return n
}

// hasResult reports whether an agent had published its result of a stage before an
// instant.
func (s *spy) hasResult(stage, agent string, before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.results, func(r heard[outcome]) bool {
		return r.msg.Stage == stage && r.msg.Agent == agent && r.at.Before(before)
	})
}

// inHand is the unit that an agent had begun and not published a result of; false
// when there is none.
func (s *spy) inHand(agent string) (wire.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.begun) - 1; i >= 0; i-- {
		b := s.begun[i].msg
		if b.Agent != agent {
			continue
		}
		for _, r := range s.results {
			if r.msg.Agent == agent && r.msg.Unit == b.Unit && r.msg.Incarnation == b.Incarnation {
				return wire.Event{}, false
			}
		}
		return b, true
	}
	return wire.Event{}, false
}

// redelivered is how long after an instant a unit was begun again.
func (s *spy) redelivered(lost wire.Event, since time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.begun {
		if b.msg.Unit == lost.Unit && b.msg.Incarnation > lost.Incarnation {
			return b.at.Sub(since), true
		}
	}
	return 0, false
}

// denominators are what a report must say of the units of pools, counted here by
// themselves.
type denominators struct {
	begun   int64 // operations of units, once for each time beyond the first that an agent was heard to begin them
	handed  int64 // the same for each delivery: an agent that is cut off is not heard
	ignored int64 // results that did not count
}

func (s *spy) denominators() denominators {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d denominators
	begun, handed, counted := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for _, b := range s.begun {
		begun[b.msg.Unit]++
		handed[b.msg.Unit] = max(handed[b.msg.Unit], int64(b.msg.Incarnation))
	}
	for _, r := range s.results {
		handed[r.msg.Unit] = max(handed[r.msg.Unit], int64(r.msg.Incarnation))
		if counted[r.msg.Unit] || !r.msg.Final {
			d.ignored++
		}
		counted[r.msg.Unit] = counted[r.msg.Unit] || r.msg.Final
	}
	for unit, n := range handed {
		d.begun += s.units[unit] * max(begun[unit]-1, 0)
		d.handed += s.units[unit] * (max(begun[unit], n) - 1)
	}
	return d
}
