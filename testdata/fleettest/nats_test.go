package fleettest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a publisher was told is stored is there after a SIGKILL, on the same
// port.
func TestKilledServerKeepsItsStore(t *testing.T) {
	n := StartNATS(t, NATSOptions{})
	url := n.URL()
	js := connect(t, url)
	ctx := within(t, 15*time.Second)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := js.Publish(ctx, "s", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	n.Kill()
	if n.Proc().Running() {
		t.Error("runs after Kill")
	}
	n.Restart(t)
	if n.URL() != url {
		t.Errorf("URL %s, before %s", n.URL(), url)
	}
	if got := stored(t, connect(t, url), "S"); got != 100 {
		t.Errorf("%d messages, want 100\n%s", got, n.Log())
	}
	n.Restart(t) // of a server that runs
	if got := stored(t, connect(t, url), "S"); got != 100 {
		t.Errorf("%d messages after a second restart, want 100", got)
	}
	if starts := strings.Count(n.Log(), "Server is ready"); starts != 3 {
		t.Errorf("log has %d starts, want 3", starts)
	}
}

func stored(t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	s, err := js.Stream(within(t, 10*time.Second), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// A paused server is mute but not gone; so is a cut cable.
func TestPausedAndCutServersAreMute(t *testing.T) {
	n := StartNATS(t, NATSOptions{})
	c := NewCut(t, n.Addr())
	nc, err := nats.Connect(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, tc := range []struct {
		name      string
		off, back func()
	}{
		{"paused", n.Pause, n.Resume},
		{"cut", c.Cut, c.Heal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := nc.FlushTimeout(5 * time.Second); err != nil {
				t.Fatal(err)
			}
			tc.off()
			if err := nc.FlushTimeout(100 * time.Millisecond); err != nats.ErrTimeout {
				t.Errorf("flush %v, want a timeout", err)
			}
			tc.back()
			if err := nc.FlushTimeout(5 * time.Second); err != nil || nc.Reconnects != 0 {
				t.Errorf("flush %v, %d reconnects; want the same connection again", err, nc.Reconnects)
			}
		})
	}
}

func TestNATSOptions(t *testing.T) {
	n := StartNATS(t, NATSOptions{Name: "gate", MaxFile: 64 << 20, MaxMemory: 32 << 20, Config: `
accounts {
  FLEET { jetstream: enabled, users: [{user: agent, password: "p w", permissions: {publish: "only.this", subscribe: "_INBOX.>"}}] }
}
max_payload: 2048`})
	if _, err := nats.Connect(n.URL()); err == nil {
		t.Error("let in without a user")
	}
	problems := make(chan error, 1)
	nc, err := nats.Connect(n.URLAs("agent", "p w"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case problems <- err:
		default:
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if nc.MaxPayload() != 2048 || nc.ConnectedServerName() != n.Name() {
		t.Errorf("server %s, max payload %d; want gate and 2048", nc.ConnectedServerName(), nc.MaxPayload())
	}
	publish := func(subject string) {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushTimeout(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	publish("only.this")
	select {
	case err := <-problems:
		t.Errorf("allowed subject: %v", err)
	default:
	}
	publish("other")
	select {
	case err := <-problems:
		if !strings.Contains(err.Error(), "other") {
			t.Errorf("problem %v, want the subject", err)
		}
	case <-within(t, 5*time.Second).Done():
		t.Error("a forbidden subject passed")
	}
}

// A running server takes a new configuration at Reload, and says so.
func TestReload(t *testing.T) {
	n := StartNATS(t, NATSOptions{})
	n.Configure(t, "max_payload: 4096")
	n.Reload()
	if _, err := n.Proc().WaitStderr(within(t, 5*time.Second), "Reloaded: max_payload = 4096"); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if nc.MaxPayload() != 4096 {
		t.Errorf("max payload %d, want 4096", nc.MaxPayload())
	}
}
