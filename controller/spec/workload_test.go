package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
	"ordeal/agent/workload"
)

// files is what a feeder finds.
func files(all map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, found := all[name]
		if !found {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func raws(values ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, v := range values {
		out = append(out, json.RawMessage(v))
	}
	return out
}

// TestWorkloadOfTheDocs reads the examples of docs/workload.md and makes the calls of some operations.
func TestWorkloadOfTheDocs(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "workload.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(yaml|csv)\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples, want a mix, its users and prompts", len(blocks))
	}
	open := files(map[string]string{"users.csv": blocks[1][2], "prompts.txt": "Say hello.\n\nWrite a poem about \"rain\".\n"})
	w, err := ParseWorkload("docs/mix.yaml", []byte(blocks[0][2]), open)
	if err != nil {
		t.Fatal(err)
	}
	want := &wire.Workload{Seed: "42",
		Feeders: []wire.Feeder{
			{Name: "users", Order: "random", Columns: []string{"name", "age"}, Rows: [][]json.RawMessage{raws(`"Ann"`, "30"), raws(`"Bo \"B\""`, "41")}},
			{Name: "words", Columns: []string{"value"}, Rows: [][]json.RawMessage{raws(`"red"`), raws(`"green"`), raws(`"blue"`)}},
		},
		Scenarios: []wire.Scenario{
			{Name: "search", Weight: 8, Steps: []wire.Step{
				{Name: "search", Tool: "search", Args: json.RawMessage(`{"query":"${words}","limit":"${int(1,50)}"}`), Extract: map[string]string{"first": "/results/0/id"}, Think: 200 * time.Millisecond},
				{Name: "open the first", Tool: "fetch", Args: json.RawMessage(`{"id":"${first}","as":"${users.name}","note":"for ${users.name}, ${users.age}"}`)},
			}},
			{Name: "ping", Weight: 2, Steps: []wire.Step{{Name: "ping", Tool: "ping"}}},
		}}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Fatal(diff)
	}
	if got, want := called(t, w, 2, `{"results":[{"id":17}]}`),
		"search {\"query\":\"blue\",\"limit\":14}\nfetch {\"id\":17,\"as\":\"Ann\",\"note\":\"for Ann, 30\"}\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	prompts, err := ParseWorkload("docs/prompts.yaml", []byte(blocks[2][2]), open)
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`^ \{"prompt":"(Say hello\.|Write a poem about \\"rain\\"\.)\\n.{100,}","max_tokens":100\}\n$`)
	if got := called(t, prompts, 7, ""); !pattern.MatchString(got) {
		t.Errorf("got %s\nwant %s", got, pattern)
	}
}

// called is the calls of one operation.
func called(t *testing.T, w *wire.Workload, op uint64, answer string) string {
	t.Helper()
	p, err := workload.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	run := p.NewRun()
	for run.Start(op, 0); run.Next(); {
		fmt.Fprintf(&b, "%s %s\n", run.Tool, run.Args)
		if err := run.Take(json.RawMessage(answer), ""); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestParseWorkload(t *testing.T) {
	open := files(map[string]string{
		"p.jsonl":  `{"prompt":"a","max_tokens":5}` + "\n\n" + `{"max_tokens":6,"prompt":"b"}` + "\n",
		"/abs.txt": "one\r\n  two \n",
	})
	step := func(s wire.Step) []wire.Scenario {
		return []wire.Scenario{{Name: s.Name, Weight: 1, Steps: []wire.Step{s}}}
	}
	for _, tt := range []struct {
		name, yaml string
		want       wire.Workload
	}{
		{"Tools", "sessions: call\ntools:\n- {tool: a, weight: 3}\n- {tool: a, name: again, args: {n: 9007199254740993, f: 1.50, h: 0x10, b: yes, c: true, d: 2001-01-01, e: , l: [1, '2']}}\n",
			wire.Workload{PerCall: true, Scenarios: []wire.Scenario{
				{Name: "a", Weight: 3, Steps: []wire.Step{{Name: "a", Tool: "a"}}},
				{Name: "again", Weight: 1, Steps: []wire.Step{{Name: "a", Tool: "a", Args: json.RawMessage(`{"n":9007199254740993,"f":1.50,"h":16,"b":"yes","c":true,"d":"2001-01-01","e":null,"l":[1,"2"]}`)}}},
			}}},
		{"Aliases", "tools:\n- {tool: a, args: &x {n: &n [1]}}\n- {tool: b, args: *x}\n- {tool: c, args: {m: *n}}\n",
			wire.Workload{Scenarios: []wire.Scenario{
				{Name: "a", Weight: 1, Steps: []wire.Step{{Name: "a", Tool: "a", Args: json.RawMessage(`{"n":[1]}`)}}},
				{Name: "b", Weight: 1, Steps: []wire.Step{{Name: "b", Tool: "b", Args: json.RawMessage(`{"n":[1]}`)}}},
				{Name: "c", Weight: 1, Steps: []wire.Step{{Name: "c", Tool: "c", Args: json.RawMessage(`{"m":[1]}`)}}},
			}}},
		{"Body", "tools:\n- body: {q: '<${op}>'}\n", wire.Workload{Scenarios: step(wire.Step{Name: "body", Args: json.RawMessage(`{"q":"<${op}>"}`)})}},
		{"TextBody", "tools:\n- body: hello ${op}\n", wire.Workload{Scenarios: step(wire.Step{Name: "body", Args: json.RawMessage(`"hello ${op}"`)})}},
		{"Prompt", "tools:\n- {prompt: 'say \"${op}\"', max_tokens: 9}\n",
			wire.Workload{Scenarios: step(wire.Step{Name: "prompt", Args: json.RawMessage(`{"prompt":"say \"${op}\"","max_tokens":9}`)})}},
		{"PromptLength", "tools:\n- {prompt: x, max_tokens: '${int(1,9)}'}\n",
			wire.Workload{Scenarios: step(wire.Step{Name: "prompt", Args: json.RawMessage(`{"prompt":"x","max_tokens":"${int(1,9)}"}`)})}},
		{"PromptsOfAFile", "prompts: {file: p.jsonl, order: random}\n",
			wire.Workload{Scenarios: step(wire.Step{Name: "prompt", Args: json.RawMessage(`{"prompt":"${prompts.prompt}","max_tokens":"${prompts.max_tokens}"}`)}),
				Feeders: []wire.Feeder{{Name: "prompts", Order: "random", Columns: []string{"prompt", "max_tokens"}, Rows: [][]json.RawMessage{raws(`"a"`, "5"), raws(`"b"`, "6")}}}}},
		{"PromptsOfValues", "prompts: {values: [a, b], lengths: {mean: 3, sd: 1, min: 1, max: 5}}\n",
			wire.Workload{Scenarios: step(wire.Step{Name: "prompt", Args: json.RawMessage(`{"prompt":"${tokens(3,1,1,5,prompts)}"}`)}),
				Feeders: []wire.Feeder{{Name: "prompts", Columns: []string{"value"}, Rows: [][]json.RawMessage{raws(`"a"`), raws(`"b"`)}}}}},
		{"SyntheticPrompts", "seed: abc\nprompts: {lengths: {p50: 20, p95: 60}}\n",
			wire.Workload{Seed: "abc", Scenarios: step(wire.Step{Name: "prompt", Args: json.RawMessage(`{"prompt":"${text(20,60)}"}`)})}},
		{"Lines", "feeders: {f: {file: /abs.txt}}\ntools: [{tool: a}]\n",
			wire.Workload{Scenarios: step(wire.Step{Name: "a", Tool: "a"}),
				Feeders: []wire.Feeder{{Name: "f", Columns: []string{"line"}, Rows: [][]json.RawMessage{raws(`"one"`), raws(`"two"`)}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseWorkload("mix.yaml", []byte(tt.yaml), open)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseWorkloadRefuses(t *testing.T) {
	open := files(map[string]string{
		"short.csv": "a,b\n1\n", "typed.csv": "a,n:json\nx,1\ny,z\n", "empty.csv": "", "head.csv": "a,b\n", "twice.csv": "a,a\n1,2\n",
		"latin.csv": "a\n\xe9\n", "keys.jsonl": "{\"a\":1}\n\n{\"b\":1}\n", "more.jsonl": "{\"a\":1}\n{\"a\":1,\"b\":2}\n", "broken.jsonl": "{\"a\":1}\n{a}\n",
		"big.txt": strings.Repeat("0123456789\n", 20_000), "huge.txt": strings.Repeat("x", maxFeederFile+1),
	})
	feeder := func(name string) string { return "feeders:\n  f: {file: " + name + "}\ntools: [{tool: a}]\n" }
	for _, tt := range []struct{ name, yaml, want string }{
		{"Empty", "", "dir/mix.yaml: is empty: want scenarios, tools or prompts"},
		{"NotYAML", "a: [", "dir/mix.yaml: is not valid YAML: line 1: did not find expected node content"},
		{"List", "- a", "dir/mix.yaml:1: want a mapping with scenarios, tools or prompts"},
		{"TwoDocuments", "tools: [{tool: a}]\n---\nx: 1\n", "dir/mix.yaml:2: a second document begins: a workload is one"},
		{"Nothing", "seed: 1\n", "dir/mix.yaml:1: give one of scenarios, tools and prompts: they all say what is called"},
		{"AllAtOnce", `sed: 1
sessions: both
scenarios:
- name: a
  weigth: 2
  steps:
  - {tool: x, thnk: 1s}
- steps: [{tool: y, args: [1]}, {tool: z, body: 1}, {args: {}, think: soon}]
- {name: c}
- name: d
  steps:
  - tool: ok
    args: {q: "${nope}"}
    extract: {id: nope}
- name: e
  weight: -1
  steps: [{tool: t}, {tool: t, think: 1s}]
`, `dir/mix.yaml:1: unknown key "sed" (did you mean seed?): want one of seed, sessions, feeders, scenarios, tools, prompts
dir/mix.yaml:2: sessions: is "both": want user, one session for each virtual user, or call, one for each operation
dir/mix.yaml:5: scenarios[0]: unknown key "weigth" (did you mean weight?): want one of name, weight, steps
dir/mix.yaml:7: scenarios[0].steps[0]: unknown key "thnk" (did you mean think?): want one of name, tool, prompt, max_tokens, body, args, extract, think
dir/mix.yaml:8: scenarios[1]: has no name
dir/mix.yaml:8: scenarios[1].steps[0].args: is a list: want a mapping of arguments
dir/mix.yaml:8: scenarios[1].steps[1]: give one of tool, prompt and body: what is called
dir/mix.yaml:8: scenarios[1].steps[2].args: are those of a tool: a prompt and a body have none
dir/mix.yaml:8: scenarios[1].steps[2]: give one of tool, prompt and body: what is called
dir/mix.yaml:8: scenarios[1].steps[2].think: is "soon": want a time such as 200ms or 1.5s
dir/mix.yaml:8: scenarios[1].steps[2].think: has no step after it: callers think between operations by --think
dir/mix.yaml:9: scenarios[2]: has no steps
dir/mix.yaml:12: scenario "d", step "ok": args: "q": ${nope}: is not known: feeders are none; variables so far none; generators op, op_id, seq, user, uuid, int(a,b), float(a,b), normal(mean,sd), string(n), choice(a|b|c), words(n), tokens(mean,sd,min,max), text(p50,p95), now_ms
dir/mix.yaml:12: scenario "d", step "ok": extract: id: want a JSON pointer such as /results/0/id, or text: and a regular expression
dir/mix.yaml:17: scenarios[4].steps[1].think: has no step after it: callers think between operations by --think`},
		{"Weights", "tools:\n- {tool: a, weight: 1.5}\n- {tool: b, weight: -1}\n", "dir/mix.yaml:2: tools[0].weight: is \"1.5\": want a whole number\ndir/mix.yaml:3: scenario \"b\": weight is -1: want 0 to 1000000000"},
		{"Twice", "tools:\n- {tool: a}\n- {tool: a}\n", `dir/mix.yaml:3: scenario "a": is there twice: give each a name of its own`},
		{"KeyTwice", "seed: 1\nseed: 2\ntools: [{tool: a}]\n", `dir/mix.yaml:2: key "seed" is given twice, first in line 1`},
		{"ArgsTwice", "tools:\n- tool: a\n  args:\n    x: {y: 1, y: 2}\n", `dir/mix.yaml:4: tools[0].args: line 4: key "y" is given twice`},
		{"NoJSON", "tools:\n- {tool: a, args: {x: .inf}}\n", `dir/mix.yaml:2: tools[0].args: line 2: ".inf" has no JSON`},
		{"Cycle", "tools:\n- {tool: a, args: {x: &a [*a]}}\n", `dir/mix.yaml:2: tools[0].args: is nested more than 64 deep`},
		{"NoPrompts", "prompts: {order: random}\n", "dir/mix.yaml:1: prompts: give a file, values, or lengths for synthetic text"},
		{"HalfLengths", "prompts:\n  lengths: {p50: 3, max: 9}\n", "dir/mix.yaml:2: prompts.lengths: give p50 and p95, or mean, sd, min and max, all in tokens"},
		{"NoFile", feeder("gone.csv"), "dir/mix.yaml:2: feeders.f.file: open gone.csv: file does not exist"},
		{"Ending", feeder("x.xlsx"), `dir/mix.yaml:2: feeders.f.file: "x.xlsx": want a name that ends in .csv, .jsonl or .txt`},
		{"ShortRow", feeder("short.csv"), "dir/mix.yaml:2: feeders.f.file: short.csv: record on line 2: wrong number of fields"},
		{"BadCell", feeder("typed.csv"), `dir/mix.yaml:2: feeders.f.file: typed.csv: line 3: column n: "z" is not JSON`},
		{"EmptyFile", feeder("empty.csv"), "dir/mix.yaml:2: feeders.f.file: empty.csv: is empty: want a first line with the names of the columns"},
		{"HeaderOnly", feeder("head.csv"), "dir/mix.yaml:2: feeders.f.file: head.csv has no rows"},
		{"ColumnTwice", feeder("twice.csv"), `dir/mix.yaml:2: feeders.f.file: twice.csv: column "a" is there twice`},
		{"Latin1", feeder("latin.csv"), "dir/mix.yaml:2: feeders.f.file: latin.csv is not UTF-8 text"},
		{"OtherKeys", feeder("keys.jsonl"), `dir/mix.yaml:2: feeders.f.file: keys.jsonl: line 3 has no "a": want the same keys everywhere, a`},
		{"MoreKeys", feeder("more.jsonl"), `dir/mix.yaml:2: feeders.f.file: more.jsonl: line 2 has "b", which line 1 has not: want the same keys everywhere`},
		{"BrokenLine", feeder("broken.jsonl"), "dir/mix.yaml:2: feeders.f.file: broken.jsonl: line 2 is not JSON"},
		{"LargeFeeder", feeder("big.txt"), "dir/mix.yaml: the rows of its feeders are 293 KiB as JSON: want at most 256 KiB, every unit of work carries them; keep fewer rows or columns"},
		{"HugeFile", feeder("huge.txt"), "dir/mix.yaml:2: feeders.f.file: huge.txt is 1024 KiB: the rows of all feeders may be 256 KiB as JSON, every unit of work carries them; keep fewer rows or columns"},
		{"FeederName", "feeders:\n  uuid: {values: [1]}\n  7up: {values: [1], order: up}\ntools: [{tool: a}]\n",
			"dir/mix.yaml:2: feeder \"uuid\": \"uuid\" is the name of a generator: choose another\ndir/mix.yaml:3: feeder \"7up\": \"7up\" is no name: a name is a letter or _, then letters, digits, _ and -, at most 60 in all\ndir/mix.yaml:3: feeder \"7up\": order is \"up\": want sequential or random"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := ParseWorkload("dir/mix.yaml", []byte(tt.yaml), open)
			if err == nil || w != nil {
				t.Fatalf("read as %v, want an error", w)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if p := new(WorkloadProblem); !errors.As(err, &p) || p.File != "dir/mix.yaml" {
				t.Errorf("%v holds no problem with its place", err)
			}
		})
	}
}

func TestParseWorkloadRefusesShapes(t *testing.T) {
	open := files(map[string]string{"brace.csv": "a,b}\n1,2\n", "noname.csv": "a,\n1,2\n", "two.csv": "a,b\n1,2\n", "dup.jsonl": `{"a":1,"a":2}`, "none.jsonl": "{}"})
	for _, tt := range []struct{ yaml, want string }{
		{"scenarios: []\n", "mix.yaml:1: scenarios: is an empty list: want a list with at least one entry"},
		{"scenarios: {a: 1}\n", "mix.yaml:1: scenarios: is a mapping: want a list with at least one entry"},
		{"scenarios: [a]\n", "mix.yaml:1: scenarios[0]: is \"a\": want a mapping of name, weight, steps"},
		{"scenarios: [{name: a, steps: [b]}]\n", "mix.yaml:1: scenarios[0].steps[0]: is \"b\": want a mapping of name, tool, prompt, max_tokens, body, args, extract, think"},
		{"tools: [{tool: }]\n", "mix.yaml:1: tools[0].tool: is empty: want a text"},
		{"tools: [{tool: [a]}]\n", "mix.yaml:1: tools[0].tool: is a list: want a text"},
		{"tools: [{tool: a, name: ''}]\n", "mix.yaml:1: tools[0].name: has 0 characters: want 1 to 100"},
		{"tools: [{tool: a, max_tokens: 1}]\n", "mix.yaml:1: tools[0].max_tokens: goes with a prompt"},
		{"tools: [{prompt: a, max_tokens: 0}]\n", "mix.yaml:1: tools[0].max_tokens: is \"0\": want a whole number from 1"},
		{"tools: [{tool: a, args: {<<: {b: 1}}}]\n", "mix.yaml:1: tools[0].args: line 1: a key must be a word"},
		{"tools: [{tool: a, args: {b: !!binary aGk=}}]\n", "mix.yaml:1: tools[0].args: line 1: a value of type !!binary has no JSON"},
		{"tools: [{tool: a, args: {b: !mine x}}]\n", "mix.yaml:1: tools[0].args: line 1: a value of type !mine has no JSON"},
		{"[a]: 1\ntools: [{tool: a}]\n", "mix.yaml:1: a key must be a word"},
		{"tools: [{tool: a}]\nscenarios: [{name: b, steps: [{tool: b}]}]\n", "mix.yaml:1: give one of scenarios, tools and prompts: they all say what is called"},
		{"scenarios: [{name: b, steps: [{tool: b, extract: [id]}]}]\n", "mix.yaml:1: scenarios[0].steps[0].extract: is a list: want a mapping of names"},
		{"feeders: []\ntools: [{tool: a}]\n", "mix.yaml:1: feeders: is an empty list: want a mapping of names"},
		{"feeders: {f: x.csv}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f: is \"x.csv\": want a mapping of file, values, order"},
		{"feeders: {f: {}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f: give either a file or values"},
		{"feeders: {f: {file: brace.csv}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f.file: brace.csv: column \"b}\": a name cannot hold { } ( ) , or a quote"},
		{"feeders: {f: {file: noname.csv}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f.file: noname.csv: column 2 has no name"},
		{"feeders: {f: {file: dup.jsonl}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f.file: dup.jsonl: line 1: key \"a\" is given twice"},
		{"feeders: {f: {file: none.jsonl}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f.file: none.jsonl: line 1: has no columns"},
		{"feeders: {f: {values: [1, {a: 2}]}}\ntools: [{tool: a}]\n", "mix.yaml:1: feeders.f.values: value 2 has no \"value\": want the same keys everywhere, value"},
		{"prompts: {file: two.csv}\n", "mix.yaml:1: prompts: have the columns a, b: want one, or one called prompt"},
	} {
		t.Run(tt.yaml, func(t *testing.T) {
			_, err := ParseWorkload("mix.yaml", []byte(tt.yaml), open)
			if err == nil {
				t.Fatal("read, want an error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAliasesStaySmall: a few lines must not become gigabytes.
func TestAliasesStaySmall(t *testing.T) {
	var b strings.Builder
	b.WriteString("tools:\n- tool: a0\n  args: {x: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}\n")
	for i := range 12 {
		fmt.Fprintf(&b, "- tool: a%d\n  args: {x: &a%d [%s]}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	_, err := ParseWorkload("mix.yaml", []byte(b.String()), nil)
	if err == nil || !strings.Contains(err.Error(), "512 KiB as JSON") {
		t.Errorf("got %v, want a refusal for its size", err)
	}
}
