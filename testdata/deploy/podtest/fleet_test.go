package podtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// joinWait bounds how long an agent may take to be ready, scanWait the scan of a mock.
const (
	joinWait = 20 * time.Second
	scanWait = 60 * time.Second
)

// TestFleet: beside a controller, as many agents as the manifests start become ready by
// their probes, its scan with them exits with 0, and each agent leaves within its grace
// when it is told to.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	_, url, _ := startIn(t, dir)
	p := &place{dir: dir, url: url}
	for _, m := range manifests(t) {
		for name, text := range m.Data {
			p.write(t, name, text)
		}
	}

	deployment, agent := workload(t, "Deployment")
	var agents []*process
	for i := range deployment.Spec.Replicas {
		agents = append(agents, p.start(t, agent, fmt.Sprintf("ordeal-agent-%d", i), agentPassword))
	}
	_, controller := workload(t, "Job")
	scan := p.start(t, controller, "ordeal-scan", controllerPassword)
	for _, a := range agents { // not before there is a controller, which sets the fleet up
		a.answers(t, agent.ReadinessProbe.HTTPGet.Path)
		a.answers(t, agent.LivenessProbe.HTTPGet.Path)
		a.answers(t, "/metrics")
	}
	if err := scan.wait(scanWait); err != nil {
		t.Fatalf("the scan: %v\n%s", err, scan.output.String())
	}
	measured(t, filepath.Join(dir, "ordeal-scan.json"), agents)
	grace := time.Duration(deployment.Spec.Template.Spec.Grace) * time.Second
	for _, a := range agents {
		if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range agents {
		if err := a.wait(grace); err != nil {
			t.Errorf("%s leaves: %v\n%s", a.name, err, a.output.String())
		}
	}
}

// measured holds the document at path against the agents: they and nobody else sent
// calls to the target.
func measured(t *testing.T, path string, agents []*process) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Run struct {
			Calls int
			Fleet []struct{ ID string }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Run.Calls == 0 || len(doc.Run.Fleet) == 0 {
		t.Errorf("%d calls by %d agents, want some", doc.Run.Calls, len(doc.Run.Fleet))
	}
	for _, worker := range doc.Run.Fleet {
		if !slices.ContainsFunc(agents, func(a *process) bool { return a.name == worker.ID }) {
			t.Errorf("%q worked, and is no agent of the manifests", worker.ID)
		}
	}
}

// place is where the pods' files and addresses are.
type place struct{ dir, url string }

func (p *place) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// argument is what a container's argument is here.
func (p *place) argument(arg, pod, metrics string) string {
	return strings.NewReplacer(
		"$(POD_NAME)", pod, "$(POD_ZONE)", "eu-1",
		"nats://ordeal-nats:4222", p.url, "tls://ordeal-nats:4222", p.url,
		"/run/secrets/ordeal/nats-ca", p.dir, "/run/secrets/ordeal/nats-client", p.dir,
		"/etc/ordeal", p.dir, "/out", p.dir, "--metrics-addr=:9090", "--metrics-addr="+metrics,
	).Replace(arg)
}

// process is a container's command.
type process struct {
	name    string
	metrics string
	cmd     *exec.Cmd
	output  bytes.Buffer
	exited  chan error
}

func (p *place) start(t *testing.T, c container, pod, password string) *process {
	t.Helper()
	run := &process{name: pod, metrics: freeAddress(t), exited: make(chan error, 1)}
	args := append([]string{}, c.Command[1:]...)
	for _, a := range c.Args {
		args = append(args, p.argument(a, pod, run.metrics))
	}
	run.cmd = exec.Command(filepath.Join(os.Getenv("COMMANDS"), filepath.Base(c.Command[0])), args...)
	run.cmd.Env = []string{"PATH=/nowhere", "HOME=" + p.dir, "TMPDIR=" + t.TempDir(), "NATS_SECRET=" + password}
	run.cmd.Stdout, run.cmd.Stderr = &run.output, &run.output
	if err := run.cmd.Start(); err != nil {
		t.Fatalf("COMMANDS must name the folder with ordeal and ordeal-agent: %v", err)
	}
	go func() { run.exited <- run.cmd.Wait() }()
	t.Cleanup(func() {
		_ = run.cmd.Process.Kill() // it has exited when all went well
		_ = run.wait(joinWait)
	})
	return run
}

var errStillThere = errors.New("still there")

// wait for its end; it may be called again.
func (r *process) wait(limit time.Duration) error {
	select {
	case err := <-r.exited:
		r.exited <- err
		return err
	case <-time.After(limit):
		return fmt.Errorf("%w after %v", errStillThere, limit)
	}
}

// answers polls as a kubelet would.
func (r *process) answers(t *testing.T, path string) {
	t.Helper()
	if path == "" {
		t.Fatal("the container has no probe")
	}
	var err error
	for deadline := time.Now().Add(joinWait); time.Now().Before(deadline); {
		if err = r.ask(path); err == nil {
			return
		}
		if exit := r.wait(50 * time.Millisecond); !errors.Is(exit, errStillThere) {
			t.Fatalf("%s has ended: %v\n%s", r.name, exit, r.output.String())
		}
	}
	_ = r.cmd.Process.Kill()
	_ = r.wait(joinWait) // its output is complete then
	t.Fatalf("%s does not answer on %s within %v: %v\n%s", r.name, path, joinWait, err, r.output.String())
}

func (r *process) ask(path string) error {
	client := http.Client{Timeout: time.Second}
	reply, err := client.Get("http://" + r.metrics + path)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", reply.Status)
	}
	return nil
}

// freeAddress is one nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
