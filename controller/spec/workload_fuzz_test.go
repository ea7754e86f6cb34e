package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ordeal/agent/wire"
	"ordeal/agent/workload"
)

// FuzzWorkload: whatever the YAML, there is a workload that compiles and travels, or
// problems that say where.
func FuzzWorkload(f *testing.F) {
	f.Add("seed: 1\nfeeders: {u: {values: [{a: 1}, {a: 2}]}}\nscenarios:\n- {name: x, steps: [{tool: t, extract: {v: /a}, think: 1s}, {prompt: '${v}${u.a}'}]}\n")
	f.Add("tools: [{body: &a [1, *a]}, {tool: t, args: {<<: {a: 1}}}]")
	f.Add("prompts: {file: x.csv, lengths: {p50: 1, p95: 2}, max_tokens: '${int(1,2)}'}")
	f.Add("\r\r0") // what YAML takes for ends of lines
	f.Add("sessions: [\nfeeders: 1\nscenarios: {a: }")
	f.Fuzz(func(t *testing.T, text string) {
		open := func(string) ([]byte, error) { return []byte("prompt\nhello\n"), nil }
		lines := 2 + strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
		w, err := ParseWorkload("f.yaml", []byte(text), open)
		if err != nil {
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				if p := new(WorkloadProblem); !errors.As(e, &p) || p.Text == "" || p.Line > lines {
					t.Fatalf("%q: problem %#v", text, e)
				}
			}
			return
		}
		raw, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		var again wire.Workload
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if _, err := workload.Compile(&again); err != nil {
			t.Fatalf("%q: after its journey: %v", text, err)
		}
	})
}

// FuzzFeederFile: a table has a value in every cell, in as many columns as it says.
func FuzzFeederFile(f *testing.F) {
	f.Add("a,b:json\n1,2\n\"x\ny\",[3]\n", uint8(0))
	f.Add("{\"a\":1}\n{\"a\":{\"b\":[]}}\n", uint8(1))
	f.Add("1\n\"x\"\n", uint8(1))
	f.Add(" one\n\ntwo", uint8(2))
	f.Fuzz(func(t *testing.T, text string, form uint8) {
		parse := parserOf([]string{"x.csv", "x.JSONL", "x.txt"}[form%3])
		var table wire.Feeder
		if parse(&table, []byte(text)) != nil {
			return
		}
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Fatalf("%q: row %d has %d values for %d columns", text, i, len(row), len(table.Columns))
			}
			for _, v := range row {
				if !json.Valid(v) {
					t.Fatalf("%q: %q is not JSON", text, v)
				}
			}
		}
	})
}
