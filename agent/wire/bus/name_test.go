package bus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

func bear(t *testing.T, b *Bus, name, instance string) {
	t.Helper()
	stop, err := b.OnName(name, func() wire.Bearer { return wire.Bearer{V: wire.Version, Agent: name, Instance: instance} })
	stopping(t, stop, err)
}

// Who asks for a name hears of one bearer, or of all; of another version too.
func TestBearersOfAName(t *testing.T) {
	srv, asker := setup(t)
	if _, err := asker.Bearer(t.Context(), "a1"); !errors.Is(err, ErrGone) {
		t.Errorf("err %v, want %v", err, ErrGone)
	}
	bear(t, connect(t, srv, "first"), "a1", "one")
	if who, err := asker.Bearer(t.Context(), "a1"); err != nil || who.Instance != "one" {
		t.Errorf("%+v, %v; want the first one", who, err)
	}
	bear(t, connect(t, srv, "second"), "a1", "two")
	bear(t, connect(t, srv, "other"), "a2", "three")
	var all []string
	must(t, asker.Bearers(within(t, 300*time.Millisecond), "a1", func(who wire.Bearer) { all = append(all, who.Instance) }))
	slices.Sort(all)
	if diff := cmp.Diff([]string{"one", "two"}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if who, err := request[wire.Bearer](t.Context(), asker, wire.NameSubject("a1"), wire.Request{V: wire.Version + 1}); err != nil || who.Agent != "a1" {
		t.Errorf("asked by another version: %+v, %v; want an answer", who, err)
	}
}

// One process of a name after another is an agent that was started again; one that
// comes back after another is its twin, until it is silent.
func TestTwinsAreSeen(t *testing.T) {
	tests := []struct {
		name  string
		beats string // instances, in order
		want  bool
	}{
		{"Alone", "aaa", false},
		{"StartedAgain", "aabb", false},
		{"TwiceStartedAgain", "abc", false},
		{"Twins", "aba", true},
		{"TwinsOfAnOlder", "abcb", true},
		{"UnknownInstances", "-a-a", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, controller := setup(t)
			agent := connect(t, srv, "agent")
			f := openFleet(t, controller)
			for i, instance := range tt.beats {
				h := hello("a1")
				h.Units = int64(i + 1)
				if instance != '-' {
					h.Instance = string(instance)
				}
				must(t, agent.Announce(t.Context(), h))
				for changed := f.Changed(); len(f.Agents()) == 0 || f.Agents()[0].Units != h.Units; changed = f.Changed() {
					<-changed
				}
			}
			if got := f.Agents()[0].Twin; got != tt.want {
				t.Errorf("twin %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTwinThatIsSilentIsForgotten(t *testing.T) {
	f := &Fleet{agents: map[string]entry{"a1": {Seen: Seen{Hello: hello("a1")}, twins: time.Now().Add(-silence / 2)}}}
	if !f.Agents()[0].Twin {
		t.Error("no twin, want one that was heard of a moment ago")
	}
	f.agents["a1"] = entry{Seen: Seen{Hello: hello("a1")}, twins: time.Now().Add(-silence)}
	if f.Agents()[0].Twin {
		t.Error("a twin that has been silent counts")
	}
}
