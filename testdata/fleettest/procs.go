package fleettest

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// agentWait bounds the start of an agent: a connection and its streams.
const agentWait = 20 * time.Second

// Agent starts ordeal-agent with more arguments if need be, such as "--label",
// "zone=a", and returns once it has said that it is ready.
func Agent(t testing.TB, url, name string, args ...string) *Proc {
	t.Helper()
	p := AgentUnready(t, url, name, args...)
	ctx, cancel := context.WithTimeout(t.Context(), agentWait)
	defer cancel()
	if _, err := p.WaitStderr(ctx, "ready"); err != nil {
		t.Fatalf("fleettest: %v", err)
	}
	return p
}

// AgentUnready is Agent without the wait, for one that cannot reach its server.
func AgentUnready(t testing.TB, url, name string, args ...string) *Proc {
	t.Helper()
	_, agent := Build(t)
	cmd := exec.Command(agent, append([]string{"--nats", url, "--name", name}, args...)...)
	cmd.Dir = t.TempDir()
	return startProc(t, "agent "+name, cmd)
}

// Scan starts ordeal scan with these arguments on the fleet at url.
func Scan(t testing.TB, url string, args ...string) *Proc {
	t.Helper()
	return Ordeal(t, append(append([]string{"scan"}, args...), "--nats", url)...)
}

// Ordeal starts any verb of ordeal, in a directory of its own for the files it
// writes; Dir names it.
func Ordeal(t testing.TB, args ...string) *Proc {
	t.Helper()
	ordeal, _ := Build(t)
	cmd := exec.Command(ordeal, args...)
	cmd.Dir = t.TempDir()
	name := "ordeal"
	if len(args) > 0 {
		name += " " + args[0]
	}
	return startProc(t, name, cmd)
}

// Dir is the directory the process was started in.
func (p *Proc) Dir() string { return p.cmd.Dir }
