package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("Compile(%s): %v", raw, err)
	}
	return s
}

// field wraps the schema of one required field x.
func field(schema string) string {
	return `{"type":"object","properties":{"x":` + schema + `},"required":["x"]}`
}

func TestSynthesizeField(t *testing.T) {
	tests := []struct {
		name, schema string
		want         string // value of x
		origin       Origin
	}{
		{"String", `{"type":"string"}`, `"ordeal probe"`, Placeholder},
		{"Untyped", `{}`, `"ordeal probe"`, Placeholder},
		{"True", `true`, `"ordeal probe"`, Placeholder},
		{"Default", `{"type":"string","default":"main"}`, `"main"`, fromDefault},
		{"DefaultInvalid", `{"type":"string","default":7}`, `"ordeal probe"`, Placeholder},
		{"DefaultEmpty", `{"type":"string","default":""}`, `"ordeal probe"`, Placeholder},
		{"Example", `{"type":"string","examples":[7,"octo/cat"]}`, `"octo/cat"`, fromExample},
		{"DefaultBeforeEnum", `{"enum":["a","b"],"default":"b"}`, `"b"`, fromDefault},
		{"Enum", `{"type":"string","enum":["","fast","slow"]}`, `"fast"`, fromEnum},
		{"Const", `{"const":"v1","default":"v2"}`, `"v1"`, fromConst},
		{"ConstNull", `{"const":null}`, `null`, fromConst},
		{"Integer", `{"type":"integer"}`, `1`, Placeholder},
		{"IntegerMinimum", `{"type":"integer","minimum":5}`, `5`, Placeholder},
		{"IntegerMinimumFraction", `{"type":"integer","minimum":2.5}`, `3`, Placeholder},
		{"IntegerExclusive", `{"type":"integer","exclusiveMinimum":5}`, `6`, Placeholder},
		{"IntegerMaximum", `{"type":"integer","maximum":-3}`, `-3`, Placeholder},
		{"MultipleOf", `{"type":"integer","minimum":10,"multipleOf":7}`, `14`, Placeholder},
		{"MultipleOfTwice", `{"allOf":[{"type":"integer","multipleOf":4},{"multipleOf":6,"minimum":1}]}`, `12`, Placeholder},
		{"NumberMultiple", `{"type":"number","multipleOf":0.25,"exclusiveMinimum":1}`, `1.25`, Placeholder},
		{"NumberNarrow", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `0.125`, Placeholder},
		{"Boolean", `{"type":"boolean"}`, `false`, Placeholder},
		{"Null", `{"type":"null"}`, `null`, Placeholder},
		{"Nullable", `{"type":["null","integer"]}`, `1`, Placeholder},
		{"MinLength", `{"type":"string","minLength":15}`, `"ordeal probe or"`, Placeholder},
		{"MaxLength", `{"type":"string","maxLength":3}`, `"ord"`, Placeholder},
		{"MaxLengthHuge", `{"type":"string","maxLength":1e30}`, `"ordeal probe"`, Placeholder},
		{"Email", `{"type":"string","format":"email"}`, `"probe@example.com"`, fromFormat},
		{"UnknownFormat", `{"type":"string","format":"colour"}`, `"ordeal probe"`, Placeholder},
		{"Pattern", `{"type":"string","pattern":"^[A-Z]{2}-\\d{3}$"}`, `"AA-000"`, fromPattern},
		{"PatternLonger", `{"type":"string","pattern":"^x+$","minLength":4}`, `"xxxxx"`, fromPattern},
		{"PatternUnicodeEscape", `{"type":"string","pattern":"^\\u0041$"}`, `"A"`, fromPattern},
		{"PatternOpaqueWithEnum", `{"enum":["ab"],"pattern":"(?=a)b"}`, `"ab"`, fromEnum},
		{"ArrayOfItems", `{"type":"array","items":{"type":"integer"}}`, `[1]`, Placeholder},
		{"ArrayMinItems", `{"type":"array","minItems":2}`, `["ordeal probe","ordeal probe"]`, Placeholder},
		{"ArrayUnique", `{"type":"array","items":{"type":"string"},"minItems":3,"uniqueItems":true}`,
			`["ordeal probe","ordeal probe 2","ordeal probe 3"]`, Placeholder},
		{"ArrayEnum", `{"type":"array","items":{"enum":["a","b"]},"minItems":2,"uniqueItems":true}`, `["a","b"]`, fromEnum},
		{"Tuple", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":false}`, `[1,false]`, Placeholder},
		{"TupleDraft7", `{"type":"array","items":[{"type":"integer"}],"additionalItems":false}`, `[1]`, Placeholder},
		{"Contains", `{"type":"array","contains":{"const":9},"minContains":2}`, `[9,9]`, fromConst},
		{"Object", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a"]}`, `{"a":1}`, Placeholder},
		{"EmptyObject", `{"type":"object"}`, `{}`, Placeholder},
		{"MinProperties", `{"type":"object","minProperties":2,"properties":{"a":{"const":1}}}`, `{"a":1,"ordeal_probe":"ordeal probe"}`, Placeholder},
		{"PatternProperties", `{"type":"object","minProperties":1,"patternProperties":{"^k[0-9]$":{"type":"integer"}},"additionalProperties":false}`, `{"k0":1}`, Placeholder},
		{"DependentRequired", `{"type":"object","required":["a"],"dependentRequired":{"a":["b"],"b":["c"]}}`, `{"a":"ordeal probe","b":"ordeal probe","c":"ordeal probe"}`, Placeholder},
		{"DependentSchemas", `{"type":"object","required":["a"],"dependentSchemas":{"a":{"required":["z"],"properties":{"z":{"const":3}}}}}`, `{"a":"ordeal probe","z":3}`, Placeholder},
		{"AnyOf", `{"anyOf":[{"type":"null"},{"type":"integer","minimum":3}]}`, `null`, Placeholder},
		{"OneOfFirstImpossible", `{"oneOf":[false,{"const":"b"}]}`, `"b"`, fromConst},
		{"AllOf", `{"allOf":[{"type":"string"},{"minLength":13},{"maxLength":13}]}`, `"ordeal probe "`, Placeholder},
		{"IfThen", `{"type":"object","required":["kind"],"properties":{"kind":{"const":"a"}},"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["n"]},"else":{"required":["m"]}}`,
			`{"kind":"a","n":"ordeal probe"}`, Placeholder},
		{"Not", `{"type":"string","not":{"const":"ordeal probe"}}`, `"ordeal probe 2"`, Placeholder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, field(tt.schema))
			args, how, err := Synthesize(s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"x":`+tt.want+`}`, string(args)); diff != "" {
				t.Error(diff)
			}
			if how["x"] != tt.origin {
				t.Errorf("origin %q, want %q", how["x"], tt.origin)
			}
			if err := s.Validate(args); err != nil {
				t.Errorf("does not validate: %v", err)
			}
		})
	}
}

func TestSynthesizeArguments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"Anything", `{}`, `{}`},
		{"True", `true`, `{}`},
		{"NothingRequired", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`},
		{"ObjectOrNull", `{"type":["object","null"],"required":["a"]}`, `{"a":"ordeal probe"}`},
		{"TopOneOf", `{"oneOf":[{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]},{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}]}`, `{"id":1}`},
		{"Defs", `{"$defs":{"n":{"type":"integer","minimum":4}},"properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}`, `{"n":4}`},
		{"Anchor", `{"$defs":{"n":{"$anchor":"four","const":4}},"properties":{"n":{"$ref":"#four"}},"required":["n"]}`, `{"n":4}`},
		{"RecursionOptional", `{"type":"object","required":["v"],"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"v":1}`},
		{"RecursionArray", `{"type":"object","required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`, `{"kids":[{"kids":[]}]}`},
		{"RecursionAnyOf", `{"type":"object","required":["e"],"properties":{"e":{"$ref":"#/$defs/e"}},"$defs":{"e":{"anyOf":[{"type":"object","required":["not"],"properties":{"not":{"$ref":"#/$defs/e"}}},{"const":"leaf"}]}}}`, `{"e":{"not":"leaf"}}`},
		{"RootExample", `{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"examples":[{"a":"real","b":1}]}`, `{"a":"real"}`},
		{"RootConst", `{"const":{"a":1}}`, `{"a":1}`},
		{"SixtyAllOf", nested(60, `{"type":"object","required":["a"]}`), `{"a":"ordeal probe"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			args, _, err := Synthesize(s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(args)); diff != "" {
				t.Error(diff)
			}
			if err := s.Validate(args); err != nil {
				t.Errorf("does not validate: %v", err)
			}
		})
	}
}

func nested(levels int, core string) string {
	return strings.Repeat(`{"allOf":[`, levels) + core + strings.Repeat(`]}`, levels)
}

func TestSynthesizeDeclines(t *testing.T) {
	tests := []struct {
		name, schema, path string
		want               error
	}{
		{"False", `false`, "", ErrNoFiniteInstance},
		{"NotObject", `{"type":"array"}`, "", ErrNotObject},
		{"SelfRequired", `{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}`, "/next/next", ErrNoFiniteInstance},
		{"MutualRequired", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["b"],"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}}}}}`, "/b/a/b", ErrNoFiniteInstance},
		{"EmptyTypes", field(`{"allOf":[{"type":"string"},{"type":"integer"}]}`), "/x", ErrNoFiniteInstance},
		{"EmptySpan", field(`{"type":"integer","minimum":3,"maximum":2}`), "/x", ErrNoFiniteInstance},
		{"EmptyLength", field(`{"type":"string","minLength":3,"maxLength":2}`), "/x", ErrNoFiniteInstance},
		{"RequiredForbidden", `{"type":"object","required":["x"],"additionalProperties":false}`, "/x", ErrNoFiniteInstance},
		{"OnlyEmptyArray", field(`{"type":"array"}`), "/x", ErrEmpty},
		{"OnlyEmptyString", field(`{"type":"string","maxLength":0}`), "/x", ErrEmpty},
		{"OnlyEmptyEnum", field(`{"enum":[""]}`), "/x", ErrEmpty},
		{"NestedEmpty", field(`{"type":"object","required":["y"],"properties":{"y":{"type":"array","maxItems":0}}}`), "/x/y", ErrEmpty},
		{"Opaque", field(`{"type":"string","pattern":"^(?!x).*$"}`), "/x", ErrPattern},
		{"PatternNotMet", field(`{"type":"string","pattern":"^a$","minLength":2}`), "/x", ErrPattern},
		{"HugeText", field(`{"type":"string","minLength":1000000}`), "/x", ErrTooLarge},
		{"HugeArray", field(`{"type":"array","items":{},"minItems":1000000}`), "/x", ErrTooLarge},
		{"Deep", deep(80), "", ErrTooDeep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, _, err := Synthesize(mustCompile(t, tt.schema))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %s, %v, want %v", args, err, tt.want)
			}
			d, ok := errors.AsType[*Decline](err)
			if !ok || tt.name != "Deep" && d.Path != tt.path {
				t.Errorf("got %v at %q, want %q", err, d.Path, tt.path)
			}
		})
	}
}

// deep is a chain of required objects, each with its own definition.
func deep(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/%d"}}},`, i, i+1)
	}
	fmt.Fprintf(&b, `"%d":{"const":1}}}`, n)
	return b.String()
}

func TestPlaceholders(t *testing.T) {
	s := mustCompile(t, `{"properties":{"b":{},"a":{"type":"string"},"c":{"const":1}},"required":["c","b","a"]}`)
	_, how, err := Synthesize(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, how.Placeholders()); diff != "" {
		t.Error(diff)
	}
}

func TestFormatTables(t *testing.T) {
	for name, good := range formatSamples {
		s := mustCompile(t, `{"type":"string","format":"`+name+`"}`)
		for _, g := range good {
			if err := s.Validate(encode(g)); err != nil {
				t.Errorf("sample of %s: %v", name, err)
			}
		}
		bad, ok := formatOutsiders[name]
		if err := s.Validate(encode(bad)); err == nil || !ok {
			t.Errorf("outsider of %s, %q, is valid or missing", name, bad)
		}
	}
}
