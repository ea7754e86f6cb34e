package roster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/faultproxy/schedule"
)

// States of a member.
const (
	Idle         = "idle"
	Busy         = "busy"
	Draining     = "draining"     // finishes what it has, takes nothing new
	Incompatible = "incompatible" // see Member.Incompatible
	Lost         = "lost"         // no longer heard of, and it did not say goodbye
)

// Member is an agent of the fleet.
type Member struct {
	bus.Seen
	State        string
	Incompatible string // why it gets no work of this build; "" = compatible

	// Offset is the agent's clock minus the controller's, ± Bound; both count
	// only when Clocked. The bound holds for now: it grows with the age of the
	// measurement.
	Offset, Bound time.Duration
	Clocked       bool
}

// digest of this build's fault schedule; it takes a while to compute.
var digest = sync.OnceValue(schedule.Digest)

// incompatible says why an agent must not get work of this build.
func incompatible(h *wire.Hello) string {
	switch {
	case h.V != wire.Version:
		return fmt.Sprintf("speaks protocol %d, this build %d: run the same release on both sides", h.V, wire.Version)
	case h.Digest != digest():
		return fmt.Sprintf("would draw other faults (schedule digest %s, this build's %s): run the same release on both sides", short(h.Digest), short(digest()))
	}
	return ""
}

func short(digest string) string {
	if digest == "" {
		return "none"
	}
	return digest[:min(8, len(digest))]
}

func member(s bus.Seen, lost bool) Member {
	m := Member{Seen: s, State: Idle, Incompatible: incompatible(&s.Hello)}
	switch {
	case lost:
		m.State = Lost
	case m.Incompatible != "":
		m.State = Incompatible
	case s.Twin:
		m.State, m.Incompatible = Incompatible, "two agents of this name are at work: stop one, or give it a --name of its own"
	case s.Draining:
		m.State = Draining
	case s.Load.Unit != "":
		m.State = Busy
	}
	return m
}

// refusal says why a member gets no work of a pool; "" when it does.
func (m *Member) refusal(pool string, sel Selector) string {
	switch mismatch := sel.mismatch(m.Labels); {
	case m.State == Lost:
		return "lost: its connection is gone, or it was silent for " + (3 * wire.Heartbeat).String()
	case m.State == Incompatible:
		return "incompatible: " + m.Incompatible
	case m.State == Draining:
		return "draining: it takes no new work"
	case !slices.Contains(m.Pools, pool):
		return "serves pool " + strings.Join(m.Pools, ", ")
	case mismatch != "":
		return mismatch
	}
	return ""
}
