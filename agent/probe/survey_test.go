package probe

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/metrics"
)

func TestSurvey(t *testing.T) {
	rows := []struct {
		name, schema string
		want         wire.Tool
	}{
		{"Placeholder", `{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer","default":3}},"required":["q","n"]}`,
			wire.Tool{Args: json.RawMessage(`{"n":3,"q":"ordeal probe"}`), ArgsSource: "placeholder", Required: 2}},
		{"Default", `{"type":"object","properties":{"n":{"type":"integer","default":3}},"required":["n"]}`,
			wire.Tool{Args: json.RawMessage(`{"n":3}`), ArgsSource: "default", Required: 1}},
		{"NothingRequired", `{"type":"object","properties":{"n":{"type":"integer"}}}`, wire.Tool{Args: json.RawMessage(`{}`)}},
		{"EmptyText", `{"type":"object","properties":{"s":{"type":"string","maxLength":0}},"required":["s"]}`,
			wire.Tool{ArgsError: "arguments at /s: a required field could only be left empty", ArgsEmpty: true, Required: 1}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			tool := wire.Tool{Name: "t", Description: "d", InputSchema: json.RawMessage(r.schema)}
			study(&tool)
			if r.want.ArgsSource == "" {
				tool.ArgsSource = "" // not the point of the row
			}
			tool.Name, tool.Description, tool.InputSchema = "", "", nil
			if diff := cmp.Diff(r.want, tool); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSurveyNames(t *testing.T) {
	tool := wire.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":false},"required":["a","b"]}`), OutputSchema: json.RawMessage(`{"type":7}`)}
	study(&tool)
	if tool.ArgsError == "" || tool.Args != nil {
		t.Errorf("arguments %s for a schema that nothing satisfies", tool.Args)
	}
	if len(tool.Issues) < 4 { // no description, a boolean property, b undeclared, the output schema
		t.Errorf("issues %q", tool.Issues)
	}
}

func TestPreflight(t *testing.T) {
	u := &wire.Unit{ID: "p", Kind: wire.PreflightUnit, Call: mockCall(), Target: wire.Target{Timeout: time.Second}}
	res := run(t, mockEnv(t, "healthy"), u)
	p := res.Preflight
	if p.Outcome != metrics.OK || !p.Delivered || !p.Usage || p.LatencyUS < 250_000 || p.LatencyUS > 450_000 || res.Calls != 1 {
		t.Errorf("%+v, %d calls", p, res.Calls)
	}
	u.Call = wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: json.RawMessage(`{}`)}}}
	if p := run(t, mockEnv(t, "healthy"), u).Preflight; p.Outcome != metrics.ToolError || p.Message != "invalid arguments: query is required" {
		t.Errorf("%+v", p)
	}
}
