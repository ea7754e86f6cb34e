package bus

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/testdata/fleettest"
)

func hello(id string) wire.Hello {
	return wire.Hello{V: wire.Version, ID: id, Version: "x", Pools: []string{"default"}, Labels: map[string]string{"zone": "eu"}, Load: wire.Holding{Cores: 2}}
}

func openFleet(t testing.TB, b *Bus) *Fleet {
	t.Helper()
	f, err := b.Fleet(within(t, 5*time.Second))
	must(t, err)
	t.Cleanup(f.Close)
	return f
}

func ids(seen []Seen) []string {
	all := map[string]bool{}
	for _, s := range seen {
		all[s.ID] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// eventually waits until the fleet has these agents and these lost ones.
func eventually(t testing.TB, f *Fleet, agents, lost []string, limit time.Duration) {
	t.Helper()
	over := time.After(limit)
	for {
		changed := f.Changed()
		diff := cmp.Diff([][]string{agents, lost}, [][]string{ids(f.Agents()), ids(f.Lost())})
		if diff == "" {
			return
		}
		select {
		case <-changed:
		case <-over:
			t.Fatalf("after %v (-want +got):\n%s", limit, diff)
		}
	}
}

func TestRegistry(t *testing.T) {
	srv, controller := setup(t)
	agent := connect(t, srv, "agent")
	must(t, agent.Announce(t.Context(), hello("early")))
	f := openFleet(t, controller)
	eventually(t, f, []string{"early"}, nil, 0) // complete when it returns
	if got := f.Agents()[0]; cmp.Diff(hello("early"), got.Hello) != "" || time.Since(got.At).Abs() > 5*time.Second {
		t.Errorf("%+v at %v", got.Hello, got.At)
	}
	must(t, agent.Announce(t.Context(), hello("late")))
	eventually(t, f, []string{"early", "late"}, nil, time.Second)
	draining := hello("late")
	draining.Draining = true
	must(t, agent.Announce(t.Context(), draining))
	must(t, agent.Leave(t.Context(), "early"))
	eventually(t, f, []string{"late"}, nil, time.Second)
	if !f.Agents()[0].Draining {
		t.Error("a renewal did not replace the entry")
	}
	must(t, agent.Leave(t.Context(), "never-there"))
	must(t, agent.Announce(t.Context(), hello("early")))
	eventually(t, f, []string{"early", "late"}, nil, time.Second)
}

// What is no entry of the agent whose key it has is passed over: it neither
// lists an agent nor hides one.
func TestMalformedEntriesArePassedOver(t *testing.T) {
	_, b := setup(t)
	must(t, b.Announce(t.Context(), hello("a1")))
	f := openFleet(t, b)
	for _, data := range []string{"{", `{"id":"a2"}`, `[]`, ""} {
		_, err := b.js.Publish(t.Context(), wire.RegistrySubject("a1"), []byte(data))
		must(t, err)
	}
	must(t, b.Announce(t.Context(), hello("a3")))
	eventually(t, f, []string{"a1", "a3"}, nil, time.Second)
}

// A silent agent is lost after three heartbeats, one that beats is not; a lost
// one comes back with its next word.
func TestSilentAgentIsLost(t *testing.T) {
	_, b := setup(t)
	must(t, b.Announce(t.Context(), hello("silent")))
	f := openFleet(t, b)
	from := time.Now()
	f.expire(from.Add(silence - time.Second))
	eventually(t, f, []string{"silent"}, nil, 0)
	time.Sleep(10 * time.Millisecond) // what is between the two heartbeats
	must(t, b.Announce(t.Context(), hello("beats")))
	eventually(t, f, []string{"beats", "silent"}, nil, time.Second)
	f.expire(from.Add(silence + time.Millisecond))
	eventually(t, f, []string{"beats"}, []string{"silent"}, 0)
	must(t, b.Announce(t.Context(), hello("silent")))
	eventually(t, f, []string{"beats", "silent"}, nil, time.Second)
}

// An entry that was old when the fleet was opened is not given a new life: its
// age is taken from the server's clock, which the newest entry shows.
func TestOldEntryKeepsItsAge(t *testing.T) {
	_, b := setup(t)
	must(t, b.Announce(t.Context(), hello("old")))
	time.Sleep(500 * time.Millisecond) // its age
	must(t, b.Announce(t.Context(), hello("new")))
	f := openFleet(t, b)
	eventually(t, f, []string{"new", "old"}, nil, 0)
	f.expire(time.Now().Add(silence - 250*time.Millisecond))
	eventually(t, f, []string{"new"}, []string{"old"}, 0)
}

// What a controller cannot hear while its own connection is down is no silence
// of the agents; afterwards it hears them again.
func TestFleetSurvivesCutAndRestart(t *testing.T) {
	t.Parallel()
	n := fleettest.StartNATS(t, fleettest.NATSOptions{})
	cable := fleettest.NewCut(t, n.Addr())
	controller, agent := dial(t, Link{URLs: cable.URL()}), dial(t, Link{URLs: n.URL()})
	prepare(t, agent, Files, queue)
	f := openFleet(t, controller)
	stop := make(chan struct{})
	beaten := make(chan struct{})
	go func() { // beats through everything
		defer close(beaten)
		for tick := time.Tick(wire.Heartbeat / 4); ; {
			_ = agent.Announce(within(t, time.Second), hello("a1")) // the server is away now and then
			select {
			case <-tick:
			case <-stop:
				return
			}
		}
	}()
	defer func() { close(stop); <-beaten }()
	eventually(t, f, []string{"a1"}, nil, 5*time.Second)
	heardAgain := func(what string) {
		t.Helper()
		from := time.Now()
		for limit := time.After(15 * time.Second); ; {
			changed := f.Changed()
			if agents := f.Agents(); len(agents) == 1 && agents[0].At.After(from) {
				if took := time.Since(from); took > silence {
					t.Errorf("heard again %v after %s, want within %v", took, what, silence)
				}
				break
			}
			select {
			case <-changed:
			case <-limit:
				t.Fatalf("after %s: no heartbeat heard, agents %v, lost %v", what, ids(f.Agents()), ids(f.Lost()))
			}
		}
		if lost := f.Lost(); len(lost) != 0 {
			t.Errorf("after %s: lost %v, want none", what, ids(lost))
		}
	}
	cable.Drop()
	time.Sleep(silence + wire.Heartbeat) // the length of the outage is what is tested
	eventually(t, f, []string{"a1"}, nil, 0)
	cable.Heal()
	heardAgain("a cut")
	n.Restart(t)
	heardAgain("a restart of the server")
	n.Kill()
	n.Restart(t)
	heardAgain("a kill of the server")
}
