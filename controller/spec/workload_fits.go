package spec

import (
	"encoding/json"
	"errors"
	"fmt"

	"ordeal/agent/wire"
)

// WorkloadFits checks that the steps of a workload are calls that a target of a
// kind knows: a tool for MCP and a mock, a prompt for a model, a body over HTTP.
func WorkloadFits(w *wire.Workload, kind wire.TargetKind) error {
	var problems []error
	for _, sc := range w.Scenarios {
		for _, st := range sc.Steps {
			if want := misfit(&st, kind); want != "" {
				problems = append(problems, fmt.Errorf("workload: scenario %.60q, step %.60q: %s", sc.Name, st.Name, want))
			}
		}
	}
	return errors.Join(problems...)
}

// misfit says what a step should be instead; empty when it fits.
func misfit(st *wire.Step, kind wire.TargetKind) string {
	switch kind {
	case wire.MCP, wire.Mock:
		if st.Tool == "" {
			return "names no tool, and a server of tools has nothing else to call: write tool: and args:"
		}
	case wire.OpenAI, wire.Anthropic:
		if st.Tool != "" || !hasPrompt(st.Args) {
			return "has no prompt, and a language model takes nothing else: write prompt:"
		}
	case wire.HTTP:
		if st.Tool != "" {
			return "names a tool, and plain HTTP has none: write body:"
		}
	}
	return ""
}

func hasPrompt(args json.RawMessage) bool {
	var a struct{ Prompt *string }
	return json.Unmarshal(args, &a) == nil && a.Prompt != nil
}
