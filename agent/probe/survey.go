package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ordeal/agent/schema"
	"ordeal/agent/wire"
)

// survey connects, lists the tools, and adds what the schema engine can make of
// each: arguments, static issues.
func survey(ctx context.Context, env *Env, res *wire.Result) error {
	s, err := env.Target.Survey(ctx)
	if err != nil {
		return err
	}
	for i := range s.Tools {
		study(&s.Tools[i])
	}
	if kept := fit(s.Tools); kept < len(s.Tools) {
		s.Notes = append(s.Notes, fmt.Sprintf("the catalogue has %d tools; the schemas of the last %d are too much to carry and left out", len(s.Tools), len(s.Tools)-kept))
	}
	res.Survey = s
	return nil
}

// Bounds of a survey, which travels as one message.
const (
	catalogueBytes   = 4 << 20 // schemas and arguments of all tools
	descriptionBytes = 1 << 10 // of one tool
)

// fit cuts a catalogue to what a message can carry: long descriptions first, then
// the schemas of the tools that come last. Every tool keeps its name. It returns
// how many tools are whole.
func fit(tools []wire.Tool) (whole int) {
	left := catalogueBytes
	for i := range tools {
		t := &tools[i]
		if len(t.Description) > descriptionBytes {
			t.Description = strings.ToValidUTF8(t.Description[:descriptionBytes], "") + "…"
		}
		if left -= len(t.InputSchema) + len(t.OutputSchema) + len(t.Args) + len(t.Description); left >= 0 {
			whole++
			continue
		}
		*t = wire.Tool{Name: t.Name, ReadOnly: t.ReadOnly, Destructive: t.Destructive, Required: t.Required,
			ArgsError: "the catalogue is too large for its schema to be carried"}
	}
	return whole
}

// study fills in what follows from a tool's declaration alone.
func study(t *wire.Tool) {
	for _, issue := range schema.Audit(t.Name, t.Description, t.InputSchema) {
		text := issue.Message
		if issue.Path != "" {
			text = issue.Path + ": " + text
		}
		t.Issues = append(t.Issues, text)
	}
	if len(t.OutputSchema) > 0 {
		if _, err := schema.Compile(t.OutputSchema); err != nil {
			t.Issues = append(t.Issues, "the output schema is not usable: "+err.Error())
		}
	}
	t.Required = requiredFields(t.InputSchema)
	compiled, err := schema.Compile(t.InputSchema)
	if err != nil {
		t.ArgsError = err.Error()
		return
	}
	args, how, err := schema.Synthesize(compiled)
	if err != nil {
		t.ArgsError, t.ArgsEmpty = err.Error(), errors.Is(err, schema.ErrEmpty)
		return
	}
	t.Args, t.ArgsSource = args, weakest(how)
}

func requiredFields(input json.RawMessage) int {
	var declared struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(input, &declared) != nil {
		return 0 // not an object, or no list of names: Audit has said so
	}
	return len(declared.Required)
}

// origins from what the author of the schema wrote to what was made up.
var origins = []schema.Origin{"const", "default", "example", "enum", "format", "pattern", schema.Placeholder}

// weakest is the origin that says least about the tool; empty without arguments.
func weakest(how schema.Source) string {
	worst := -1
	for _, origin := range how {
		worst = max(worst, slices.Index(origins, origin))
	}
	if worst < 0 {
		return ""
	}
	return string(origins[worst])
}
