package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	events   []heard[wire.Event] // the others
	results  []heard[outcome]
	controls []heard[wire.Control]
}

// heard is a message and when it came.
type heard[T any] struct {
	at  time.Time
	run string
	msg T
}

// outcome is a result without its numbers.
type outcome struct {
	Stage       string `json:"stage"`
	Unit        string `json:"unit"`
	Incarnation uint64 `json:"incarnation"`
	Agent       string `json:"agent"`
	Final       bool   `json:"final"`
	Partial     bool   `json:"partial"`
}

func newSpy(t *testing.T, url string) *spy {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s := &spy{changed: make(chan struct{}), units: map[string]int64{}}
	listen(t, nc, wire.UnitSubjects, s, func(u heard[wire.Unit]) { s.units[u.msg.ID] = plan.Operations(&u.msg) })
	listen(t, nc, wire.EventSubject("*", "*"), s, func(e heard[wire.Event]) {
		if e.msg.Kind == wire.Began {
			s.begun = append(s.begun, e)
			return
		}
		s.events = append(s.events, e)
	})
	listen(t, nc, wire.ResultSubjects, s, func(r heard[outcome]) { s.results = append(s.results, r) })
	listen(t, nc, wire.ControlSubject("*"), s, func(c heard[wire.Control]) { s.controls = append(s.controls, c) })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return s
}

// listen hands each message of a subject over with the spy locked. The run is
// the token behind ordeal.v1.KIND, or behind the queue for a unit.
func listen[T any](t *testing.T, nc *nats.Conn, subject string, s *spy, take func(heard[T])) {
	t.Helper()
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		now := time.Now()
		var msg T
		if json.Unmarshal(m.Data, &msg) != nil {
			return
		}
		tokens := strings.Split(m.Subject, ".")
		s.mu.Lock()
		defer s.mu.Unlock()
		take(heard[T]{now, tokens[min(3, len(tokens)-1)], msg})
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

// denominators are what a report must say of the results of pools, counted here
// by themselves.
type denominators struct {
	reissued int64 // operations of units, once for each time beyond the first that an agent began them
	ignored  int   // results that did not count
}

func (s *spy) denominators() denominators {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d denominators
	counted := map[string]bool{}
	for _, r := range s.results {
		if counted[r.msg.Unit] || !r.msg.Final {
			d.ignored++
		}
		counted[r.msg.Unit] = counted[r.msg.Unit] || r.msg.Final
	}
	type delivery struct {
		unit        string
		incarnation uint64
	}
	begun := map[delivery]bool{}
	times := map[string]int64{}
	for _, b := range s.begun {
		if d := (delivery{b.msg.Unit, b.msg.Incarnation}); !begun[d] {
			begun[d] = true
			times[d.unit]++
		}
	}
	for unit, n := range times {
		d.reissued += s.units[unit] * (n - 1)
	}
	return d
}

func (d denominators) String() string {
	return fmt.Sprintf("%d operations reissued, %d results ignored", d.reissued, d.ignored)
}
