package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/result"
	"ordeal/controller/roster"
)

// led is a run on a server of its own, with the bus of a hand-made agent.
func led(t *testing.T) (*run, *bus.Bus) {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	connect := func(name string) *bus.Bus {
		b, err := bus.InProcess(name, srv)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	b := connect("controller")
	if err := b.Setup(t.Context(), bus.Memory); err != nil {
		t.Fatal(err)
	}
	r := newRun(Options{Bus: b, Version: "controller's"}, "r1")
	leader, err := r.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.leader, r.stop = leader, func(error) {}
	t.Cleanup(leader.Close)
	if r.roster, err = roster.Open(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err = r.watch.follow(r); err != nil {
		t.Fatal(err)
	}
	if r.dispatch, err = r.newDispatch(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close(context.Background()) })
	return r, connect("agent")
}

// An agent that was slow to answer the survey answers again while the preflight
// is under way; the preflight waits for its own unit.
func TestOnlyTakesTheResultOfItsOwnUnit(t *testing.T) {
	r, agent := led(t)
	publish := func(res wire.Result) {
		t.Helper()
		res.V, res.Run, res.Final, res.Agent = wire.Version, "r1", true, "a1"
		if err := agent.PublishResult(t.Context(), &res); err != nil {
			t.Fatal(err)
		}
	}
	survey := wire.Result{Stage: "survey", Unit: "s00-00000", Incarnation: 1, Survey: &wire.Survey{Name: "x"}}
	publish(survey)
	got, err := r.only(t.Context(), plan.Stage{Name: "survey", Units: []wire.Unit{{Kind: wire.SurveyUnit}}})
	if err != nil || got.Survey == nil {
		t.Fatalf("survey %+v, %v", got, err)
	}
	survey.Incarnation = 2
	publish(survey)
	survey.Incarnation, survey.Failure = 3, &wire.Failure{Class: "cancelled"}
	publish(survey)
	publish(wire.Result{Stage: "preflight", Unit: "s01-00000", Incarnation: 1, Preflight: &wire.Preflight{Delivered: true}})
	got, err = r.only(t.Context(), plan.Stage{Name: "preflight", Units: []wire.Unit{{Kind: wire.PreflightUnit}}})
	if err != nil || got.Preflight == nil {
		t.Fatalf("preflight %+v, %v; want the result of its own unit", got, err)
	}
}

// Version and labels are what the agents say of themselves, those that left
// during the run included.
func TestFleetIsWhatTheAgentsSay(t *testing.T) {
	r, agent := led(t)
	for _, id := range []string{"a1", "a2"} {
		if err := agent.Announce(t.Context(), wire.Hello{V: wire.Version, ID: id, Version: "1 of " + id, Labels: map[string]string{"zone": id}}); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); r.labels(id) == nil; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 5*time.Second {
				t.Fatalf("agent %s never showed up", id)
			}
		}
		if err := agent.Leave(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	r.merger.Stage("t", "latency", 0, []merge.Planned{{Unit: "u1"}, {Unit: "u2"}, {Unit: "u3"}})
	for i, id := range []string{"a1", "a2", "stranger"} {
		r.merger.Add(&wire.Result{Run: "r1", Stage: "t", Unit: []string{"u1", "u2", "u3"}[i], Incarnation: 1, Final: true, Agent: id, Calls: 4})
	}
	want := []result.Agent{
		{ID: "a1", Version: "1 of a1", Labels: map[string]string{"zone": "a1"}, Units: 1, Operations: 4},
		{ID: "a2", Version: "1 of a2", Labels: map[string]string{"zone": "a2"}, Units: 1, Operations: 4},
		{ID: "stranger", Version: "unknown", Units: 1, Operations: 4},
	}
	if diff := cmp.Diff(want, r.agents()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
