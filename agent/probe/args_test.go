package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

// TestOpID pins the derivation: an oracle of another version must find the ids.
func TestOpID(t *testing.T) {
	// printf '%s' 'recovery:1337:create_note#41' | sha256sum
	if got, want := OpID("recovery:1337", "create_note", 41), "ordeal-47d55dd2ff6b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCutAtOpID(t *testing.T) {
	rows := []struct{ name, args, want string }{
		{"None", `{"a":"b"}`, `{"a":"b"}`},
		{"Value", `{"a":"{op_id}"}`, `{"a":"ID"}`},
		{"Inside", `{"a":"x {op_id} y {op_id}"}`, `{"a":"x ID y ID"}`},
		{"KeyStays", `{"{op_id}" : "{op_id}"}`, `{"{op_id}" : "ID"}`},
		{"Nested", `{"a":[{"b":"{op_id}"},"{op_id}"]}`, `{"a":[{"b":"ID"},"ID"]}`},
		{"QuotesInside", `{"a":"\"{op_id}\"","b":"\\"}`, `{"a":"\"ID\"","b":"\\"}`},
		{"Alone", `"{op_id}"`, `"ID"`},
		{"Empty", ``, ``},
		{"Unclosed", `{"a":"{op_id}`, `{"a":"ID`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := string(bytes.Join(cutAtOpID([]byte(r.args)), []byte("ID"))); got != r.want {
				t.Errorf("got %s, want %s", got, r.want)
			}
		})
	}
}

// FuzzCutAtOpID: cutting loses nothing, and putting an id in keeps JSON valid
// and its keys unchanged.
func FuzzCutAtOpID(f *testing.F) {
	for _, seed := range []string{`{"a":"{op_id}"}`, `{"{op_id}":["{op_id}",1,"\\\"{op_id}"]}`, `"`, `{op_id}`, `{"a":"\u007bop_id}"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		pieces := cutAtOpID(args)
		if back := bytes.Join(pieces, []byte(opIDMark)); !bytes.Equal(back, args) {
			t.Fatalf("got %q back from %q", back, args)
		}
		if !json.Valid(args) {
			return
		}
		with := bytes.Join(pieces, []byte("ordeal-0123456789ab"))
		if !json.Valid(with) {
			t.Fatalf("%q became %q", args, with)
		}
		var before, after any
		if json.Unmarshal(args, &before) == nil && json.Unmarshal(with, &after) == nil {
			if diff := cmp.Diff(keys(before, nil), keys(after, nil)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// keys lists the object keys of a document in the order of their paths.
func keys(v any, all map[string]int) map[string]int {
	if all == nil {
		all = map[string]int{}
	}
	switch v := v.(type) {
	case map[string]any:
		for k, field := range v {
			all[k]++
			keys(field, all)
		}
	case []any:
		for _, e := range v {
			keys(e, all)
		}
	}
	return all
}

func TestToolbox(t *testing.T) {
	box := newToolbox(&wire.CallSpec{OpIDSalt: "s", Tools: []wire.ToolCall{
		{Name: "a", Args: json.RawMessage(`{"id":"{op_id}"}`)}, {Name: "b", Args: json.RawMessage(`{"y":1,"x":2}`)}}}, false)
	if got, want := string(box.of(4).args("s", 4)), `{"id":"`+OpID("s", "a", 4)+`"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(box.of(5).args("s", 5)); got != `{"y":1,"x":2}` {
		t.Errorf("got %s", got)
	}
	print := func(op uint64) string { return box.of(op).fingerprint(box.of(op).args("s", op)) }
	if print(0) == print(2) || print(1) != print(3) || !strings.HasPrefix(print(1), "b:") {
		t.Errorf("fingerprints %s %s %s %s", print(0), print(1), print(2), print(3))
	}
	if fingerprint("b", []byte(`{"x":2, "y":1}`)) != print(1) {
		t.Error("the order of keys changes the fingerprint")
	}
	if fingerprint("b", []byte(`{"x":9007199254740993}`)) == fingerprint("b", []byte(`{"x":9007199254740992}`)) {
		t.Error("large numbers lose their last digits")
	}
	plain := newToolbox(&wire.CallSpec{}, false)
	if plain.of(7).name != "" || len(plain.of(7).args("", 7)) != 0 {
		t.Errorf("toolbox of a target without tools: %+v", plain)
	}
	odd := newToolbox(&wire.CallSpec{Tools: []wire.ToolCall{{Name: "t", OutputSchema: json.RawMessage(`{"type":7}`)}}}, true)
	if odd.of(0).output != nil {
		t.Error("a schema that is none is used for checks")
	}
}
