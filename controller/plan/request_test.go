package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// A plain HTTP target has no catalogue: what is called is the request its user
// wrote, with a second key or without.
func TestChooseRequest(t *testing.T) {
	json := []wire.Header{{Name: "content-type", Value: "application/JSON; charset=utf-8"}}
	rows := []struct {
		name, target, body string
		headers            []wire.Header
		want               Choice
	}{
		{"Get", "http-get:http://h/", "", nil, Choice{ArgsSource: "none", Mutability: ReadOnly}},
		{"PostNothing", "http-post:http://h/", "", nil, Choice{ArgsSource: "none", Mutability: Unknown}},
		{"PostJSON", "http-post:http://h/", `{"id":"{op_id}"}`, nil,
			Choice{ArgsSource: "user", Mutability: Unknown, Calls: []wire.ToolCall{{Args: []byte(`{"id":"{op_id}"}`)}}}},
		{"PostText", "http-post:http://h/", `say "hi" to {op_id}`, nil,
			Choice{ArgsSource: "user", Mutability: Unknown, Calls: []wire.ToolCall{{Args: []byte(`"say \"hi\" to {op_id}"`)}}}},
		{"PostBrokenJSON", "http-post:http://h/", `{"id":`, json, Choice{ArgsSource: "user", Mutability: Unknown}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := scan(t, func(s *spec.Spec) { s.TargetText, s.Target.Body, s.Target.Headers = r.target, r.body, r.headers })
			got, err := Choose(s, &wire.Survey{})
			if err != nil || len(got) != 1 {
				t.Fatalf("%d choices, %v", len(got), err)
			}
			if diff := cmp.Diff(r.want, *got[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
