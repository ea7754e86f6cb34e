package agentcmd

import (
	"testing"

	"ordeal/agent/wire"
)

func TestDefaultNameFits(t *testing.T) {
	for host, want := range map[string]string{"laptop": "laptop-7", "node1.example.com": "node1-example-com-7", "": "agent-7"} {
		got := agentName(host, 7)
		if err := wire.CheckName("agent", got); got != want || err != nil {
			t.Errorf("%q: name %q, %v; want %q", host, got, err, want)
		}
	}
}
