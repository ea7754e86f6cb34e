package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// derive makes the baseline and its cases.
func derive(t testing.TB, raw string, opt Options) (*Schema, json.RawMessage, Set) {
	t.Helper()
	s := mustCompile(t, raw)
	args, _, err := Synthesize(s)
	if err != nil {
		t.Fatalf("Synthesize(%s): %v", raw, err)
	}
	set, err := Cases(s, args, opt)
	if err != nil {
		t.Fatalf("Cases(%s): %v", raw, err)
	}
	checkSet(t, s, set)
	return s, args, set
}

// checkSet holds a set against the promises of the type.
func checkSet(t testing.TB, s *Schema, set Set) {
	t.Helper()
	labels, payloads := map[string]bool{}, map[string]bool{}
	for _, c := range set.Cases {
		err := s.Validate(c.Payload)
		refusal, refused := forbids(err)
		if refused != c.Forbidden || !refused && err != nil {
			t.Errorf("%s: Forbidden %v, Validate says %v for %.200s", c.Label, c.Forbidden, err, c.Payload)
		}
		if refused && (c.Why == "" || strings.Contains(c.Why, "\n") || refusal.Reason == "") {
			t.Errorf("%s: Why is %q", c.Label, c.Why)
		}
		if !refused && !c.Kind.permissive() {
			t.Errorf("%s: valid payload %.200s kept", c.Label, c.Payload)
		}
		if labels[c.Label] || payloads[string(c.Payload)] {
			t.Errorf("%s: label or payload comes twice", c.Label)
		}
		labels[c.Label], payloads[string(c.Payload)] = true, true
	}
}

func labels(set Set, forbiddenOnly bool) []string {
	var out []string
	for _, c := range set.Cases {
		if c.Forbidden || !forbiddenOnly {
			out = append(out, c.Label)
		}
	}
	return out
}

const mockTool = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`

func fourStrings(rest string) string {
	return `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}},"required":["a","b","c","d"]` + rest + `}`
}

func TestClassicCounts(t *testing.T) {
	tests := []struct {
		name, schema              string
		cases, forbidden, permits int
	}{
		{"MockTool", mockTool, 5, 3, 2},
		{"FourStrings", fourStrings(""), 21, 13, 8},
		{"FourStringsClosed", fourStrings(`,"additionalProperties":false`), 22, 14, 8},
		{"OptionalInteger", `{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9}}}`, 3, 3, 0},
		{"Union", `{"type":"object","properties":{"n":{"type":["string","integer"]}}}`, 3, 1, 2},
		{"Untyped", `{"type":"object","properties":{"n":{}}}`, 4, 0, 4},
		{"NothingDeclared", `{"type":"object"}`, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, set := derive(t, tt.schema, Options{ReferenceOnly: true})
			forbidden, possible := set.Strictness()
			if got := len(set.Cases); got != tt.cases || possible != tt.cases || forbidden != tt.forbidden {
				t.Errorf("%d cases, %d of %d forbidden, want %d and %d: %v", got, forbidden, possible, tt.cases, tt.forbidden, labels(set, false))
			}
			_, _, full := derive(t, tt.schema, Options{})
			if f, p := full.Strictness(); f != forbidden || p != possible {
				t.Errorf("strictness %d/%d with all kinds, %d/%d with the classic ones", f, p, forbidden, possible)
			}
		})
	}
}

func TestMockToolCases(t *testing.T) {
	_, _, set := derive(t, mockTool, Options{ReferenceOnly: true})
	type row struct {
		Label, Payload string
		Forbidden      bool
		Carries        bool
	}
	var got []row
	for _, c := range set.Cases {
		got = append(got, row{c.Label, string(c.Payload), c.Forbidden, c.CarriesBaseline})
	}
	want := []row{
		{"missing_required[query]", `{}`, true, false},
		{"null_required[query]", `{"query":null}`, true, false},
		{"wrong_type[query]", `{"query":12345}`, true, false},
		{"empty_string[query]", `{"query":""}`, false, false},
		{"very_long_string[query]", `{"query":"` + strings.Repeat("A", 50_000) + `"}`, false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestKeywords names, per keyword, a case that must come out of it and the reason of its refusal.
func TestKeywords(t *testing.T) {
	tests := []struct {
		name, schema, label, payload, why string
	}{
		{"NullRequired", mockTool, "null_required[query]", `{"query":null}`, "at /query: got null, want string"},
		{"NullOptional", `{"properties":{"q":{"type":"string"}}}`, "null_required[q]", `{"q":null}`, "at /q: got null, want string"},
		{"WrongTypeInteger", field(`{"type":"integer"}`), "wrong_type[x]", `{"x":"ordeal probe"}`, "at /x: got string, want integer"},
		{"WrongTypeUnion", field(`{"type":["string","integer"]}`), "wrong_type[x]", `{"x":true}`, "at /x: got boolean, want integer or string"},
		{"WrongTypeThroughRef", `{"properties":{"x":{"$ref":"#/$defs/s"}},"required":["x"],"$defs":{"s":{"allOf":[{"type":"string"}]}}}`, "wrong_type[x]", `{"x":12345}`, "at /x: got number, want string"},
		{"EmptyString", field(`{"type":"string","minLength":1}`), "empty_string[x]", `{"x":""}`, "at /x: minLength: got 0, want 1"},
		{"VeryLong", field(`{"type":"string","maxLength":9}`), "very_long_string[x]", `{"x":"` + strings.Repeat("A", 50_000) + `"}`, "at /x: maxLength: got 50,000, want 9"},
		{"VeryLongAbove", field(`{"type":"string","maxLength":50000}`), "very_long_string[x]", `{"x":"` + strings.Repeat("A", 50_001) + `"}`, "at /x: maxLength: got 50,001, want 50,000"},
		{"Minimum", field(`{"type":"integer","minimum":0,"maximum":9}`), "out_of_range[x]", `{"x":-1}`, "at /x: minimum: got -1, want 0"},
		{"Maximum", field(`{"type":"integer","minimum":0,"maximum":9}`), "out_of_range[x]#2", `{"x":10}`, "at /x: maximum: got 10, want 9"},
		{"MinimumFraction", field(`{"type":"number","minimum":2.5}`), "out_of_range[x]", `{"x":1.5}`, "at /x: minimum: got 1.5, want 2.5"},
		{"ExclusiveMinimum", field(`{"type":"number","exclusiveMinimum":2.5}`), "out_of_range[x]", `{"x":2.5}`, "at /x: exclusiveMinimum: got 2.5, want 2.5"},
		{"ExclusiveMaximum", field(`{"type":"integer","exclusiveMaximum":7}`), "out_of_range[x]", `{"x":7}`, "at /x: exclusiveMaximum: got 7, want 7"},
		{"ExclusiveDraft4", field(`{"type":"integer","maximum":7,"exclusiveMaximum":true}`), "out_of_range[x]", `{"x":7}`, "at /x: exclusiveMaximum: got 7, want 7"},
		{"MissingRequired", mockTool, "missing_required[query]", `{}`, "missing property 'query'"},
		{"MissingAll", `{"required":["a","b"]}`, "missing_all_required", `{}`, "missing properties 'a', 'b'"},
		{"ExtraParam", `{"type":"object","additionalProperties":false}`, "extra_param[ordeal_unknown_field]", `{"ordeal_unknown_field":true}`, "additional properties 'ordeal_unknown_field' not allowed"},
		{"ExtraUnevaluated", `{"type":"object","unevaluatedProperties":false}`, "extra_param[ordeal_unknown_field]", `{"ordeal_unknown_field":true}`, "at /ordeal_unknown_field: unevaluatedProperties: nothing is allowed here"},
		{"MultipleOf", field(`{"type":"integer","multipleOf":5}`), "not_multiple_of[x]", `{"x":6}`, "at /x: multipleOf: got 6, want 5"},
		{"MultipleOfFraction", field(`{"type":"number","multipleOf":0.5,"maximum":1}`), "not_multiple_of[x]", `{"x":0.75}`, "at /x: multipleOf: got 0.75, want 0.5"},
		{"Fractional", field(`{"type":"integer"}`), "fractional_integer[x]", `{"x":1.5}`, "at /x: got number, want integer"},
		{"FractionalInRange", field(`{"type":"integer","minimum":10}`), "fractional_integer[x]", `{"x":1.5}`, ""},
		{"TooFewItems", field(`{"type":"array","items":{"type":"integer"},"minItems":3}`), "too_few_items[x]", `{"x":[1,1]}`, "at /x: minItems: got 2, want 3"},
		{"TooManyItems", field(`{"type":"array","items":{"type":"integer"},"maxItems":2}`), "too_many_items[x]", `{"x":[1,1,1]}`, "at /x: maxItems: got 3, want 2"},
		{"TooManyDistinct", field(`{"type":"array","items":{"type":"integer"},"maxItems":2,"uniqueItems":true}`), "too_many_items[x]", `{"x":[1,2,3]}`, "at /x: maxItems: got 3, want 2"},
		{"Duplicates", field(`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`), "duplicate_items[x]", `{"x":[1,1]}`, "at /x: items at 0 and 1 are equal"},
		{"WrongItem", field(`{"type":"array","items":{"type":"string"}}`), "wrong_item[x/0]", `{"x":[12345]}`, "at /x/0: got number, want string"},
		{"WrongTupleItem", field(`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`), "wrong_item[x/1]", `{"x":["ordeal probe","ordeal probe"]}`, "at /x/1: got string, want integer"},
		{"ItemTooMany", field(`{"type":"array","prefixItems":[{"type":"integer"}],"items":false}`), "wrong_item[x/1]", `{"x":[1,"ordeal probe"]}`, "at /x/1: items: nothing is allowed here"},
		{"Contains", field(`{"type":"array","contains":{"const":9}}`), "wrong_item[x]", `{"x":["ordeal probe"]}`, "at /x: no items match contains schema"},
		{"EnumOutsider", field(`{"type":"string","enum":["on","off"]}`), "enum_outsider[x]", `{"x":"on_ordeal"}`, "at /x: value must be one of 'on', 'off'"},
		{"ConstOutsider", field(`{"const":3}`), "const_outsider[x]", `{"x":4}`, "at /x: value must be 3"},
		{"PatternOutsider", field(`{"type":"string","pattern":"^[a-z]+$","maxLength":5}`), "pattern_outsider[x]", `{"x":"!"}`, "at /x: pattern: does not match ^[a-z]+$"},
		{"FormatOutsider", field(`{"type":"string","format":"date"}`), "format_outsider[x]", `{"x":"2024-02-30"}`, `at /x: format: not a valid date: parsing time "2024-02-30": day out of range`},
		{"FormatFitsLength", field(`{"type":"string","format":"ipv4","maxLength":9,"minLength":9}`), "format_outsider[x]", `{"x":"256.0.2.1"}`, ""},
		{"TooShort", field(`{"type":"string","minLength":4}`), "too_short[x]", `{"x":"ord"}`, "at /x: minLength: got 3, want 4"},
		{"TooLong", field(`{"type":"string","maxLength":4}`), "too_long[x]", `{"x":"ordeA"}`, "at /x: maxLength: got 5, want 4"},
		{"TooFewProperties", field(`{"type":"object","minProperties":2}`), "too_few_properties[x]", `{"x":{"ordeal_probe_2":"ordeal probe"}}`, "at /x: minProperties: got 1, want 2"},
		{"TooManyProperties", field(`{"type":"object","maxProperties":1}`), "too_many_properties[x]", `{"x":{"ordeal_unknown_field_1":"ordeal probe","ordeal_unknown_field_2":"ordeal probe"}}`, "at /x: maxProperties: got 2, want 1"},
		{"DependentRequired", `{"properties":{"a":{"type":"integer"},"b":{"const":2}},"dependentRequired":{"a":["b"]}}`, "dependent_required", `{"a":1}`, "properties 'b' required, if 'a' exists"},
		{"DependentSchemas", `{"properties":{"a":{"type":"integer"}},"dependentSchemas":{"a":{"required":["b"]}}}`, "dependent_required", `{"a":1}`, "missing property 'b'"},
		{"DependenciesDraft7", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"integer"}},"dependencies":{"a":["b"]}}`, "dependent_required", `{"a":1}`, "properties 'b' required, if 'a' exists"},
		{"PropertyNames", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"}}`, "bad_property_name[ordeal probe!]", `{"ordeal probe!":"ordeal probe"}`, "invalid propertyName 'ordeal probe!'"},
		{"AdditionalSchema", `{"type":"object","additionalProperties":{"type":"string"}}`, "bad_extra_value[ordeal_unknown_field]", `{"ordeal_unknown_field":12345}`, "at /ordeal_unknown_field: got number, want string"},
		{"PatternProperties", `{"type":"object","patternProperties":{"^x-":{"type":"integer"}}}`, "bad_extra_value[x-]", `{"x-":"ordeal probe"}`, "at /x-: got string, want integer"},
		{"NoBranch", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "no_branch", `{"ordeal_unknown_field":true}`, "anyOf: none of 2 alternatives fits"},
		{"TaggedUnion", field(`{"oneOf":[{"properties":{"kind":{"const":"a"},"u":{"type":"integer"}},"required":["kind","u"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`),
			"wrong_type[x/u]", `{"x":{"kind":"a","u":"ordeal probe"}}`, "at /x: oneOf: none of 2 alternatives fits; closest: at /x/u: got string, want integer"},
		{"NoBranchField", field(`{"oneOf":[{"const":1},{"const":"b"}]}`), "no_branch[x]", `{"x":true}`, ""},
		{"TwoBranches", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, "two_branches", `{"a":"ordeal probe","b":"ordeal probe"}`, "oneOf: alternatives 0 and 1 both fit"},
		{"NotAllowed", field(`{"type":"string","not":{"enum":["root"]}}`), "not_allowed[x]", `{"x":"root"}`, "at /x: not: fits the excluded schema"},
		{"BrokenCondition", `{"type":"object","properties":{"mode":{"enum":["a","b"]}},"if":{"properties":{"mode":{"const":"b"}},"required":["mode"]},"then":{"required":["n"]}}`, "broken_condition", `{"mode":"b"}`, "missing property 'n'"},
		{"BrokenElse", field(`{"if":{"type":"integer"},"else":{"type":"string","minLength":20}}`), "broken_condition[x]", `{"x":"ordeal probe"}`, "at /x: minLength: got 12, want 20"},
		{"WrongContainer", `{"type":"object"}`, "wrong_container[array]", `[]`, "got array, want object"},
		{"Nested", field(`{"type":"object","properties":{"zip":{"type":"string","minLength":5}},"required":["zip"]}`), "too_short[x/zip]", `{"x":{"zip":"orde"}}`, "at /x/zip: minLength: got 4, want 5"},
		{"NestedMissing", field(`{"type":"object","properties":{"zip":{"type":"string"}},"required":["zip"]}`), "missing_required[x/zip]", `{"x":{}}`, "at /x: missing property 'zip'"},
		{"NestedOptional", `{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"type":"integer","maximum":3}}}}}`, "out_of_range[a/n]", `{"a":{"n":4}}`, "at /a/n: maximum: got 4, want 3"},
		{"ItemField", field(`{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`), "wrong_type[x/0/id]", `{"x":[{"id":"ordeal probe"}]}`, "at /x/0/id: got string, want integer"},
		{"NullableBranch", `{"type":"object","properties":{"n":{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"default":null}}}`, "out_of_range[n]", `{"n":0}`, "at /n: anyOf: none of 2 alternatives fits; closest: at /n: minimum: got 0, want 1"},
		{"EscapedPath", `{"type":"object","properties":{"a/b":{"type":"string"}}}`, "wrong_type[a~1b]", `{"a/b":12345}`, "at /a~1b: got number, want string"},
		{"AddedWithItsDependents", `{"properties":{"a":{"type":"integer"},"b":{"const":2}},"dependentRequired":{"a":["b"]}}`, "wrong_type[a]", `{"a":"ordeal probe","b":2}`, "at /a: got string, want integer"},
	}
	aimed := map[Kind]bool{}
	for _, tt := range tests {
		kind, _, _ := strings.Cut(tt.label, "[")
		aimed[Kind(kind)] = true
		t.Run(tt.name, func(t *testing.T) {
			_, _, set := derive(t, tt.schema, Options{})
			i := slices.IndexFunc(set.Cases, func(c Case) bool { return c.Label == tt.label })
			if i < 0 {
				t.Fatalf("no case %s in %q", tt.label, labels(set, false))
			}
			c := set.Cases[i]
			if diff := cmp.Diff(tt.payload, string(c.Payload)); diff != "" {
				t.Error(diff)
			}
			if !c.Forbidden || tt.why != "" && c.Why != tt.why {
				t.Errorf("Forbidden %v because %q, want %q", c.Forbidden, c.Why, tt.why)
			}
		})
	}
	for _, k := range Kinds() {
		if !aimed[k] {
			t.Errorf("no row for %s", k)
		}
	}
}

func TestPermissiveCases(t *testing.T) {
	_, _, set := derive(t, `{"type":"object","properties":{"n":{"type":["string","null"]},"u":{}}}`, Options{})
	var got []string
	for _, c := range set.Cases {
		if !c.Forbidden {
			got = append(got, c.Label)
		}
	}
	want := []string{"extra_param[ordeal_unknown_field]", "null_required[n]", "empty_string[n]", "very_long_string[n]",
		"null_required[u]", "wrong_type[u]", "empty_string[u]", "very_long_string[u]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCarriesBaseline(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"integer"},"f":{"type":"object","properties":{"b":{"type":"integer"},"c":{}}}}}`)
	set, err := Cases(s, json.RawMessage(`{"f":{"b":1,"c":2}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"wrong_type[a]": true, "wrong_type[f/b]": true, "wrong_type[f]": false, "wrong_container[array]": false,
	}
	got := map[string]bool{}
	for _, c := range set.Cases {
		if _, ok := want[c.Label]; ok {
			got[c.Label] = c.CarriesBaseline
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBaselineMustBeValid(t *testing.T) {
	s := mustCompile(t, mockTool)
	for _, baseline := range []string{`{}`, `{"query":1}`, `[]`} {
		if _, err := Cases(s, json.RawMessage(baseline), Options{}); !errors.Is(err, ErrBaseline) {
			t.Errorf("Cases(%s): %v, want ErrBaseline", baseline, err)
		}
	}
	if _, err := Cases(s, json.RawMessage(`{`), Options{}); err == nil {
		t.Error("Cases accepted a baseline that is not JSON")
	}
}

// wide is a tool of n fields of mixed types, half of them required.
func wide(n int) string {
	shapes := []string{
		`{"type":"string","minLength":2,"maxLength":40}`, `{"type":"integer","minimum":1,"maximum":100}`,
		`{"type":"string","enum":["a","b","c"]}`, `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":5,"uniqueItems":true}`,
		`{"type":"string","format":"date-time"}`, `{"anyOf":[{"type":"string","pattern":"^[a-z]+$"},{"type":"null"}]}`,
		`{"type":"object","properties":{"k":{"type":"number","exclusiveMinimum":0}},"required":["k"],"additionalProperties":false}`,
	}
	var props, required []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"f%02d":%s`, i, shapes[i%len(shapes)]))
		if i%2 == 0 {
			required = append(required, fmt.Sprintf(`"f%02d"`, i))
		}
	}
	return `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`
}

var asText = cmp.Transformer("text", func(m json.RawMessage) string { return string(m) })

func TestFairSelection(t *testing.T) {
	_, _, all := derive(t, wide(30), Options{MaxCases: 5000, MaxTime: time.Minute})
	_, _, few := derive(t, wide(30), Options{MaxCases: 40, MaxTime: time.Minute})
	if len(few.Cases) != 40 || few.LeftOut == 0 || all.LeftOut != 0 || few.CutShort || all.CutShort {
		t.Errorf("%d cases with %d left out of %d with %d left out", len(few.Cases), few.LeftOut, len(all.Cases), all.LeftOut)
	}
	count := func(set Set) map[Kind]int {
		m := map[Kind]int{}
		for _, c := range set.Cases {
			m[c.Kind]++
		}
		return m
	}
	available, taken := count(all), count(few)
	fair := len(few.Cases) / len(available)
	for k, n := range available {
		if taken[k] < min(n, fair) {
			t.Errorf("%s: %d of %d taken, want at least %d", k, taken[k], n, min(n, fair))
		}
	}
}

func TestCasesDeterministic(t *testing.T) {
	raw := wide(20)
	_, args, first := derive(t, raw, Options{MaxCases: 100, MaxTime: time.Minute})
	for range 5 {
		s := mustCompile(t, raw)
		set, err := Cases(s, args, Options{MaxCases: 100, MaxTime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, set, asText); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestTextLimit(t *testing.T) {
	raw := field(`{"type":"string","maxLength":60000}`)
	for _, tt := range []struct{ max, longest int }{{0, 60001}, {55000, 50000}, {1000, 1000}} {
		_, _, set := derive(t, raw, Options{MaxText: tt.max})
		longest := 0
		for _, c := range set.Cases {
			longest = max(longest, strings.Count(string(c.Payload), "A"))
		}
		if longest != tt.longest {
			t.Errorf("MaxText %d: longest text %d, want %d", tt.max, longest, tt.longest)
		}
	}
}

func TestDeclarable(t *testing.T) {
	for raw, want := range map[string]bool{
		mockTool: true, `{}`: false, `{"type":"object","properties":{"a":{}}}`: false,
		`{"minProperties":1}`: true, `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`: true,
	} {
		if got := mustCompile(t, raw).Declarable(); got != want {
			t.Errorf("Declarable(%s) = %v, want %v", raw, got, want)
		}
	}
}

func BenchmarkCases(b *testing.B) {
	s, args, _ := derive(b, wide(30), Options{})
	for b.Loop() {
		set, err := Cases(s, args, Options{MaxCases: 1000, MaxTime: time.Minute})
		if err != nil || set.CutShort {
			b.Fatal(err, set.CutShort)
		}
		b.ReportMetric(float64(len(set.Cases)), "cases")
	}
}
