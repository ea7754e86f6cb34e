package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
)

// The real agent, with the least permissions, works a unit of its pool and a
// share of a gang, answers its controller, and takes its leave.
func TestAgentLivesOnTheLeastPermissions(t *testing.T) {
	for _, oneAccount := range []bool{false, true} {
		t.Run(fmt.Sprintf("oneAccount=%v", oneAccount), func(t *testing.T) {
			controller, a1, refused := bus.Guarded(t, oneAccount)
			fleet, err := controller.Fleet(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer fleet.Close()
			leave := start(t, a1)
			await(t, fleet, 1)
			lead(t, controller)
			leave()
			await(t, fleet, 0)
			if texts := refused(); len(texts) != 0 {
				t.Errorf("the server refused %q", texts)
			}
		})
	}
}

// start runs the agent until leave is called.
func start(t *testing.T, b *bus.Bus) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, b, agent.Options{ID: "a1", Version: "test", Digest: bus.Digest, Ready: func(err error) { ready <- err }})
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func await(t *testing.T, fleet *bus.Fleet, n int) {
	t.Helper()
	for limit := time.After(10 * time.Second); ; {
		changed := fleet.Changed()
		if len(fleet.Agents()) == n {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%d agents, want %d", len(fleet.Agents()), n)
		}
	}
}

// lead is a controller that grants leases, queues a unit and starts a gang of
// one.
func lead(t *testing.T, b *bus.Bus) {
	t.Helper()
	const run, generation = "r1", 1
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stop, err := b.OnAsk(run, func(wire.Ask) (wire.Grant, bool) { return wire.Grant{Generation: generation, TTL: wire.LeaseTTL}, true })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	began := make(chan wire.Event, 4)
	stopEvents, err := b.OnEvent(run, func(e wire.Event) { began <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stopEvents()
	results := make(chan *wire.Result, 4)
	stopResults, err := b.Results(ctx, run, 0, func(r *wire.Result) { results <- r })
	if err != nil {
		t.Fatal(err)
	}
	defer stopResults()
	expect := func(unit string) {
		t.Helper()
		select {
		case r := <-results:
			if r.Unit != unit || r.Failure != nil || r.Tally.Calls() != 500 || r.Agent != "a1" {
				t.Errorf("result of %s by %s: failure %+v, tally %+v; want 500 calls of %s", r.Unit, r.Agent, r.Failure, r.Tally, unit)
			}
		case <-ctx.Done():
			t.Fatalf("no result of %s", unit)
		}
	}
	if err := b.PublishUnits(ctx, bus.DefaultQueue(), []*wire.Unit{load("pool", "")}); err != nil {
		t.Fatal(err)
	}
	expect("pool")
	if e := <-began; e.Kind != wire.Began || e.Agent != "a1" || e.Ack == "" {
		t.Errorf("event %+v, want that it began", e)
	}
	ping, err := b.Ask(ctx, "a1", wire.Request{Kind: wire.Ping})
	if err != nil || ping.Clock == 0 {
		t.Errorf("ping: %+v, %v", ping, err)
	}
	if ready, err := b.Ask(ctx, "a1", wire.Request{Kind: wire.Prepare, Unit: load("share", "g1")}); err != nil || ready.Failure != nil {
		t.Fatalf("prepare: %+v, %v", ready, err)
	}
	due := ping.Clock + int64(200*time.Millisecond)
	if err := b.Control(run, wire.Control{Kind: wire.Go, Generation: generation, Gang: "g1", At: due, Offsets: map[string]int64{"a1": 0}}); err != nil {
		t.Fatal(err)
	}
	expect("share")
	if err := b.Control(run, wire.Control{Kind: wire.Release, Generation: generation}); err != nil {
		t.Fatal(err)
	}
}

// load is a unit of 500 calls of a server that costs nothing.
func load(id, gang string) *wire.Unit {
	ops := wire.Range{To: 500}
	return &wire.Unit{V: wire.Version, Run: "r1", Stage: "load", ID: id, Gang: gang, Digest: bus.Digest, Gen: 1, Kind: wire.LoadUnit, Ops: ops,
		Target: wire.Target{Kind: wire.Mock, Profile: "healthy", Seed: "1", Timeout: time.Second},
		Call:   wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: []byte(`{"query":"x"}`)}}},
		Load:   &wire.Load{Workers: 4, Level: 4, Stage: ops}}
}
