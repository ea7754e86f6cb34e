package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// joined repeats a format over 0..n-1.
func joined(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#i", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// TestHostileSchemas sends schemas that multiply work in one way each. The
// limits are in units of work, so the time allowed here is generous; without them these take minutes or do not end.
func TestHostileSchemas(t *testing.T) {
	group := `{"anyOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]}`
	tests := []struct{ name, schema string }{
		{"WideObject", `{"properties":{` + joined(2900, `"p#i":{"type":"string","minLength":1}`) + `}}`},
		{"RefsToOddPlaces", `{"x":{` + joined(900, `"p#i":{"type":"string"}`) + `},"properties":{` + joined(900, `"p#i":{"$ref":"#/x/p#i"}`) + `}}`},
		{"ManyIDs", `{"$defs":{` + joined(2000, `"p#i":{"$id":"http://192.0.2.1/#i"}`) + `}}`},
		{"ManyPatterns", `{"patternProperties":{` + joined(1000, `"(a|b|c){0,#i}[xyz]+$":{}`) + `},"properties":{"a":{},"b":{}}}`},
		{"DearPatterns", `{"properties":{` + joined(200, `"p#i":{"type":"string","pattern":"(a|b|c){0,7#i}[xyz]+$"}`) + `}}`},
		{"NestedRepeats", field(`{"type":"string","pattern":"((((a*)*)*)*)*b{0,900}c"}`)},
		{"ZeroWidthRepeats", field(`{"type":"string","pattern":"((((^)*)*)*)*x"}`)},
		{"ProductOfBranches", `{"allOf":[` + joined(200, group) + `],"not":{"minProperties":1}}`},
		{"ManyBranches", `{"oneOf":[` + joined(500, `{"properties":{"kind":{"const":"k#i"}},"required":["kind"]}`) + `]}`},
		{"BranchingRecursion", `{"$ref":"#/$defs/e","$defs":{"e":{"type":"object","required":["l","r","k"],"properties":{"l":{"type":"array","items":{"$ref":"#/$defs/e"}},"r":{"type":"array","items":{"$ref":"#/$defs/f"}},"k":{"type":"array","items":{"$ref":"#/$defs/g"}}}},"f":{"allOf":[{"$ref":"#/$defs/e"}]},"g":{"allOf":[{"$ref":"#/$defs/f"}]}}}`},
		{"LongEnum", field(`{"enum":[` + joined(20000, `"v#i"`) + `]}`)},
		{"LongName", `{"properties":{"` + strings.Repeat("k", 300_000) + `":{"type":"string"}}}`},
		{"LongTexts", field(`{"type":"array","items":{"type":"string","minLength":16000},"minItems":100}`)},
		{"ManyRequired", `{"required":[` + joined(900, `"p#i"`) + `],"properties":{` + joined(900, `"p#i":{"type":"array","items":{"type":"integer"}}`) + `}}`},
		{"HugeNumbers", field(`{"type":"number","minimum":1e399,"multipleOf":1e-399}`)},
		{"TinySpan", field(`{"type":"number","exclusiveMinimum":-1e-399,"maximum":1e-399}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s := mustCompile(t, tt.schema)
			args, _, err := Synthesize(s)
			if err == nil {
				set, err := Cases(s, args, Options{MaxCases: 32})
				if err != nil {
					t.Fatal(err)
				}
				if len(set.Cases) == 0 {
					t.Errorf("no case, %d left out", set.LeftOut)
				}
				for _, c := range set.Cases {
					if len(c.Label) > 4*maxReason {
						t.Errorf("label of %d bytes", len(c.Label))
					}
				}
			}
			if d := time.Since(start); d > patience {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestWorkLimitIsSaid: a search that was cut short says so and counts what it left out.
func TestWorkLimitIsSaid(t *testing.T) {
	_, _, set := derive(t, `{"properties":{`+joined(2900, `"p#i":{"type":"string","minLength":1}`)+`}}`, Options{MaxCases: 32})
	if !set.CutShort || set.LeftOut == 0 || len(set.Cases) != 32 {
		t.Errorf("%d cases, %d left out, cut short %v", len(set.Cases), set.LeftOut, set.CutShort)
	}
	s := mustCompile(t, wide(30))
	args, _, err := Synthesize(s)
	if err != nil {
		t.Fatal(err)
	}
	set, err = Cases(s, args, Options{MaxTime: 1})
	if err != nil && !strings.Contains(err.Error(), ErrTooCostly.Error()) || err == nil && !set.CutShort {
		t.Errorf("one nanosecond: %d cases, %v, cut short %v", len(set.Cases), err, set.CutShort)
	}
}
