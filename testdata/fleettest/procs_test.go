package fleettest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFleet scans a target with an agent behind a cable, all of it real.
func TestFleet(t *testing.T) {
	target := MCPServer(t, MCPOptions{})
	n := StartNATS(t, NATSOptions{})
	c := NewCut(t, n.Addr())
	agent := Agent(t, c.URL(), "near", "--label", "zone=a")
	scan := Scan(t, n.URL(), target.URL, "--requests", "20", "--probes", "latency", "--tool", "echo", "--tool-args", `{"message": "{op_id}"}`, "--json", "--json-out", "scan.json")
	code, err := scan.Wait(within(t, 20*time.Second))
	if code != 0 || err != nil {
		t.Fatalf("scan: exit code %d, %v", code, err)
	}
	if !json.Valid([]byte(scan.Stdout())) {
		t.Errorf("stdout is no document: %.200s", scan.Stdout())
	}
	if _, err := os.Stat(filepath.Join(scan.Dir(), "scan.json")); err != nil {
		t.Error(err)
	}
	if ops := len(target.Seen()); ops < 20 || target.Calls() < 20 {
		t.Errorf("%d operations, %d calls; want 20 at the least", ops, target.Calls())
	}
	if s := c.Stats(); s.Up == 0 || s.Down == 0 {
		t.Errorf("%+v, want the agent behind the cut", s)
	}
	agent.Term()
	if code, err := agent.Wait(within(t, 20*time.Second)); err != nil || code != 0 {
		t.Errorf("agent: exit code %d, %v; want 0 after SIGTERM", code, err)
	}
}

// A verb that fails is a process that says why.
func TestOrdealFails(t *testing.T) {
	p := Ordeal(t, "no-such-verb")
	code, err := p.Wait(within(t, 20*time.Second))
	if code != 2 || err != nil || !strings.Contains(p.Stderr(), "no-such-verb") {
		t.Errorf("exit code %d, %v, stderr %q; want 2 and the verb", code, err, p.Stderr())
	}
}
