package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// Refusal says why a scan is not run: it would mislead or do harm.
type Refusal struct {
	Reason string
	Remedy string
}

func (r *Refusal) Error() string { return "refusing to scan: " + r.Reason + "\n  " + r.Remedy }

// Choice is what the scan will call.
type Choice struct {
	Calls      []wire.ToolCall // round robin by operation; one for a chosen tool, none for an LLM
	ArgsSource string          // user, none, or where synthesis took the values from
	Mutability Mutability
	Warnings   []string
	Verify     *wire.Tool // the oracle's tool
	Rejected   []string   // tools that rejected the arguments synthesized for them
}

// UserArgs reports that the user vouched for the arguments.
func (c *Choice) UserArgs() bool { return c.ArgsSource == "user" }

// Name of the first tool; empty for an LLM.
func (c *Choice) Name() string {
	if len(c.Calls) == 0 {
		return ""
	}
	return c.Calls[0].Name
}

// MaxCandidates bounds how many tools of a server are tried for one that accepts
// the arguments synthesized for it.
const MaxCandidates = 8

// Choose lists what could be called, best first, or refuses. There is one
// candidate where the user named a tool, several where the first accepted
// preflight decides. A tool that may change state needs to be named and a second
// key (AllowMutating).
func Choose(s *spec.Spec, survey *wire.Survey) ([]*Choice, error) {
	switch s.Target.Kind {
	case wire.OpenAI, wire.Anthropic:
		return []*Choice{{ArgsSource: "none", Mutability: ReadOnly}}, nil
	case wire.HTTP:
		return []*Choice{request(&s.Target)}, nil
	}
	switch {
	case len(survey.Tools) == 0:
		return nil, &Refusal{"the server offers no tools", "scan a server that lists at least one tool"}
	case s.Tool != "":
		c, err := named(s, survey)
		if err != nil {
			return nil, err
		}
		return []*Choice{c}, c.addOracle(s, survey)
	case s.VerifyTool != "":
		return nil, errors.New("--verify-tool needs --tool: name the writing tool whose effects are to be counted")
	case s.Target.Kind == wire.Mock:
		return []*Choice{everyTool(survey)}, nil
	}
	return automatic(survey)
}

// request is the one operation of a plain HTTP target. Nobody but its user can know
// what a POST does; who writes http-post:URL has asked for it, as for a chat. The
// body becomes the arguments, so that {op_id} is filled in; a body that is no JSON
// travels as a string, but under a content type of JSON it is sent as it stands.
func request(t *wire.Target) *Choice {
	c := &Choice{ArgsSource: "none", Mutability: ReadOnly}
	if t.Method == "GET" {
		return c
	}
	c.Mutability = Unknown
	if t.Body == "" {
		return c
	}
	c.ArgsSource = "user"
	args := json.RawMessage(t.Body)
	if !json.Valid(args) {
		if saysJSON(t.Headers) {
			return c
		}
		args, _ = json.Marshal(t.Body) // a string encodes
	}
	c.Calls = []wire.ToolCall{{Args: args}}
	return c
}

func saysJSON(headers []wire.Header) bool {
	return slices.ContainsFunc(headers, func(h wire.Header) bool {
		return strings.EqualFold(h.Name, "Content-Type") && strings.Contains(strings.ToLower(h.Value), "json")
	})
}

// everyTool of a mock is called round robin.
func everyTool(survey *wire.Survey) *Choice {
	c := &Choice{Mutability: ReadOnly, ArgsSource: survey.Tools[0].ArgsSource}
	for _, t := range survey.Tools {
		c.Calls = append(c.Calls, wire.ToolCall{Name: t.Name, Args: t.Args, OutputSchema: t.OutputSchema})
	}
	return c
}

func named(s *spec.Spec, survey *wire.Survey) (*Choice, error) {
	t := find(survey, s.Tool)
	if t == nil {
		names := toolNames(survey.Tools)
		hint := ""
		if near := spec.Nearest(s.Tool, names); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return nil, fmt.Errorf("unknown tool %q%s: the server offers %s", s.Tool, hint, some(names, 8))
	}
	m, why := Classify(t)
	c := &Choice{Mutability: m}
	switch {
	case m == Mutating && !s.AllowMutating:
		return nil, &Refusal{
			fmt.Sprintf("%q changes state: %s", t.Name, why),
			"a scan calls it hundreds of times; add --allow-mutating and point the scan at something disposable",
		}
	case m == Unknown && !s.AllowMutating:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%q is not known to be read-only: %s", t.Name, why))
	}
	if s.ToolArgs != nil {
		c.ArgsSource = "user"
		c.Calls = []wire.ToolCall{{Name: t.Name, Args: s.ToolArgs, OutputSchema: t.OutputSchema}}
		return c, nil
	}
	return c, c.synthesized(t)
}

// automatic takes the tools known to be read-only whose arguments could be
// synthesized: the server's first, then those that need no made-up values, then
// the rest.
func automatic(survey *wire.Survey) ([]*Choice, error) {
	var candidates []*Choice
	var first error
	for i := range survey.Tools {
		t := &survey.Tools[i]
		if m, _ := Classify(t); m != ReadOnly {
			continue
		}
		c := &Choice{Mutability: ReadOnly}
		err := c.synthesized(t)
		switch {
		case err == nil:
			candidates = append(candidates, c)
		case first == nil:
			first = err
		}
	}
	switch {
	case len(candidates) > 0:
		slices.SortStableFunc(candidates[1:], func(a, b *Choice) int { return madeUp(a) - madeUp(b) })
		return candidates[:min(len(candidates), MaxCandidates)], nil
	case first != nil:
		return nil, first
	}
	t := &survey.Tools[0]
	_, why := Classify(t)
	return nil, &Refusal{
		fmt.Sprintf("no tool is known to be read-only (%q: %s); tools here: %s", t.Name, why, some(toolNames(survey.Tools), 8)),
		"choose one with --tool NAME --tool-args JSON; one that changes state needs --allow-mutating and a disposable target",
	}
}

func madeUp(c *Choice) int {
	if c.ArgsSource == "placeholder" {
		return 1
	}
	return 0
}

// synthesized takes the survey's arguments for the tool, or refuses them.
func (c *Choice) synthesized(t *wire.Tool) error {
	const remedy = "pass --tool-args with arguments the tool accepts"
	switch {
	case t.ArgsEmpty:
		return &Refusal{fmt.Sprintf("arguments for %q could only be synthesized empty (%s), which asks the tool to do nothing", t.Name, t.ArgsError),
			"name it with --tool " + t.Name + " and " + remedy}
	case t.ArgsError != "":
		return &Refusal{fmt.Sprintf("no arguments for %q could be synthesized: %s", t.Name, t.ArgsError), "name it with --tool " + t.Name + " and " + remedy}
	}
	c.ArgsSource = t.ArgsSource
	c.Calls = []wire.ToolCall{{Name: t.Name, Args: t.Args, OutputSchema: t.OutputSchema}}
	return nil
}

// addOracle checks the second, reading tool.
func (c *Choice) addOracle(s *spec.Spec, survey *wire.Survey) error {
	if s.VerifyTool == "" {
		return nil
	}
	t := find(survey, s.VerifyTool)
	if t == nil {
		return fmt.Errorf("unknown --verify-tool %q: the server offers %s", s.VerifyTool, some(toolNames(survey.Tools), 8))
	}
	if m, why := Classify(t); m != ReadOnly {
		return &Refusal{fmt.Sprintf("--verify-tool %q is not known to be read-only: %s", t.Name, why), "name a tool that only reads the state the probed tool writes"}
	}
	if c.Mutability == ReadOnly {
		return &Refusal{fmt.Sprintf("--verify-tool counts writes, but %q only reads", c.Name()), "name the writing tool with --tool"}
	}
	if !c.hasOpID() {
		c.Warnings = append(c.Warnings, "--tool-args holds no {op_id}: writes cannot be attributed to operations, so duplicates stay unmeasured")
	}
	c.Verify = t
	return nil
}

func (c *Choice) hasOpID() bool {
	return slices.ContainsFunc(c.Calls, func(t wire.ToolCall) bool { return strings.Contains(string(t.Args), "{op_id}") })
}

// ContractTools lists the tools whose validation may be probed with malformed
// calls, with the baseline arguments to corrupt: read-only ones, the chosen one
// first, those that rejected their baseline last, at most s.ContractTools. The counts say what was left out and why.
func ContractTools(s *spec.Spec, survey *wire.Survey, c *Choice) (tools []ContractTool, skipped Skipped) {
	order := slices.Clone(survey.Tools)
	slices.SortStableFunc(order, func(a, b wire.Tool) int { return rank(a, c) - rank(b, c) })
	for _, t := range order {
		m, _ := Classify(&t)
		base, real := t.Args, false
		if c.UserArgs() && t.Name == c.Name() {
			base, real = c.Calls[0].Args, true
		}
		switch {
		case m == Mutating && !s.AllowMutating:
			skipped.Mutating++
		case m == Unknown && !s.AllowMutating:
			skipped.Unknown++
		case len(base) == 0:
			skipped.NoArgs = append(skipped.NoArgs, t.Name)
		case len(tools) == s.ContractTools:
			skipped.Capped++
		default:
			tools = append(tools, ContractTool{Tool: t, Baseline: base, RealArgs: real})
		}
	}
	return tools, skipped
}

// ContractTool is one tool of the contract probe.
type ContractTool struct {
	Tool     wire.Tool
	Baseline json.RawMessage
	RealArgs bool
}

// Skipped counts the tools the contract probe leaves alone.
type Skipped struct {
	Mutating, Unknown, Capped int
	NoArgs                    []string
}

func rank(t wire.Tool, c *Choice) int {
	switch {
	case t.Name == c.Name():
		return 0
	case slices.Contains(c.Rejected, t.Name):
		return 2
	}
	return 1
}

func find(survey *wire.Survey, name string) *wire.Tool {
	for i := range survey.Tools {
		if survey.Tools[i].Name == name {
			return &survey.Tools[i]
		}
	}
	return nil
}

func toolNames(tools []wire.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// some joins at most n names and says how many more there are.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
