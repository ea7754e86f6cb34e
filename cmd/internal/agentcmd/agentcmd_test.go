package agentcmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/faultproxy/schedule"
)

func serve(t *testing.T, users ...*server.User) string {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), Users: users})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	return srv.ClientURL()
}

func dial(t *testing.T, url, user string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url, User: user})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// talk is what a command has said; lines can be waited for.
type talk struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{}
}

func (k *talk) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case k.grown <- struct{}{}:
	default:
	}
	return k.text.Write(p)
}

func (k *talk) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

func (k *talk) wait(t *testing.T, pattern string) string {
	t.Helper()
	want := regexp.MustCompile(pattern)
	limit := time.After(15 * time.Second)
	for {
		if found := want.FindString(k.String()); found != "" {
			return found
		}
		select {
		case <-k.grown:
		case <-limit:
			t.Fatalf("never said %q; said:\n%s", pattern, k)
		}
	}
}

// start runs the command until leave is called, which returns its error.
func start(t *testing.T, args ...string) (said *talk, leave func() error) {
	t.Helper()
	said = &talk{grown: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd := New("ordeal-agent")
	cmd.SetArgs(args)
	cmd.SetErr(said)
	cmd.SetOut(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	leave = sync.OnceValue(func() error {
		cancel(cli.ErrInterrupted)
		return <-ended
	})
	t.Cleanup(func() { _ = leave() }) // checked where it matters
	return said, leave
}

// An agent on a fresh server sets the fleet up, is seen with what its flags say,
// and takes its leave.
func TestAgentJoinsAndLeaves(t *testing.T) {
	url := serve(t)
	said, leave := start(t, "--nats", url, "--name", "a1", "--label", "zone=eu", "--label", "rack=", "--label", "node=n1", "--pool", "default,gpu", "--capacity", "7")
	said.wait(t, "agent a1 ready\n")
	fleet, err := dial(t, url, "").Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	await(t, fleet, 1)
	got := fleet.Agents()
	want := wire.Hello{V: wire.Version, ID: "a1", Version: cli.Version, Labels: map[string]string{"zone": "eu", "node": "n1"}, Pools: []string{"default", "gpu"}, Digest: schedule.Digest(), Capacity: 7}
	got[0].Load, got[0].Instance = wire.Holding{}, ""
	if diff := cmp.Diff(want, got[0].Hello); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := leave(); err != nil {
		t.Errorf("left with %v, want no error", err)
	}
	await(t, fleet, 0)
	if got, want := said.String(), "connected to "+url+"\nagent a1 ready\ndraining: 0 in hand\nagent a1 left\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// await waits for a number of agents.
func await(t *testing.T, fleet *bus.Fleet, n int) {
	t.Helper()
	for limit := time.After(5 * time.Second); ; {
		changed := fleet.Changed()
		if len(fleet.Agents()) == n {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("fleet %+v, want %d agents", fleet.Agents(), n)
		}
	}
}

// While there is no server the agent waits, is not ready, and leaves when told.
func TestAgentWaitsForTheServer(t *testing.T) {
	said, leave := start(t, "--nats", "nats://127.0.0.1:1", "--name", "a1", "--metrics-addr", "127.0.0.1:0")
	metrics := strings.TrimSuffix(strings.TrimPrefix(said.wait(t, `metrics on http://\S+/metrics`), "metrics on "), "/metrics")
	said.wait(t, "waiting for NATS at nats://127.0.0.1:1\n")
	if status, body := get(t, metrics+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "no connection to NATS") {
		t.Errorf("readyz %d %q", status, body)
	}
	if status, _ := get(t, metrics+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz %d", status)
	}
	if err := leave(); err != nil {
		t.Errorf("left with %v, want no error", err)
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// An agent with the least permissions starts before the first controller: it
// says once that it leaves the set-up to that, and joins when it is done.
func TestRestrictedAgentWaitsForAController(t *testing.T) {
	publish, subscribe := wire.Permissions("a1", []string{wire.QueueName(wire.DefaultPool, schedule.Digest())})
	agent := &server.User{Username: "agent", Password: "s3cret", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe}, Response: &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}}}
	url := serve(t, agent, &server.User{Username: "controller", Password: "c"})
	said, leave := start(t, "--nats", url, "--user", "agent:s3cret", "--name", "a1", "--metrics-addr", "127.0.0.1:0")
	metrics := strings.TrimSuffix(strings.TrimPrefix(said.wait(t, `metrics on http://\S+/metrics`), "metrics on "), "/metrics")
	said.wait(t, "this agent may not set the fleet up: that is left to a controller\n")
	if status, body := get(t, metrics+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "waiting for a controller") {
		t.Errorf("readyz %d %q", status, body)
	}
	controller := dial(t, url, "controller:c")
	if err := controller.Setup(t.Context(), bus.Files); err != nil {
		t.Fatal(err)
	}
	if err := controller.OpenQueue(t.Context(), wire.QueueName(wire.DefaultPool, schedule.Digest())); err != nil {
		t.Fatal(err)
	}
	said.wait(t, "agent a1 ready\n")
	if status, body := get(t, metrics+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz %d %q", status, body)
	}
	if _, body := get(t, metrics+"/metrics"); !strings.Contains(body, `agent="a1"`) {
		t.Error("metrics without the agent's name")
	}
	if strings.Contains(said.String(), "Violation") {
		t.Errorf("said more than it should:\n%s", said)
	}
	twin := New("ordeal-agent")
	twin.SetArgs([]string{"--nats", url, "--user", "agent:s3cret", "--name", "a1"})
	twin.SetErr(io.Discard)
	if err := twin.ExecuteContext(t.Context()); err == nil || cli.Code(err) != cli.Unmeasured || !strings.Contains(err.Error(), "another agent called a1 is at work") {
		t.Errorf("a second agent of that name: %v, want it refused", err)
	}
	if err := leave(); err != nil {
		t.Errorf("left with %v, want no error", err)
	}
	second, leaveSecond := start(t, "--nats", url, "--user", "agent:s3cret", "--name", "a1")
	second.wait(t, "agent a1 ready\n") // at once: the queue stands, so nothing is tried that is refused
	if got, want := second.String(), "connected to "+url+"\nagent a1 ready\n"; got != want {
		t.Errorf("said %q, want %q and nothing else", got, want)
	}
	if err := leaveSecond(); err != nil {
		t.Errorf("left with %v, want no error", err)
	}
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	t.Setenv("NATS_URL", "")
	tests := map[string]struct {
		args  []string
		wants []string
	}{
		"NoServers":     {nil, []string{"--nats", "NATS_URL"}},
		"Name":          {[]string{"--name", "a b"}, []string{`--name "a b"`}},
		"Pool":          {[]string{"--pool", "a.b"}, []string{`--pool "a.b"`}},
		"Label":         {[]string{"--label", "zone"}, []string{`--label "zone"`, "key=value"}},
		"LabelValue":    {[]string{"--label", "zone=eu|us"}, []string{`--label "zone=eu|us"`}},
		"LabelTwice":    {[]string{"--label", "zone=eu", "--label", "zone=us"}, []string{"--label zone is given as eu and as us"}},
		"Capacity":      {[]string{"--capacity", "-1"}, []string{"--capacity is -1"}},
		"Drain":         {[]string{"--drain-timeout", "-1s"}, []string{"--drain-timeout is -1s"}},
		"Many":          {[]string{"--name", "", "--label", "x", "--capacity", "-1"}, []string{"--name", "--label", "--capacity"}},
		"WrongPassword": {[]string{"--nats", serve(t, &server.User{Username: "a", Password: "b"}), "--user", "a:s3cret"}, []string{"--user"}},
		"MetricsAddr":   {[]string{"--nats", "127.0.0.1:1", "--metrics-addr", "nonsense"}, []string{"--metrics-addr nonsense"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := New("ordeal-agent")
			cmd.SetArgs(tc.args)
			cmd.SetErr(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || cli.Code(err) != cli.Unmeasured {
				t.Fatalf("err %v, code %d; want an error and code %d", err, cli.Code(err), cli.Unmeasured)
			}
			for _, want := range tc.wants {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("err %q: want %q and no secret", err, want)
				}
			}
		})
	}
}

func TestParseLabels(t *testing.T) {
	got, err := parseLabels([]string{"zone=eu", "zone=eu", "empty=", "app.kubernetes.io/name=x"})
	if diff := cmp.Diff(map[string]string{"zone": "eu", "app.kubernetes.io/name": "x"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "=", "=eu", "a b=", "zone=a,b", fmt.Sprintf("zone=%s", strings.Repeat("x", 129))} {
		if got, err := parseLabels([]string{text}); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
