package workload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

// scripted is a script that extracts from its first answer and says it in its second call.
func scripted(from string) *wire.Workload {
	return &wire.Workload{Scenarios: []wire.Scenario{{Name: "a", Weight: 1, Steps: []wire.Step{
		{Name: "first", Tool: "t", Extract: map[string]string{"v": from}},
		{Name: "second", Tool: "t", Args: json.RawMessage(`["${v}","<${v}>"]`)},
	}}}}
}

func TestTake(t *testing.T) {
	for _, tt := range []struct{ name, from, structured, text, want string }{
		{"String", "/results/0/id", `{"results":[{"id":"a\"1"}]}`, "", `["a\"1","<a\"1>"]`},
		{"Number", "/n", `{"n":9007199254740993}`, "", `[9007199254740993,"<9007199254740993>"]`},
		{"Object", "/o", `{"o": {"k": "v"}}`, "", `[{"k": "v"},"<{\"k\": \"v\"}>"]`},
		{"Null", "/o", `{"o":null}`, "", `[null,"<null>"]`},
		{"Whole", "", ` [1,2] `, "", `[[1,2],"<[1,2]>"]`},
		{"StructuredFirst", "/n", `{"n":1}`, `{"n":2}`, `[1,"<1>"]`},
		{"Text", "/n", "", `{"n":2}`, `[2,"<2>"]`},
		{"TextWhereNull", "/n", "null", `{"n":2}`, `[2,"<2>"]`},
		{"FirstTextOfSeveral", "/n", "", "{\"n\":2}\nand more", `[2,"<2>"]`},
		{"Pattern", `text:Order #(\d+)`, `{"n":1}`, "Order #17 placed", `["17","<17>"]`},
		{"PatternWithoutGroup", `text:#\d+`, "", "Order #17 placed", `["#17","<#17>"]`},
		{"PatternEscapes", `text:(?s).*`, "", "a\"b\n\x01", `["a\"b\n\u0001","<a\"b\n\u0001>"]`},
		{"NotUTF8", "/n", "{\"n\":\"\xff\"}", "", "[\"\uFFFD\",\"<\uFFFD>\"]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := compiled(t, scripted(tt.from)).NewRun()
			r.Start(0, 0)
			if !r.Next() || !r.Keep {
				t.Fatal("want a first step whose answer is kept")
			}
			if err := r.Take(json.RawMessage(tt.structured), tt.text); err != nil {
				t.Fatal(err)
			}
			if !r.Next() || r.Keep {
				t.Fatal("want a second step whose answer is not kept")
			}
			if diff := cmp.Diff(tt.want, string(r.Args)); diff != "" {
				t.Error(diff)
			}
			if err := r.Take(nil, ""); err != nil || r.Next() {
				t.Errorf("want the end, got another step, %v", err)
			}
		})
	}
}

func TestMiss(t *testing.T) {
	large := `{"n":"` + strings.Repeat("x", maxVariable) + `"}`
	for _, tt := range []struct{ name, from, structured, text, want string }{
		{"Absent", "/results/0/id", `{"results":[]}`, `{"results":[{"id":1}]}`, "step first: /results/0/id not in the answer"},
		{"ThroughAScalar", "/a/b", `{"a":1}`, "", "step first: /a/b not in the answer"},
		{"NotAnIndex", "/00", `[1]`, "", "step first: /00 not in the answer"},
		{"AfterTheEnd", "/-", `[1]`, "", "step first: /- not in the answer"},
		{"Nothing", "/a", "", "", "step first: /a the answer is not JSON"},
		{"Prose", "", "", "12 results", `step first: "" the answer is not JSON`},
		{"Broken", "/a", `{"a":1`, "", "step first: /a the answer is not JSON"},
		{"NoMatch", `text:(\d+)`, "", "none", `step first: text:(\d+) not in the answer`},
		{"EmptyGroup", `text:a|(b)`, "", "a", `step first: text:a|(b) not in the answer`},
		{"Large", "/n", large, "", "step first: /n is over 1024 KiB of the answer: a variable holds no more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := compiled(t, scripted(tt.from)).NewRun()
			r.Start(0, 0)
			r.Next()
			err := r.Take(json.RawMessage(tt.structured), tt.text)
			var miss *Miss
			if !errors.As(err, &miss) || miss.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestPointerOfRFC is the example of RFC 6901, section 5.
func TestPointerOfRFC(t *testing.T) {
	const doc = `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}`
	for pointer, want := range map[string]string{
		"": doc, "/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3",
		"/g|h": "4", `/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/foo/2": "", "/nope": "",
	} {
		p, err := parsePointer(pointer)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.find([]byte(doc))); got != want {
			t.Errorf("%q is %s, want %s", pointer, got, want)
		}
	}
}

// TestLargeAnswersAreLetGo: what one caller once got must not stay with all of them.
func TestLargeAnswersAreLetGo(t *testing.T) {
	r := compiled(t, scripted("/n")).NewRun()
	for _, n := range []int{maxVariable / 2, 1} {
		r.Start(0, 0)
		r.Next()
		if err := r.Take(nil, `{"n":"`+strings.Repeat("x", n)+`"}`); err != nil {
			t.Fatal(err)
		}
		if got := cap(r.text); got > maxKept {
			t.Errorf("%d bytes of an answer are kept, want at most %d", got, maxKept)
		}
	}
	if got := cap(r.vars[0]); got > maxKept {
		t.Errorf("%d bytes are kept for a variable of 3, want at most %d", got, maxKept)
	}
}
