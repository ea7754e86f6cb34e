package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/testdata/fleettest"
)

// soon is within what a free name is taken, on a busy machine.
const soon = 1500 * time.Millisecond

func TestSecondAgentOfANameIsRefused(t *testing.T) {
	w := newWorld(t)
	w.agent(Options{ID: "a1"})
	fleet := w.fleet()
	eventually(t, "the first in the registry", func() bool { _, ok := seen(fleet, "a1"); return ok })
	told := make(chan error, 1)
	err := Run(t.Context(), connect(t, w.srv), Options{ID: "a1", Ready: func(err error) { told <- err }})
	var taken *NameTaken
	if !errors.As(err, &taken) || taken.Process != thisProcess() || <-told == nil {
		t.Fatalf("err %v, want that the name is taken, and by whom", err)
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "a1") || !strings.Contains(text, "--name") {
		t.Errorf("err %q, want one line that says what to do", text)
	}
	if _, there := seen(fleet, "a1"); !there {
		t.Error("the first has left the registry")
	}
	w.publish(mockUnit("u1", 10))
	if r := w.result(); r.Failure != nil || r.Agent != "a1" {
		t.Errorf("result %+v, want the first at work", r)
	}
}

// An agent whose connection is gone has no name: the next one is let in at once.
func TestNameOfADeadAgentIsFree(t *testing.T) {
	w := newWorld(t)
	b := connect(t, w.srv)
	w.agentOn(b, Options{ID: "a1"})
	b.Close()
	begun := time.Now()
	w.agent(Options{ID: "a1"})
	if took := time.Since(begun); took > soon {
		t.Errorf("let in after %v, want at once", took)
	}
}

// One that hangs cannot be told from one whose host is gone.
func TestNameOfASilentAgentIsFree(t *testing.T) {
	w := newWorld(t)
	hang := make(chan struct{})
	w.until(w.bus.OnName("a1", func() wire.Bearer { <-hang; return wire.Bearer{Draining: true} }))
	defer close(hang)
	begun := time.Now()
	w.agent(Options{ID: "a1"})
	if took := time.Since(begun); took > wire.AskWait+soon {
		t.Errorf("let in after %v, want %v", took, wire.AskWait)
	}
}

// An agent that is replaced while it drains is waited for, and takes only itself
// out of the registry.
func TestNameOfADrainingAgentIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	stop := w.agent(Options{ID: "a1", Drain: patience})
	w.prepared("a1", mockUnit("u1", 10))
	var stopping sync.WaitGroup
	stopping.Go(stop)
	fleet := w.fleet()
	eventually(t, "it to drain", func() bool { h, ok := seen(fleet, "a1"); return ok && h.Draining })
	log := &lines{}
	ready := running(t, connect(t, w.srv), Options{ID: "a1", Log: log.add})
	eventually(t, "it to say that it waits", func() bool { return strings.Contains(log.text(), "waiting for the other agent called a1") })
	select {
	case err := <-ready:
		t.Fatalf("ready beside the one that drains: %v", err)
	default:
	}
	w.start("r1", "g1")
	stopping.Wait()
	if err := receive(t, ready, "word that it is ready"); err != nil {
		t.Error(err)
	}
	eventually(t, "the new one in the registry", func() bool { h, ok := seen(fleet, "a1"); return ok && !h.Draining })
}

// Of two that are started in one moment one stays.
func TestOneOfTwoStays(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			b := connect(t, w.srv)
			go func() { ended <- Run(ctx, b, Options{ID: "a1"}) }()
		}
		var taken *NameTaken
		if err := receive(t, ended, "one that goes"); !errors.As(err, &taken) {
			t.Errorf("one ended with %v, want that the name is taken", err)
		}
		select {
		case err := <-ended:
			t.Errorf("the other one ended too: %v", err)
		case <-time.After(300 * time.Millisecond): // it would have by now
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// An agent that was cut off and finds another one in its place goes.
func TestAgentThatWasFollowedGoes(t *testing.T) {
	srv := startServer(t, &server.Options{Host: "127.0.0.1", Port: -1, MaxPayload: wire.MaxPayload})
	w := onServer(t, srv)
	cable := fleettest.NewCut(t, srv.Addr().String())
	far, err := bus.Connect(t.Context(), bus.Link{URLs: cable.URL(), Name: "far", Agent: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	ready, ended := make(chan error, 1), make(chan error, 1)
	go func() { ended <- Run(t.Context(), far, Options{ID: "a1", Ready: func(err error) { ready <- err }}) }()
	if err := receive(t, ready, "word that it is ready"); err != nil {
		t.Fatal(err)
	}
	cable.Drop()
	w.agent(Options{ID: "a1"})
	cable.Heal()
	var taken *NameTaken
	if err := receive(t, ended, "the end of the one that was away"); !errors.As(err, &taken) {
		t.Errorf("err %v, want that the name is taken", err)
	}
	w.publish(mockUnit("u1", 10))
	w.result()
	fleet := w.fleet()
	eventually(t, "the one in its place in the registry", func() bool { _, ok := seen(fleet, "a1"); return ok })
}
