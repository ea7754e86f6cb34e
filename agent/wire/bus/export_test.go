package bus

import "testing"

// Guarded is a fleet with the least permissions, for tests of what is built on
// this package: a controller, and the connection of agent a1 of the default pool
// for schedules of Digest. refused are what the server has refused to the agent.
func Guarded(t *testing.T, oneAccount bool) (controller, a1 *Bus, refused func() []string) {
	t.Helper()
	g := guard(t, oneAccount)
	return g.controller, g.a1, func() []string {
		g.refusals.mu.Lock()
		defer g.refusals.mu.Unlock()
		return g.refusals.texts
	}
}

// Digest of the fault schedule of these tests.
const Digest = digest

// Queue of the default pool, for a connection that is no agent's.
func DefaultQueue() string { return queue }
