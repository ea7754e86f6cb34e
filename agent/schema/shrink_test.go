package schema

import (
	"encoding/json"
	"testing"
)

func TestShrink(t *testing.T) {
	yes := func(json.RawMessage) bool { return true }
	person := `{"type":"object","properties":{"name":{"type":"string","maxLength":5},"age":{"type":"integer","maximum":150},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"required":["name"]}`
	tests := []struct {
		name, schema, payload string
		accepted              func(json.RawMessage) bool
		tries                 int
		want                  string
	}{
		{"DropsOptional", person, `{"name":"ann","age":"old","tags":["a","b"]}`, yes, 100, `{"age":"","name":""}`},
		{"ShortensText", person, `{"name":"abcdefghijklmnopqrst"}`, yes, 100, `{"name":"abcdef"}`},
		{"SimplifiesNumber", person, `{"name":"x","age":987654}`, yes, 200, `{"age":151,"name":""}`},
		{"ShortensArray", person, `{"name":"x","tags":["a","b","c","a","d"]}`, yes, 100, `{"name":"","tags":["a","a"]}`},
		{"KeepsTheViolation", mockTool, `{"query":12345.678}`, yes, 100, `{"query":0}`},
		{"AsksTheTool", person, `{"name":"abcdefghijklmnopqrst"}`, func(p json.RawMessage) bool { return len(p) >= len(`{"name":"0123456789"}`) }, 100, `{"name":"abcdefghij"}`},
		{"NoTries", person, `{"name":"abcdefghij"}`, yes, 0, `{"name":"abcdefghij"}`},
		{"NotForbidden", person, `{"name":"ann","age":3}`, yes, 100, `{"name":"ann","age":3}`},
		{"NotJSON", person, `{`, yes, 100, `{`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			asked := 0
			got := Shrink(s, Case{Payload: json.RawMessage(tt.payload)}, func(p json.RawMessage) bool {
				asked++
				if _, refused := forbids(s.Validate(p)); !refused {
					t.Errorf("the tool was asked about %s, which is valid", p)
				}
				return tt.accepted(p)
			}, tt.tries)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if asked > tt.tries {
				t.Errorf("asked %d times, allowed %d", asked, tt.tries)
			}
		})
	}
}

func TestShrinkEveryCase(t *testing.T) {
	s, _, set := derive(t, wide(14), Options{})
	for _, c := range set.Cases {
		got := Shrink(s, c, func(json.RawMessage) bool { return true }, 50)
		if _, refused := forbids(s.Validate(got)); refused != c.Forbidden || len(got) > len(c.Payload) {
			t.Errorf("%s: %.100s shrank to %.100s", c.Label, c.Payload, got)
		}
	}
}
