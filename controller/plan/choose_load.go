package plan

import (
	"errors"
	"fmt"
	"strings"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// ChooseLoad lists what a load test could call, as Choose does; the tools of a
// workload are all chosen, and each is held to the same rules.
func ChooseLoad(s *spec.Spec, survey *wire.Survey) ([]*Choice, error) {
	w := s.Load.Workload
	if w == nil {
		return Choose(s, survey)
	}
	c := &Choice{Mutability: ReadOnly, ArgsSource: "user"}
	if s.Target.Kind == wire.OpenAI || s.Target.Kind == wire.Anthropic || s.Target.Kind == wire.HTTP {
		return []*Choice{c}, nil
	}
	var problems []error
	seen := map[string]bool{}
	for _, sc := range w.Scenarios {
		for _, st := range sc.Steps {
			if !seen[st.Tool] {
				seen[st.Tool] = true
				problems = append(problems, c.add(s, survey, st))
			}
		}
	}
	return []*Choice{c}, errors.Join(problems...)
}

// add takes a step's tool among those to call.
func (c *Choice) add(s *spec.Spec, survey *wire.Survey, st wire.Step) error {
	if st.Tool == "" {
		return fmt.Errorf("workload: step %q names no tool, and the target has nothing else to call", st.Name)
	}
	t := find(survey, st.Tool)
	if t == nil {
		names := toolNames(survey.Tools)
		hint := ""
		if near := spec.Nearest(st.Tool, names); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return fmt.Errorf("workload: unknown tool %q%s: the server offers %s", st.Tool, hint, some(names, 8))
	}
	m, why := Classify(t)
	switch {
	case m == Mutating && !s.AllowMutating:
		return &Refusal{fmt.Sprintf("the workload calls %q, which changes state: %s", t.Name, why),
			"add --allow-mutating and point the load at something disposable"}
	case m == Unknown && !s.AllowMutating:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%q is not known to be read-only: %s", t.Name, why))
	}
	if m != ReadOnly {
		c.Mutability = m
	}
	if !strings.Contains(string(st.Args), "${") {
		c.Calls = append(c.Calls, wire.ToolCall{Name: t.Name, Args: st.Args})
		return nil
	}
	c.Calls = append(c.Calls, wire.ToolCall{Name: t.Name})
	return nil
}
