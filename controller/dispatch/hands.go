package dispatch

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"ordeal/agent/wire"
)

// hands knows which agent has which unit in hand. What it is told may be lost:
// then a unit is handed out again after wire.AckWait instead of at once.
type hands struct {
	mu    sync.Mutex
	units map[string]holding
	begun map[string]int // unit → how often an agent began it and did not give it back
	// unseen counts the deliveries of a unit that were given back unbegun: the
	// target has seen nothing of them.
	unseen map[string]uint64
	told   map[string]uint64 // unit → deliveries that agents have spoken of
	heard  map[delivery]bool // declined ones
}

// holding is a unit in an agent's hands.
type holding struct {
	agent       string
	incarnation uint64
	ack         string
}

func (h *hands) make() {
	if h.units == nil {
		h.units, h.begun, h.unseen = map[string]holding{}, map[string]int{}, map[string]uint64{}
		h.told, h.heard = map[string]uint64{}, map[delivery]bool{}
	}
}

// began notes a delivery and returns how often the unit has been begun.
func (h *hands) began(e *wire.Event) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.make()
	if h.units[e.Unit].incarnation >= e.Incarnation {
		return h.begun[e.Unit]
	}
	h.units[e.Unit] = holding{agent: e.Agent, incarnation: e.Incarnation, ack: e.Ack}
	h.begun[e.Unit]++
	h.told[e.Unit]++
	return h.begun[e.Unit]
}

// returned notes that a unit was given back.
func (h *hands) returned(e *wire.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.make()
	if held := h.units[e.Unit]; held.agent == e.Agent && held.incarnation == e.Incarnation {
		delete(h.units, e.Unit)
		h.begun[e.Unit]--
		return
	}
	h.told[e.Unit]++ // begun before this controller listened
}

// declined notes that a unit was given back unbegun.
func (h *hands) declined(e *wire.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.make()
	if key := (delivery{e.Unit, e.Incarnation}); !h.heard[key] { // it may be said again
		h.heard[key] = true
		h.unseen[e.Unit]++
		h.told[e.Unit]++
	}
}

// delivery is one handing out of a unit.
type delivery struct {
	unit        string
	incarnation uint64
}

// done forgets a unit that has its result, and returns how many deliveries of it
// the target has seen nothing of.
func (h *hands) done(unit string) (unseen uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unseen = h.unseen[unit]
	delete(h.units, unit)
	delete(h.begun, unit)
	delete(h.unseen, unit)
	delete(h.told, unit)
	return unseen
}

// knows reports whether agents have spoken of every delivery of a unit up to an
// incarnation.
func (h *hands) knows(unit string, incarnation uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told[unit] >= incarnation
}

func (h *hands) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.units) == 0
}

// agents that have something in hand.
func (h *hands) agents() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[string]bool{}
	var ids []string
	for _, held := range h.units {
		if !seen[held.agent] {
			seen[held.agent] = true
			ids = append(ids, held.agent)
		}
	}
	return ids
}

// takeFrom takes everything out of an agent's hands and returns where its
// deliveries are acknowledged.
func (h *hands) takeFrom(agent string) (acks []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for unit, held := range h.units {
		if held.agent == agent {
			acks = append(acks, held.ack)
			delete(h.units, unit)
		}
	}
	return acks
}

// event notes what an agent says about a unit.
func (d *Dispatcher) event(done <-chan struct{}, e wire.Event) {
	switch e.Kind {
	case wire.Began:
		if d.hands.began(&e) > wire.MaxBegun {
			d.poisoned(done, e.Unit)
		}
	case wire.Declined:
		d.hands.declined(&e)
	case wire.Returned:
		d.hands.returned(&e)
	case wire.Unstored:
		d.unstorable(&e)
	}
}

// poisoned ends a unit that no agent could finish.
func (d *Dispatcher) poisoned(done <-chan struct{}, unit string) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = d.opt.Bus.Remove(ctx, d.queue, d.opt.Run, unit) // it is poison with or without: its result counts once
	d.deliver(done, poison(d.opt.Run, unit))
}

// NoRoom ends a run whose results cannot be stored. What is stored stays: the run
// can be resumed once there is room.
type NoRoom struct{ Run, Agent, Reason string }

func (n *NoRoom) Error() string {
	return fmt.Sprintf("agent %s could not store a result for %v: %s\n  free space for JetStream, or raise the limits of stream %s; then ordeal runs resume %s",
		n.Agent, storeWait, n.Reason, wire.ResultStream, n.Run)
}

// Suspended ends a run that cannot go on for now. What is stored stays: it can be
// resumed.
type Suspended struct{ Run, Reason string }

func (e *Suspended) Error() string {
	return e.Reason + "; then ordeal runs resume " + e.Run
}

// unstorable warns of a result that found no room, and ends the run when that
// lasts.
func (d *Dispatcher) unstorable(e *wire.Event) {
	d.mu.Lock()
	first, known := d.unstored[e.Unit+" "+e.Agent]
	if !known {
		first = time.Now()
		d.unstored[e.Unit+" "+e.Agent] = first
	}
	d.mu.Unlock()
	if !known {
		d.warn("agent %s cannot store the result of unit %s yet: %s", e.Agent, e.Unit, e.Reason)
	}
	if time.Since(first) < storeWait {
		return
	}
	select {
	case d.trouble <- &NoRoom{Run: d.opt.Run, Agent: e.Agent, Reason: e.Reason}:
	default: // said already
	}
}

// stored forgets the failures to store a unit's result.
func (d *Dispatcher) stored(unit string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.unstored, func(key string, _ time.Time) bool { return strings.HasPrefix(key, unit+" ") })
}
