package spec

import (
	"testing"

	"ordeal/agent/wire"
)

func TestWorkloadFits(t *testing.T) {
	const tool, prompt, body = "tools: [{tool: a, args: {prompt: x}}]", "tools: [{prompt: hi}]", "tools: [{body: {q: 1}}]"
	const noTool = `workload: scenario "prompt", step "prompt": names no tool, and a server of tools has nothing else to call: write tool: and args:`
	for _, tt := range []struct {
		kind wire.TargetKind
		yaml string
		want string
	}{
		{wire.MCP, tool, ""},
		{wire.Mock, tool, ""},
		{wire.MCP, prompt, noTool},
		{wire.Mock, prompt, noTool},
		{wire.OpenAI, prompt, ""},
		{wire.OpenAI, tool, `workload: scenario "a", step "a": has no prompt, and a language model takes nothing else: write prompt:`},
		{wire.Anthropic, body, `workload: scenario "body", step "body": has no prompt, and a language model takes nothing else: write prompt:`},
		{wire.HTTP, body, ""},
		{wire.HTTP, tool, `workload: scenario "a", step "a": names a tool, and plain HTTP has none: write body:`},
	} {
		w, err := ParseWorkload("mix.yaml", []byte(tt.yaml), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := WorkloadFits(w, tt.kind); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s for %s: got %q, want %q", tt.yaml, tt.kind, got, tt.want)
		}
	}
}
