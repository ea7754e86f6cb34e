package peers_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ordeal/testdata/peers"
)

func TestEveryPeerIsThere(t *testing.T) {
	for _, server := range []string{"server-everything", "server-filesystem", "server-memory"} {
		cmd := peers.Node(t, server)
		if _, err := os.Stat(cmd[1]); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
	for _, program := range []string{"mcp-server-git", "mcp-server-time"} {
		cmd := peers.Python(t, program)
		if out, err := exec.Command(cmd[0], "--help").CombinedOutput(); err != nil {
			t.Errorf("%s --help: %v\n%s", program, err, out)
		}
	}
}

func TestScripts(t *testing.T) {
	for name, cmd := range map[string][]string{
		"node":   peers.NodeScript(t, `import OpenAI from "openai"; import Anthropic from "@anthropic-ai/sdk"; console.log(typeof OpenAI, typeof Anthropic)`),
		"python": peers.PythonScript(t, `import openai, anthropic; print(type(openai.OpenAI).__name__, type(anthropic.Anthropic).__name__)`),
	} {
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		want := map[string]string{"node": "function function", "python": "type type"}[name]
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

// The lock must work behind any registry.
func TestLockNamesNoRegistry(t *testing.T) {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("package-lock.json names the registry it came from: run npm install with omit-lockfile-registry-resolved=true")
	}
}
