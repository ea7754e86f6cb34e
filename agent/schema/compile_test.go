package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompileErrors(t *testing.T) {
	tests := []struct {
		name, schema string
		want         error
		says         string
	}{
		{"Missing", ``, ErrNoSchema, ""},
		{"Null", ` null `, ErrNoSchema, ""},
		{"NotJSON", `{"type":`, ErrNotSchema, ""},
		{"TwoValues", `{} {}`, ErrNotSchema, ""},
		{"Text", `"object"`, ErrNotSchema, ""},
		{"UnknownType", `{"type":"objekt"}`, ErrNotSchema, "/type"},
		{"RemoteHTTP", `{"properties":{"a":{"$ref":"http://192.0.2.1/s.json"}}}`, ErrRemoteRef, "http://192.0.2.1/s.json"},
		{"RemoteFile", `{"$ref":"file:///etc/passwd"}`, ErrRemoteRef, "file:///etc/passwd"},
		{"Relative", `{"$ref":"other.json#/x"}`, ErrRemoteRef, "other.json"},
		{"RelativeToID", `{"$id":"https://example.com/a/b.json","$ref":"c.json"}`, ErrRemoteRef, "https://example.com/a/c.json"},
		{"UnknownDialect", `{"$schema":"https://example.com/dialect"}`, ErrRemoteRef, "https://example.com/dialect"},
		{"Dangling", `{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, ErrDanglingRef, "#/$defs/gone"},
		{"DanglingAnchor", `{"$ref":"#gone"}`, ErrDanglingRef, "#gone"},
		{"HugeNumber", `{"minimum":1e999999999}`, ErrTooLarge, "1e999999999"},
		{"LongNumber", `{"minimum":1` + strings.Repeat("0", 500) + `}`, ErrTooLarge, "501 characters"},
		{"Deep", nested(300, `{}`), ErrTooLarge, "levels"},
		{"Wide", `{"anyOf":[` + strings.Repeat(`{},`, 4000) + `{}]}`, ErrTooLarge, "objects"},
		{"Bytes", `{"title":"` + strings.Repeat("x", 1<<20) + `"}`, ErrTooLarge, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(tt.schema))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if msg := err.Error(); !strings.Contains(msg, tt.says) || strings.Contains(msg, "\n") || len(msg) > 500 {
				t.Errorf("message %q does not name %q in one line", msg, tt.says)
			}
		})
	}
}

// TestShapes sends the twelve shapes that make clients drop a whole catalogue
// through everything and expects twelve independent verdicts.
func TestShapes(t *testing.T) {
	fetched, url := listener(t)
	tests := []struct {
		name, schema string
		compile      error
		synthesize   error
		args         string
		cases        int
	}{
		{"Missing", ``, ErrNoSchema, nil, "", 0},
		{"Empty", `{}`, nil, nil, `{}`, 1},
		{"True", `true`, nil, nil, `{}`, 1},
		{"TopOneOf", `{"oneOf":[{"required":["a"],"properties":{"a":{"type":"string"}}},{"required":["b"],"properties":{"b":{"type":"integer"}}}]}`, nil, nil, `{"a":"ordeal probe"}`, 11},
		{"ObjectOrNull", `{"type":["object","null"],"properties":{"a":{"type":"string"}},"required":["a"]}`, nil, nil, `{"a":"ordeal probe"}`, 8},
		{"Defs", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"],"$defs":{"a":{"type":"string","minLength":3}}}`, nil, nil, `{"a":"ordeal probe"}`, 10},
		{"SelfRecursive", `{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]}`, nil, nil, `{"v":1}`, 16},
		{"MutualRequired", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["b"],"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}}}}}`, nil, ErrNoFiniteInstance, "", 0},
		{"Dangling", `{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, ErrDanglingRef, nil, "", 0},
		{"Remote", `{"properties":{"a":{"$ref":"` + url + `/s.json"}}}`, ErrRemoteRef, nil, "", 0},
		{"CatastrophicRegex", field(`{"type":"string","pattern":"^(a+)+$"}`), nil, nil, `{"x":"a"}`, 10},
		{"SixtyAllOf", nested(60, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), nil, nil, `{"a":"ordeal probe"}`, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			s, err := Compile(json.RawMessage(tt.schema))
			if !errors.Is(err, tt.compile) || tt.compile == nil && err != nil {
				t.Fatalf("Compile: %v, want %v", err, tt.compile)
			}
			if err != nil {
				return
			}
			args, _, err := Synthesize(s)
			if !errors.Is(err, tt.synthesize) || string(args) != tt.args {
				t.Fatalf("Synthesize: %s, %v, want %s, %v", args, err, tt.args, tt.synthesize)
			}
			if err != nil {
				return
			}
			set, err := Cases(s, args, Options{})
			if err != nil || len(set.Cases) != tt.cases {
				t.Errorf("%d cases, %v, want %d: %q", len(set.Cases), err, tt.cases, labels(set, false))
			}
			checkSet(t, s, set)
			if d := time.Since(start); d > patience {
				t.Errorf("took %v", d)
			}
		})
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d connections to the address in $ref, want none", n)
	}
}

// listener counts the connections that reach a loopback address.
func listener(t *testing.T) (*atomic.Int64, string) {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(net.Conn, http.ConnState) { n.Add(1) }
	srv.Start()
	t.Cleanup(srv.Close)
	return &n, srv.URL
}

func TestLimits(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)y"},"b":{"type":"string","pattern":"(b)\\1"},"c":{"type":"string","pattern":"^.{1,2000}$"},"d":{"type":"string","pattern":"^ok$"}},"required":["d"]}`)
	var got []string
	for _, l := range s.Limits() {
		got = append(got, l.Path+" "+l.Pattern)
	}
	want := []string{`/properties/a ^(?!x)y`, `/properties/b (b)\1`, `/properties/c ^.{1,2000}$`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	args, _, err := Synthesize(s)
	if err != nil || string(args) != `{"d":"ok"}` {
		t.Errorf("Synthesize: %s, %v", args, err)
	}
}

// TestOpaquePattern: what a pattern leaves open is never called forbidden.
func TestOpaquePattern(t *testing.T) {
	const opaque = `{"type":"string","pattern":"^(?!x)"}`
	tests := []struct {
		name, schema, doc string
		refused           bool
	}{
		{"MayMatch", field(opaque), `{"x":"any"}`, false},
		{"WrongTypeAnyway", field(opaque), `{"x":5}`, true},
		{"UnderNot", field(`{"not":` + opaque + `}`), `{"x":"any"}`, false},
		{"OtherField", `{"properties":{"x":` + opaque + `,"y":{"type":"integer"}}}`, `{"x":"any","y":"no"}`, true},
		{"OneOfTwoOpaque", field(`{"oneOf":[{"pattern":"^(?!x)"},{"pattern":"^(?!y)"}]}`), `{"x":"any"}`, false},
		{"ContradictsItself", field(`{"allOf":[` + opaque + `,{"not":` + opaque + `}]}`), `{"x":"any"}`, true},
		{"OneOfManyStrings", field(`{"type":"array","contains":` + opaque + `,"maxContains":1}`), `{"x":["a","b"]}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := mustCompile(t, tt.schema).Validate(json.RawMessage(tt.doc))
			if _, refused := forbids(err); refused != tt.refused {
				t.Errorf("got %v, want refused %v", err, tt.refused)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	tests := []struct{ name, schema, doc, want string }{
		{"OK", mockTool, `{"query":"x"}`, ""},
		{"Keyword", field(`{"enum":[1,2]}`), `{"x":3}`, "at /x: value must be one of 1, 2"},
		{"SeveralInOrder", fourStrings(""), `{"d":1,"c":2,"a":3,"b":4}`, "at /a: got number, want string"},
		{"ExtraSorted", `{"additionalProperties":false}`, `{"z":1,"a":2,"m":3}`, "additional properties 'a', 'm', 'z' not allowed"},
		{"LongValueCut", field(`{"pattern":"^b+$"}`), `{"x":"` + strings.Repeat("a", 5000) + `"}`, "at /x: pattern: does not match ^b+$"},
		{"Draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"integer"}]}`, `["a"]`, "at /0: got string, want integer"},
		{"Draft7Undeclared", `{"items":[{"type":"integer"}]}`, `["a"]`, "at /0: got string, want integer"},
		{"Draft4Undeclared", `{"minimum":3,"exclusiveMinimum":true}`, `3`, "exclusiveMinimum: got 3, want 3"},
		{"RegexFormat", field(`{"format":"regex"}`), `{"x":"(a"}`, "at /x: format: not a valid regex: error parsing regexp: missing closing ): `(a`"},
		{"RegexFormatLookahead", field(`{"format":"regex"}`), `{"x":"(?=a)"}`, ""},
		{"HugeBound", field(`{"maxLength":99999999999999999999999999}`), `{"x":"any"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := mustCompile(t, tt.schema).Validate(json.RawMessage(tt.doc)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateUndecided(t *testing.T) {
	bomb := func(join string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
		for i := range 40 {
			fmt.Fprintf(&b, `"%d":{"%s":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, join, i+1, i+1)
		}
		b.WriteString(`"40":{"required":["never"]}}}`)
		return b.String()
	}
	tests := []struct {
		name, schema string
		want         error
	}{
		{"Cycle", `{"$ref":"#"}`, ErrUndecided},
		{"CycleThroughAllOf", `{"allOf":[{"$ref":"#"}]}`, ErrUndecided},
		{"DoublingAllOf", bomb("allOf"), ErrTooCostly},
		{"DoublingAnyOf", bomb("anyOf"), ErrTooCostly},
		{"DoublingUnderNot", `{"not":` + `{"$ref":"#/$defs/0"},` + bomb("anyOf")[len(`{"$ref":"#/$defs/0",`):], ErrTooCostly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			err := s.Validate(json.RawMessage(`{}`))
			if _, refused := forbids(err); refused || !errors.Is(err, ErrUndecided) || !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if args, _, err := Synthesize(s); err == nil && s.Validate(args) != nil {
				t.Errorf("synthesized %s, which is not valid", args)
			}
		})
	}
}

func TestValidateDocumentBounds(t *testing.T) {
	s := mustCompile(t, `{}`)
	for name, doc := range map[string]string{
		"deep":   strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"number": `1e999999999`,
		"cut":    `{"a":`,
	} {
		err := s.Validate(json.RawMessage(doc))
		if _, refused := forbids(err); err == nil || refused {
			t.Errorf("%s: got %v, want an error that is no refusal", name, err)
		}
	}
}

func TestValidateOutput(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	list := mustCompile(t, `{"type":["array","null"]}`)
	if err := ValidateOutput(s, json.RawMessage(`{"n":1}`)); err != nil {
		t.Error(err)
	}
	if err := ValidateOutput(list, json.RawMessage(`null`)); err != nil {
		t.Error(err)
	}
	if _, refused := forbids(ValidateOutput(s, json.RawMessage(`{"n":"1"}`))); !refused {
		t.Error("wrong output is not refused")
	}
	for _, raw := range []string{``, `null`} {
		if err := ValidateOutput(s, json.RawMessage(raw)); !errors.Is(err, ErrNoOutput) {
			t.Errorf("ValidateOutput(%q): %v, want ErrNoOutput", raw, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	opt := Options{MaxTime: time.Minute}
	s, args, want := derive(t, wide(6), opt)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			set, err := Cases(s, args, opt)
			if err != nil || !cmp.Equal(want, set, asText) {
				t.Errorf("another set under concurrent use: %v", err)
			}
		})
	}
	wg.Wait()
}
