package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/roster"
	"ordeal/faultproxy/schedule"
)

// runAgents runs ordeal agents by itself.
func runAgents(t *testing.T, args ...string) (out, talk string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newAgentsCmd(Streams{Out: &stdout, Err: &stderr})
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// populate has agents of every state in the fleet: one answers pings with a
// clock 250 ms ahead, one is connected and mute, one is gone, one speaks another
// protocol.
func populate(t *testing.T, url string) {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	entry := func(id string, change func(*wire.Hello)) {
		t.Helper()
		h := wire.Hello{V: wire.Version, ID: id, Version: "9.9", Pools: []string{"default"}, Digest: schedule.Digest(), Labels: map[string]string{"zone": "eu", "node": "n1"}, Units: 12}
		change(&h)
		if err := b.Announce(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	entry("busy", func(h *wire.Hello) { h.Load = wire.Holding{Run: "r1", Unit: "u7", CPUMilli: 1250, Cores: 2} })
	entry("gone", func(h *wire.Hello) { h.Labels["zone"] = "us" })
	entry("hostile", func(h *wire.Hello) { h.Version, h.Labels = "\x1b[31mred\n", nil })
	entry("old", func(h *wire.Hello) { h.V = wire.Version + 1 })
	for _, id := range []string{"busy", "hostile", "old"} {
		stop, err := b.OnRequest(id, func(wire.Request) wire.Ready {
			return wire.Ready{V: wire.Version, Agent: id, Clock: time.Now().Add(250 * time.Millisecond).UnixNano()}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
}

func TestAgentsTable(t *testing.T) {
	url := startNATS(t)
	populate(t, url)
	out, talk, err := runAgents(t, "--nats", url)
	if err != nil || talk != "" {
		t.Fatalf("%v, stderr %q", err, talk)
	}
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "NAME") {
		t.Fatalf("want a head and four agents:\n%s", out)
	}
	for i, wants := range [][]string{
		{"busy", "busy", "default", "node=n1,zone=eu", "12", "1.25/2", " ms"},
		{"gone", "lost", "node=n1,zone=us", "not connected"},
		{"hostile", "idle"},
		{"old", "incompatible", fmt.Sprintf("speaks protocol %d", wire.Version+1)},
	} {
		for _, want := range wants {
			if !strings.Contains(lines[i+1], want) {
				t.Errorf("line %q lacks %q", lines[i+1], want)
			}
		}
	}
	if strings.ContainsAny(out, "\x1b\t") {
		t.Errorf("steers the terminal: %q", out)
	}
	if strings.Contains(out, "r1/u7") {
		t.Errorf("units in hand without --verbose:\n%s", out)
	}
	out, _, err = runAgents(t, "--nats", url, "-v")
	if err != nil || !regexp.MustCompile(`(?m)^NAME .* WHY +VERSION +IN HAND$`).MatchString(out) || !regexp.MustCompile(`(?m)^busy .* 9\.9 +r1/u7$`).MatchString(out) || !strings.Contains(out, "?[31mred?") || strings.ContainsAny(out, "\x1b\t") {
		t.Errorf("verbose: %v\n%s", err, out)
	}
}

func TestAgentsJSON(t *testing.T) {
	url := startNATS(t)
	populate(t, url)
	out, _, err := runAgents(t, "--nats", url, "--json", "--select", "zone=eu|ap")
	if err != nil {
		t.Fatal(err)
	}
	var got agentsDoc
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	digest, labels := schedule.Digest(), map[string]string{"zone": "eu", "node": "n1"}
	want := agentsDoc{SchemaVersion: 1, Agents: []agentDoc{
		{ID: "busy", State: roster.Busy, Pools: []string{"default"}, Labels: labels, Version: "9.9", Protocol: wire.Version, Digest: digest, Units: 12, Run: "r1", Unit: "u7", CPUMilli: 1250, Cores: 2},
		{ID: "old", State: roster.Incompatible, Reason: fmt.Sprintf("speaks protocol %d, this build %d: run the same release on both sides", wire.Version+1, wire.Version),
			Pools: []string{"default"}, Labels: labels, Version: "9.9", Protocol: wire.Version + 1, Digest: digest, Units: 12},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(agentDoc{}, "Clock", "Seen")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	clock := got.Agents[0].Clock
	if clock == nil || clock.BoundUS <= 0 || clock.OffsetUS < 250_000-clock.BoundUS-1000 || clock.OffsetUS > 250_000+clock.BoundUS+1000 {
		t.Errorf("clock %+v, want 250 ms ahead", clock)
	}
	if time.Since(got.Agents[0].Seen).Abs() > time.Minute {
		t.Errorf("seen %v", got.Agents[0].Seen)
	}
}

func TestAgentsOfAnEmptyFleet(t *testing.T) {
	url := startNATS(t)
	for _, setUp := range []bool{false, true} {
		if setUp {
			populate(t, url)
		}
		out, talk, err := runAgents(t, "--nats", url, "--select", "zone=nowhere")
		if err != nil || out != "" || !strings.Contains(talk, map[bool]string{false: "start some with ordeal-agent", true: "no agent has zone=nowhere; 4 others are there"}[setUp]) {
			t.Errorf("set up %v: %v, stdout %q, stderr %q", setUp, err, out, talk)
		}
		out, _, err = runAgents(t, "--nats", url, "--select", "zone=nowhere", "--json")
		if want := "{\n  \"schema_version\": 1,\n  \"agents\": []\n}\n"; err != nil || out != want {
			t.Errorf("set up %v: %v, JSON %q, want %q", setUp, err, out, want)
		}
	}
}

func TestAgentsWithoutAServer(t *testing.T) {
	t.Setenv("NATS_URL", "")
	for name, args := range map[string][]string{"NoFlag": nil, "Refused": {"--nats", "nats://127.0.0.1:1"}, "Selector": {"--select", "zone", "--nats", "nats://127.0.0.1:1"}} {
		out, _, err := runAgents(t, args...)
		if err == nil || cli.Code(err) != cli.Unmeasured || out != "" {
			t.Errorf("%s: err %v, code %d, stdout %q; want code %d", name, err, cli.Code(err), out, cli.Unmeasured)
		}
	}
	t.Setenv("NATS_URL", startNATS(t))
	if _, talk, err := runAgents(t); err != nil || !strings.Contains(talk, "no agents here") {
		t.Errorf("with NATS_URL: %v, %q", err, talk)
	}
}

// restricted runs a server with a controller and an agent of the least
// permissions, both with the password p.
func restricted(t *testing.T) (url string) {
	t.Helper()
	publish, subscribe := wire.Permissions("a1", []string{wire.QueueName(wire.DefaultPool, schedule.Digest())})
	least := &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
		Response: &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*server.User{{Username: "controller", Password: "p"}, {Username: "agent", Password: "p", Permissions: least}}})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS not ready")
	}
	return srv.ClientURL()
}

// The agents of a new fleet that may not set it up are waited for, not missed.
func TestAgentsOfAFreshSecuredFleet(t *testing.T) {
	url := restricted(t)
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url, User: "agent:p", Name: "a1", Agent: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan error, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- agent.Run(ctx, b, agent.Options{ID: "a1", Version: cli.Version, Digest: schedule.Digest(), Ready: func(err error) { ready <- err }})
	}()
	t.Cleanup(func() { cancel(); <-ended; b.Close() })
	out, talk, err := runAgents(t, "--nats", url, "--user", "controller:p")
	if err != nil || talk != "" || !strings.Contains(out, "\na1 ") {
		t.Errorf("%v, stderr %q, stdout:\n%s", err, talk, out)
	}
	if err := <-ready; err != nil {
		t.Errorf("the agent: %v", err)
	}
}

func TestAgentsWithALoginThatMayNotLook(t *testing.T) {
	url, begun := restricted(t), time.Now()
	_, _, err := runAgents(t, "--nats", url, "--user", "agent:p")
	if !errors.Is(err, errMayNotRead) {
		t.Errorf("err %v, want %v", err, errMayNotRead)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("told after %v", took)
	}
}

// The block that is printed is what wire.Permissions says, to the server.
func TestAgentPermissions(t *testing.T) {
	tests := []struct {
		args   []string
		agent  string
		queues []string
	}{
		{[]string{"--name", "a1"}, "a1", []string{wire.QueueName(wire.DefaultPool, schedule.Digest())}},
		{[]string{"--name", "a1", "--pool", "gpu", "--pool", "big"}, "a1", []string{wire.QueueName("gpu", schedule.Digest()), wire.QueueName("big", schedule.Digest())}},
		{[]string{"--name", "*", "--pool", "*"}, "*", []string{"*"}},
	}
	for _, tc := range tests {
		var out bytes.Buffer
		cmd := newAgentCmd(Streams{Out: &out, Err: &out})
		cmd.SetArgs(append([]string{"permissions"}, tc.args...))
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(path, []byte("authorization { users: [ { user: a, password: b\n"+out.String()+"} ] }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		opt, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatalf("%v: %v\n%s", tc.args, err, out.String())
		}
		publish, subscribe := wire.Permissions(tc.agent, tc.queues)
		got := opt.Users[0].Permissions
		if diff := cmp.Diff([][]string{publish, subscribe}, [][]string{got.Publish.Allow, got.Subscribe.Allow}); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.args, diff)
		}
		if got.Response == nil || got.Response.MaxMsgs != 1 || got.Response.Expires < wire.PrepareWait {
			t.Errorf("%v: responses %+v", tc.args, got.Response)
		}
	}
	for _, args := range [][]string{nil, {"--name", "a b"}, {"--name", "a1", "--pool", "x.y"}, {"--name", ">"}} {
		var out bytes.Buffer
		cmd := newAgentCmd(Streams{Out: &out, Err: &out})
		cmd.SetArgs(append([]string{"permissions"}, args...))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(context.Background()); err == nil || strings.Contains(out.String(), "allow") {
			t.Errorf("%v: %v, printed %q; want an error", args, err, out.String())
		}
	}
}
