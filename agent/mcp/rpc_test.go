package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMessage(t *testing.T) {
	m, err := parseMessage([]byte(" {\"jsonrpc\" : \"2.0\", \"id\":7 ,\"result\":{\"a\":[1,{\"b\":\"}\\\\\\\"]\"}],\"id\":8},\"\\u0065rror\":null,\"x\":-1.5e3}\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(m.version), string(m.id), string(m.method), string(m.result), string(m.fault)}
	want := []string{`"2.0"`, "7", "", `{"a":[1,{"b":"}\\\"]"}],"id":8}`, "null"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for in, want := range map[string]error{"": errNotJSON, "{": errNotJSON, "{}x": errNotJSON, "1": errNotObject, `"x"`: errNotObject, "[]": errBatch, "{}": nil} {
		if _, err := parseMessage([]byte(in)); !errors.Is(err, want) {
			t.Errorf("parseMessage(%q) = %v, want %v", in, err, want)
		}
	}
}

// FuzzParseMessage: the splitter agrees with encoding/json on every member, and
// a copy keeps them.
func FuzzParseMessage(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"id":"\"","error":[[],{}],"method":null}`, `[{"id":1}]`,
		`{"a":"\\","id":-0.5E+1 , "params" : true }`, "{\"\u00ed\":1,\"id\":{\"id\":2},\"id\":3}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := parseMessage(in)
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || want == nil {
			if err == nil {
				t.Fatalf("accepted %q", in)
			}
			return
		}
		if err != nil {
			t.Fatalf("refused %q: %v", in, err)
		}
		clone := bytes.Clone(in)
		moved := m.rebase(in, clone)
		for i := range clone {
			in[i] = 'x'
		}
		for name, got := range map[string]json.RawMessage{"jsonrpc": moved.version, "id": moved.id, "method": moved.method,
			"params": moved.params, "result": moved.result, "error": moved.fault} {
			if !bytes.Equal(got, want[name]) {
				t.Errorf("%s = %q, want %q", name, got, want[name])
			}
		}
		moved.fit(1)
		moved.name()
	})
}

func TestFit(t *testing.T) {
	for id, want := range map[string]idFit{"7": idSame, `"7"`: idRetyped, "7.0": idRetyped, "7e0": idRetyped, "8": idOther, `"x"`: idOther, "null": idNone, "": idNone, "[7]": idOther} {
		m := message{id: json.RawMessage(id)}
		if id == "" {
			m.id = nil
		}
		if got := m.fit(7); got != want {
			t.Errorf("id %q fits as %d, want %d", id, got, want)
		}
	}
}

func TestAppendRequest(t *testing.T) {
	tests := []struct {
		id                   int64
		method, params, meta string
		want                 string
	}{
		{1, "ping", "", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{0, "n", "", "", `{"jsonrpc":"2.0","method":"n"}`},
		{2, "m", "", `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"a":1}}}`},
		{2, "m", " { } ", `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{ "_meta":{"a":1}}}`},
		{2, "m", `{"x":2}`, `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{"x":2,"_meta":{"a":1}}}`},
		{2, "m", `{"x":2}`, "", `{"jsonrpc":"2.0","id":2,"method":"m","params":{"x":2}}`},
		{2, "m", `{"_meta":{"b":2}}`, `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"b":2}}}`},
		{2, "m", `{"x":"\"_meta\""}`, `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{"x":"\"_meta\"","_meta":{"a":1}}}`},
		{2, "m", `[1]`, `"a":1`, `{"jsonrpc":"2.0","id":2,"method":"m","params":[1]}`},
		{3, "a\"b\n", "", "", `{"jsonrpc":"2.0","id":3,"method":"a\"b\n"}`},
	}
	for _, tc := range tests {
		var params []byte
		if tc.params != "" {
			params = []byte(tc.params)
		}
		got := string(appendRequest(nil, tc.id, tc.method, params, tc.meta))
		if got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
	if got := string(toolParams(nil, "é\"", nil)); got != `{"name":"é\"","arguments":{}}` {
		t.Errorf("toolParams = %s", got)
	}
	if got := string(toolParams(nil, "t", []byte(`{broken`))); got != `{"name":"t","arguments":{broken}` {
		t.Errorf("broken arguments went out as %s", got)
	}
}

// Whatever is written, the ring holds its end.
func TestRing(t *testing.T) {
	var r ring
	var all []byte
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, rnd.IntN(3000))
		if n, err := r.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
		all = append(all, p...)
		n := rnd.IntN(stderrKept)
		if want := string(all[len(all)-min(n, len(all)):]); r.tail(int64(n)) != want {
			t.Fatalf("tail(%d) differs after %d bytes", n, len(all))
		}
	}
	huge := append(bytes.Repeat([]byte("x"), 3*stderrKept), "\nlast words\xff"...)
	r.Write(huge)
	if got := r.tail(100); got != "last words\uFFFD" || r.written() != int64(len(all)+len(huge)) {
		t.Errorf("tail %q of %d", got, r.written())
	}
}

func TestServerTiming(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"":                                0,
		"total;dur=12.5":                  12500 * time.Microsecond,
		`db;desc="x";dur="3", app;dur=20`: 20 * time.Millisecond,
		"app;dur=20, Total;dur=5":         5 * time.Millisecond,
		"a;dur=NaN, b;dur=-1, c;dur=1e99": 0,
		"miss":                            0,
	} {
		if got := serverTiming([]string{in}); got != want {
			t.Errorf("serverTiming(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestHeaderText(t *testing.T) {
	for in, want := range map[string]string{"echo": "echo", "a b": "a b", "": "", " a": "=?base64?IGE=?=", "żółw": "=?base64?xbzDs8WCdw==?=",
		"a\nb": "=?base64?YQpi?=", "=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?="} {
		if got := headerText(in); got != want {
			t.Errorf("headerText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"a":{"type":"string","x-mcp-header":"region"},"o":{"properties":{"n":{"type":"integer","x-mcp-header":"Deep"}}},"bad":{"x-mcp-header":"no good"}}}`)
	got := map[string]string{}
	for _, p := range paramHeaders(schema) {
		for _, args := range []string{`{"a":"x","o":{"n":42}}`} {
			if v, ok := p.value(json.RawMessage(args)); ok {
				got[p.header] = v
			}
		}
		for _, args := range []string{`{}`, `{"a":null,"o":null}`, `{"a":[],"o":{"n":{}}}`, `[`} {
			if v, ok := p.value(json.RawMessage(args)); ok {
				t.Errorf("%s from %s = %q", p.header, args, v)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"Mcp-Param-Region": "x", "Mcp-Param-Deep": "42"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := paramHeaders(json.RawMessage(`{"properties":` + strings.Repeat(`{"a":{"properties":`, 100) + `{}` + strings.Repeat(`}}`, 100) + `,"x-mcp-header":"a"}`)); p != nil {
		t.Errorf("endless schema: %v", p)
	}
}

func TestFindings(t *testing.T) {
	var f findings
	f.add("a", "first")
	f.add("a", "second")
	f.add("b", "")
	for i := range 200 {
		f.add(strings.Repeat("x", i+1), "")
	}
	lines := f.lines()
	if len(lines) != maxFindings || lines[0] != "a (2 times): first" || lines[1] != "b" {
		t.Errorf("%d lines, first %q, second %q", len(lines), lines[0], lines[1])
	}
}
