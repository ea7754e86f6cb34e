package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ordeal/agent/wire"
	"ordeal/controller/result"
)

// startNATS runs a server with a port, as a fleet's would.
func startNATS(t *testing.T) (url string) {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20})
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

// startAgent runs a remote agent as a process of its own.
func startAgent(t *testing.T, binary, url, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, "--nats", url, "--name", name, "--label", "zone=test")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := bufio.NewReader(stderr)
	for line := ""; !strings.Contains(line, "ready"); {
		if line, err = said.ReadString('\n'); err != nil {
			t.Fatalf("agent %s: %q, %v", name, line, err)
		}
	}
	return cmd
}

// onResult calls f, on one goroutine, with each result of a unit.
func onResult(t *testing.T, url string, f func()) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := nc.Subscribe(wire.ResultSubjects, func(*nats.Msg) { f() }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestRemoteAgents: a scan by agents in other processes is the embedded scan,
// also when one of them is killed in the middle of its work.
func TestRemoteAgents(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "ordeal-agent")
	if out, err := exec.Command("go", "build", "-o", binary, "ordeal/cmd/ordeal-agent").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	args := []string{"scan", "mock:degraded", "--requests", "4000000", "--probes", "latency"}
	local, err := scanJSON(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	// Whether the kill hits a unit at work is up to the scheduler: a miss, after
	// which nothing had to be worked again, is tried again.
	var remote *result.Document
	for tries := 0; remote == nil || remote.Run.Reissued == 0; tries++ {
		if tries == 8 {
			t.Fatalf("fleet %+v: the agent was never killed in the middle of a unit", remote.Run.Fleet)
		}
		remote = scanWithKill(t, binary, args)
	}
	if len(remote.Run.Fleet) != 2 || remote.Run.Fleet[0].ID != "doomed" {
		t.Errorf("fleet %+v, want the killed agent and its heir", remote.Run.Fleet)
	}
	for _, a := range remote.Run.Fleet {
		if a.Labels["zone"] != "test" {
			t.Errorf("agent %+v, want the labels it was started with", a)
		}
	}
	remote.Run.Reissued = 0
	remote.Run.Invocation = local.Run.Invocation // but for --nats
	if diff := cmp.Diff(strings.Split(timeless(t, local), "\n"), strings.Split(timeless(t, remote), "\n")); diff != "" {
		t.Errorf("remote differs from local (-local +remote):\n%s", diff)
	}
}

// scanWithKill scans with a remote agent that is killed in the middle of the
// latency stage, and a second one that comes then.
func scanWithKill(t *testing.T, binary string, args []string) *result.Document {
	t.Helper()
	url := startNATS(t)
	doomed := startAgent(t, binary, url, "doomed")
	results := 0
	onResult(t, url, func() {
		if results++; results == 10 {
			time.Sleep(5 * time.Millisecond) // a unit takes some 20 ms
			_ = doomed.Process.Kill()
			startAgent(t, binary, url, "heir")
		}
	})
	doc, err := scanJSON(t, append(args, "--nats", url)...)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Literal secrets do not travel to a remote fleet.
func TestRemoteScanRefusesLiteralSecrets(t *testing.T) {
	_, err := scanJSONErr(t, "scan", "http://127.0.0.1:1/mcp", "--nats", startNATS(t), "--header", "Authorization: Bearer s3cret")
	if err == nil || !strings.Contains(err.Error(), "reference") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("err %v, want a refusal that asks for a reference and does not repeat the value", err)
	}
}
