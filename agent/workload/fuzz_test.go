package workload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"unicode/utf8"

	"ordeal/agent/wire"
)

// FuzzTemplate: whatever compiles makes valid JSON, the same every time.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{`{"a":"${op} ${p.name}"}`, `{"a":"$${x}","b":"${choice(a|\"}\"|3)}"}`, `["${text(3,9,p.name)}"]`,
		`{"${op}":1}`, `"${tokens(4,1,1,9)}${v}"`, `{"a":"${normal(1.5,2)}","b":"${string(40)}","c":"\ud800${uuid}"}`} {
		f.Add(s, uint64(3), `{"v":"x"}`)
	}
	f.Fuzz(func(t *testing.T, args string, op uint64, answer string) {
		if len(args) > 4096 || len(answer) > 4096 || bytes.Contains([]byte(args), []byte("now_ms")) {
			return
		}
		w := &wire.Workload{Seed: "1", Feeders: []wire.Feeder{table("p", "random", []string{"name", "n"}, `["A\"b\n",1]`, `["\u2028",[{"x":"\\"}]]`)},
			Scenarios: []wire.Scenario{{Name: "s", Weight: 1, Steps: []wire.Step{
				{Name: "a", Extract: map[string]string{"v": "/v", "w": "text:v"}},
				{Name: "b", Args: json.RawMessage(args)}}}}}
		p, err := Compile(w)
		if err != nil {
			return
		}
		var first []byte
		for range 2 {
			r := p.NewRun()
			r.Start(op, 1)
			r.Next()
			if r.Take(json.RawMessage(answer), "v") != nil {
				return
			}
			r.Next()
			if len(r.Args) > 0 && !json.Valid(r.Args) {
				t.Fatalf("%q makes %q", args, r.Args)
			}
			if first == nil {
				first = bytes.Clone(r.Args)
			} else if !bytes.Equal(first, r.Args) {
				t.Fatalf("%q makes %q, then %q", args, first, r.Args)
			}
		}
	})
}

// FuzzEscape: a text comes back from JSON as encoding/json would have it.
func FuzzEscape(f *testing.F) {
	f.Add("a\"\\\x00\n\u2028\xff\xc3é")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded[string](t, quoted(s)); got != decoded[string](t, want) {
			t.Errorf("%q comes back as %q", s, got)
		}
	})
}

// FuzzPointer compares with a walk through the decoded document.
func FuzzPointer(f *testing.F) {
	f.Add(`{"a":[{"b":1,"b":2}], "c\n":null}`, "/a/0/b")
	f.Add(` [ 1 , {"x" : "}" } ] `, "/1/x")
	f.Add(`{"a~b":{"/":3}}`, "/a~0b/~1")
	f.Fuzz(func(t *testing.T, doc, text string) {
		p, err := parsePointer(text)
		if err != nil || !json.Valid([]byte(doc)) || !utf8.ValidString(doc) {
			return
		}
		var v any
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			return
		}
		want, found := walk(v, p)
		got := p.find([]byte(doc))
		if (got != nil) != found {
			t.Fatalf("%q in %s: got %q, want found %v", text, doc, got, found)
		}
		if found && !reflect.DeepEqual(decoded[any](t, got), want) {
			t.Fatalf("%q in %s: got %q, want %v", text, doc, got, want)
		}
	})
}

func walk(v any, p pointer) (any, bool) {
	for _, token := range p {
		switch d := v.(type) {
		case map[string]any:
			next, found := d[token]
			if !found {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(d) || strconv.Itoa(i) != token {
				return nil, false
			}
			v = d[i]
		default:
			return nil, false
		}
	}
	return v, true
}
