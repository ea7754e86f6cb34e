package schema

import (
	"encoding/json"
	"slices"
	"testing"
)

// Null as a whole is malformed only where something has to be given: official
// SDKs decode it as a call without arguments.
func TestNullArgumentsOnlyWhereSomethingIsRequired(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`: true,
		`{"type":"object","properties":{"q":{"type":"string"}}}`:                  false,
		`{"type":"object"}`: false,
	} {
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		set, err := Cases(s, json.RawMessage(`{"q":"x"}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(set.Cases, func(c Case) bool { return c.Label == "wrong_container[null]" })
		if got != want {
			t.Errorf("%s: null sent %v, want %v", raw, got, want)
		}
	}
}
