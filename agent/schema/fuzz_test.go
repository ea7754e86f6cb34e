package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// patience is far above the limits of the package: a fuzzing machine is busy.
const patience = 20 * time.Second

// FuzzSchema sends arbitrary bytes through everything that reads a schema.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		mockTool, `{}`, `true`, `false`, `null`, fourStrings(`,"additionalProperties":false`), wide(7), nested(60, `{"type":"object"}`), deep(20),
		`{"$ref":"#"}`, `{"$ref":"http://192.0.2.1/"}`, `{"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]}}`,
		`{"type":["object","null"],"properties":{"k":{"type":"array","items":{"$ref":"#"},"uniqueItems":true,"contains":{"minProperties":1}}},"required":["k"]}`,
		field(`{"type":"string","pattern":"^(a+)+(?=b)$","format":"email","minLength":3}`),
		field(`{"type":"number","multipleOf":0.1,"minimum":-1e300,"exclusiveMaximum":1e-300}`),
		`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["a"]},"dependentSchemas":{"a":{"minProperties":3}},"propertyNames":{"maxLength":30}}`,
		`{"$dynamicAnchor":"n","properties":{"n":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"required":["c"]}},"required":["a"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		start := time.Now()
		Audit("tool", "", raw)
		s, err := Compile(raw)
		if err == nil {
			exercise(t, s)
		}
		if d := time.Since(start); d > patience {
			t.Errorf("took %v", d)
		}
	})
}

func exercise(t *testing.T, s *Schema) {
	args, how, err := Synthesize(s)
	if err != nil {
		if _, ok := errors.AsType[*Decline](err); !ok {
			t.Errorf("declined with %T", err)
		}
		return
	}
	if err := s.Validate(args); err != nil {
		t.Errorf("synthesized %.300s: %v", args, err)
	}
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(args, &obj); err != nil || len(obj) != len(how) {
		t.Errorf("%d origins for %.300s: %v", len(how), args, err)
	}
	set, err := Cases(s, args, Options{MaxCases: 64})
	if err != nil {
		t.Errorf("Cases on %.300s: %v", args, err)
	}
	checkSet(t, s, set)
	again, err := Cases(s, args, Options{MaxCases: 64})
	if err != nil || !set.CutShort && !again.CutShort && !sameCases(set, again) {
		t.Errorf("another set the second time: %v", err)
	}
	for i, c := range set.Cases {
		if i < 3 {
			Shrink(s, c, func(json.RawMessage) bool { return true }, 10)
		}
	}
}

func sameCases(a, b Set) bool {
	if len(a.Cases) != len(b.Cases) || a.LeftOut != b.LeftOut {
		return false
	}
	for i := range a.Cases {
		x, y := a.Cases[i], b.Cases[i]
		if x.Label != y.Label || x.Why != y.Why || !bytes.Equal(x.Payload, y.Payload) {
			return false
		}
	}
	return true
}

// FuzzPattern checks that a text made from a pattern is found by it and that nothing is endless.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{`^[A-Z]{2}\d+$`, `(a|b)*c?`, `(((a*)*)*)*`, `\u00e9[^a]`, `(?i)abc\b`, `(^)*`, `[^\x00-\x{10FFFF}]`, `\0`} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, pattern string, low int) {
		start := time.Now()
		m := newMatcher(pattern, &gauge{})
		if m.tree == nil {
			return
		}
		low = max(0, min(low, 2000))
		for _, s := range samples(m.tree, low, -1) {
			if len([]rune(s)) < low {
				t.Errorf("%q is shorter than %d", s, low)
			}
			m.matches(s)
		}
		if d := time.Since(start); d > patience {
			t.Errorf("took %v", d)
		}
	})
}
