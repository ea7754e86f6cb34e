package probe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

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
	res.Survey = s
	return nil
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
