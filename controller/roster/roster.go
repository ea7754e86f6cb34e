package roster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"ordeal/agent/wire/bus"
)

// Roster follows the fleet until Close.
type Roster struct {
	bus   *bus.Bus
	fleet *bus.Fleet
	clock Clock

	mu       sync.Mutex
	readings map[string][]Reading // by agent, oldest first
	gone     map[string]time.Time // agent → its last heartbeat when nobody listened any more
}

// Open follows the fleet registry; who stands there is known when it returns.
func Open(ctx context.Context, b *bus.Bus) (*Roster, error) {
	fleet, err := b.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return &Roster{bus: b, fleet: fleet, clock: StartClock(), readings: map[string][]Reading{}, gone: map[string]time.Time{}}, nil
}

// Close stops following.
func (r *Roster) Close() { r.fleet.Close() }

// Now is the controller's clock, in ns since the Unix epoch: the one that the
// offsets of members are measured against.
func (r *Roster) Now() int64 { return r.clock.Now() }

// All agents, sorted by id: those in the registry, and those lost since Open.
func (r *Roster) All() []Member {
	var all []Member
	for _, s := range r.fleet.Agents() {
		all = append(all, r.fill(member(s, r.isGone(s))))
	}
	for _, s := range r.fleet.Lost() {
		all = append(all, member(s, true))
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	// An agent that comes back between the two looks is in both.
	return slices.CompactFunc(all, func(a, b Member) bool { return a.ID == b.ID })
}

// Members of a pool that match sel and can be given work, sorted by id; the
// others with the reason, as "ID: REASON".
func (r *Roster) Members(pool string, sel Selector) (fit []Member, refused []string) {
	for _, m := range r.All() {
		if why := m.refusal(pool, sel); why != "" {
			refused = append(refused, m.ID+": "+why)
			continue
		}
		fit = append(fit, m)
	}
	return fit, refused
}

// isGone tells an agent whose entry still stands although nobody listened when
// it was pinged: it stays lost until its next heartbeat.
func (r *Roster) isGone(s bus.Seen) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.gone[s.ID]
	return ok && !s.At.After(at)
}

// Gone notes that nobody listens for an agent: it is lost until its next
// heartbeat.
func (r *Roster) Gone(id string) {
	for _, s := range r.fleet.Agents() {
		if s.ID == id {
			r.mu.Lock()
			r.gone[id] = s.At
			r.mu.Unlock()
		}
	}
}

// fill adds what is known of the agent's clock.
func (r *Roster) fill(m Member) Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if readings := r.readings[m.ID]; len(readings) > 0 {
		now := tightest(readings, time.Now())
		m.Offset, m.Bound, m.Clocked = now.Offset, now.Bound, true
	}
	return m
}
