package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// composer writes schemas from a stream of decisions, so that random bytes reach
// the keywords instead of the JSON parser.
type composer struct {
	stream []byte
	depth  int
}

func (c *composer) pick(n int) int {
	if len(c.stream) == 0 {
		return 0
	}
	b := c.stream[0]
	c.stream = c.stream[1:]
	return int(b) % n
}

func (c *composer) small() any { return c.pick(6) }

func (c *composer) value() any {
	return []any{"a", 1, 1.5, nil, true, []any{}, map[string]any{"a": 1}, "", []any{"a"}, "2024-01-15", -3}[c.pick(11)]
}

func (c *composer) name() string { return []string{"a", "b", "c", "d/e"}[c.pick(4)] }

func (c *composer) names() []any {
	var out []any
	seen := map[string]bool{}
	for range c.pick(4) {
		if n := c.name(); !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	if out == nil {
		return []any{}
	}
	return out
}

func (c *composer) list() []any {
	out := []any{c.schema()}
	for range c.pick(3) {
		out = append(out, c.schema())
	}
	return out
}

func (c *composer) members() map[string]any {
	out := map[string]any{}
	for range c.pick(4) {
		out[c.name()] = c.schema()
	}
	return out
}

// schema writes one schema of up to five keywords.
func (c *composer) schema() any {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > 5 || len(c.stream) == 0 {
		return map[string]any{"type": "string"}
	}
	if k := c.pick(20); k < 2 {
		return k == 0
	}
	out := map[string]any{}
	for range 1 + c.pick(5) {
		c.keyword(out)
	}
	return out
}

var composedTypes = []any{"object", "string", "integer", "number", "array", "boolean", "null", []any{"string", "null"}, []any{"object", "null"}, []any{"integer", "string"}}

func (c *composer) keyword(out map[string]any) {
	patterns := []any{"^a", "^[a-z]{2,4}$", "(?=a)", "b+|c", "^(a+)+$", "\\d"}
	formats := []any{"email", "date", "date-time", "uuid", "ipv4", "uri", "regex", "unheard-of"}
	refs := []any{"#", "#/$defs/one", "#/$defs/two", "#/properties/a"}
	table := []struct {
		name string
		make func() any
	}{
		{"type", func() any { return composedTypes[c.pick(len(composedTypes))] }},
		{"type", func() any { return composedTypes[c.pick(4)] }},
		{"properties", func() any { return c.members() }}, {"required", func() any { return c.names() }},
		{"items", c.schema}, {"prefixItems", func() any { return c.list() }}, {"contains", c.schema},
		{"minItems", c.small}, {"maxItems", c.small}, {"uniqueItems", func() any { return c.pick(2) == 1 }},
		{"minContains", c.small}, {"minLength", c.small}, {"maxLength", c.small},
		{"pattern", func() any { return patterns[c.pick(len(patterns))] }}, {"format", func() any { return formats[c.pick(len(formats))] }},
		{"minimum", c.small}, {"maximum", c.small}, {"exclusiveMinimum", c.small}, {"exclusiveMaximum", c.small},
		{"multipleOf", func() any { return []any{1, 2, 0.1, 0.25, 7}[c.pick(5)] }},
		{"enum", func() any { return []any{c.value(), c.value()} }}, {"const", c.value}, {"default", c.value},
		{"examples", func() any { return []any{c.value()} }},
		{"anyOf", func() any { return c.list() }}, {"oneOf", func() any { return c.list() }}, {"allOf", func() any { return c.list() }},
		{"not", c.schema}, {"if", c.schema}, {"then", c.schema}, {"else", c.schema},
		{"additionalProperties", c.schema}, {"patternProperties", func() any { return map[string]any{"^x": c.schema()} }},
		{"propertyNames", c.schema}, {"minProperties", c.small}, {"maxProperties", c.small},
		{"dependentRequired", func() any { return map[string]any{c.name(): c.names()} }},
		{"dependentSchemas", func() any { return map[string]any{c.name(): c.schema()} }},
		{"unevaluatedProperties", c.schema}, {"unevaluatedItems", c.schema}, {"$ref", func() any { return refs[c.pick(len(refs))] }},
	}
	k := table[c.pick(len(table))]
	out[k.name] = k.make()
}

// compose writes an input schema with two definitions.
func compose(stream []byte) json.RawMessage {
	c := &composer{stream: stream}
	out := map[string]any{"type": "object"}
	out["properties"] = c.members()
	out["required"] = c.names()
	for range c.pick(4) {
		c.keyword(out)
	}
	out["$defs"] = map[string]any{"one": c.schema(), "two": c.schema()}
	return encode(out)
}

// TestComposedSchemas holds every promise on random schemas: synthesized
// arguments are valid, forbidden cases are refused, the others are valid, twice the same.
func TestComposedSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	compiled, filled, compared := 0, 0, 0
	var slowest time.Duration
	for range 400 {
		stream := make([]byte, 40+r.IntN(160))
		for i := range stream {
			stream[i] = byte(r.Uint32())
		}
		raw := compose(stream)
		start := time.Now()
		s, err := Compile(raw)
		if err != nil {
			continue // a reference into a part that was not written
		}
		compiled++
		if _, _, err := Synthesize(s); err == nil {
			filled++
		}
		exercise(t, s)
		compared += samePlain(t, s, raw)
		slowest = max(slowest, time.Since(start))
		if t.Failed() {
			t.Fatalf("schema: %s", raw)
		}
	}
	t.Logf("%d compiled, %d filled, %d verdicts compared, slowest %v", compiled, filled, compared, slowest)
	if compiled < 200 || filled < 100 || compared < 1000 {
		t.Errorf("%d compiled, %d filled of 400, %d compared: the test lost its grip", compiled, filled, compared)
	}
}

// samePlain compares our verdicts with those of the engine without gauge, where
// all patterns are understood, and returns how many were compared.
func samePlain(t *testing.T, s *Schema, raw json.RawMessage) int {
	t.Helper()
	args, _, err := Synthesize(s)
	if err != nil || len(s.Limits()) > 0 {
		return 0
	}
	doc, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	c := engine.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(base, doc); err != nil {
		t.Fatal(err)
	}
	plain, err := c.Compile(base)
	if err != nil {
		return 0 // a schema of an older draft
	}
	set, err := Cases(s, args, Options{MaxCases: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Cases {
		v, err := decode(c.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if refused := plain.Validate(v) != nil; refused != c.Forbidden {
			t.Errorf("%s: the plain engine refuses: %v, we: %v", c.Label, refused, c.Forbidden)
		}
	}
	return len(set.Cases)
}

func FuzzComposed(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		raw := compose(stream[:min(len(stream), 400)])
		start := time.Now()
		s, err := Compile(raw)
		if err != nil {
			return
		}
		exercise(t, s)
		if d := time.Since(start); d > patience {
			t.Errorf("took %v", d)
		}
		if t.Failed() {
			t.Logf("schema: %s", raw)
		}
	})
}
