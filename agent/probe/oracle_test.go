package probe

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/target"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

func TestOracle(t *testing.T) {
	id := func(op uint64) string { return OpID("s", []string{"a", "b"}[op%2], op) }
	rows := []struct {
		name, path       string
		structured, text string
		entries          int64
		effects          map[uint64]int64
		failed           string
	}{
		{name: "OnlyList", structured: `{"notes":[{"t":"` + id(10) + `"},{"t":"x ` + id(11) + ` y"},{"t":"` + id(10) + `"},{"t":"other"}]}`,
			entries: 4, effects: map[uint64]int64{10: 2, 11: 1}},
		{name: "Path", path: "data.rows", text: `{"data":{"rows":["` + id(12) + `"],"tags":[]}}`, entries: 1, effects: map[uint64]int64{12: 1}},
		{name: "Twice", text: `["` + id(10) + id(10) + ` ` + id(13) + `"]`, entries: 1, effects: map[uint64]int64{10: 1, 13: 1}},
		{name: "Escaped", text: `["` + strings.Replace(id(10), "o", `\u006f`, 1) + `"]`, entries: 1, effects: map[uint64]int64{10: 1}},
		{name: "InKey", text: `[{"` + id(10) + `":1}]`, entries: 1, effects: map[uint64]int64{10: 1}},
		{name: "ForeignID", text: `["ordeal-000000000000"]`, entries: 1, effects: map[uint64]int64{}},
		{name: "OutsideRange", text: `["` + id(9) + `","` + id(14) + `"]`, entries: 2, effects: map[uint64]int64{}},
		{name: "Lines", text: "{\"t\":\"" + id(10) + "\"}\n\n{\"t\":1}\n", entries: 2, effects: map[uint64]int64{10: 1}},
		{name: "EmptyList", text: `{"notes":[]}`, effects: map[uint64]int64{}},
		{name: "TextWhenStructuredHasNone", structured: `{"count":1}`, text: `["` + id(10) + `"]`, entries: 1, effects: map[uint64]int64{10: 1}},
		{name: "TwoLists", text: `{"a":[],"b":[]}`, failed: "list: 2 lists in the answer; name the right one by its dotted path"},
		{name: "NoList", text: `{"a":1}`, failed: "list: no list of entries in the answer; name it by its dotted path"},
		{name: "Prose", text: `you have 3 notes`, failed: "list: no list of entries in the answer; name it by its dotted path"},
		{name: "WrongPath", path: "data.rows", text: `{"data":[]}`, failed: `list: no "rows" of the path "data.rows" in the answer`},
		{name: "NotAList", path: "data", text: `{"data":7}`, failed: `list: "data" is not a list in the answer`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := &fake{answer: func(_ context.Context, c target.Call) metrics.Exchange {
				if !c.Keep || c.Tool != "list" || string(c.Args) != `{"all":true}` {
					t.Errorf("call %+v", c)
				}
				x := ok()
				x.Structured, x.Text = json.RawMessage(r.structured), r.text
				return x
			}}
			res := run(t, f.env(), &wire.Unit{ID: "o", Kind: wire.OracleUnit, Ops: wire.Range{From: 10, To: 14},
				Oracle: &wire.Oracle{Tool: "list", Args: json.RawMessage(`{"all":true}`), Path: r.path, Salt: "s", Names: []string{"a", "b"}}})
			want := &wire.OracleResult{Status: "ok", Entries: r.entries, Effects: r.effects}
			if r.failed != "" {
				want = &wire.OracleResult{Status: "failed", Message: r.failed}
			}
			if diff := cmp.Diff(want, res.Oracle); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOracleToolFails(t *testing.T) {
	f := &fake{answer: func(context.Context, target.Call) metrics.Exchange { return rejected("no such store") }}
	res := run(t, f.env(), &wire.Unit{ID: "o", Kind: wire.OracleUnit, Oracle: &wire.Oracle{Tool: "list"}})
	if res.Oracle.Status != "failed" || res.Oracle.Message != "list answered tool_error: no such store" {
		t.Errorf("%+v", res.Oracle)
	}
}

// FuzzEntries: whatever a server answers, the oracle reads it or says why not,
// and what it reads is as much as the answer holds.
func FuzzEntries(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2]}`, "1\n2\n", `[]`, `{"a":{"b":[[]]}}`, "x", "\n\n", `{"a":null}`} {
		f.Add([]byte(seed), "a.b", seed)
		f.Add([]byte(nil), "", seed)
	}
	f.Fuzz(func(t *testing.T, structured []byte, path, text string) {
		entries, err := entriesOf(&metrics.Exchange{Structured: structured, Text: text}, path)
		if err != nil && (entries != nil || err.Error() == "") {
			t.Fatalf("%d entries and %v", len(entries), err)
		}
		if len(entries) > len(structured)+len(text) {
			t.Fatalf("%d entries in %d bytes", len(entries), len(structured)+len(text))
		}
		countEffects(entries, &wire.Unit{Ops: wire.Range{To: 3}, Oracle: &wire.Oracle{Names: []string{"t"}}})
	})
}
