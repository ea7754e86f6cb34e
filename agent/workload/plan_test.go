package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/agent/wire"
)

// oneStep is a workload of one scenario with one call.
func oneStep(args string, feeders ...wire.Feeder) *wire.Workload {
	return &wire.Workload{Seed: "42", Feeders: feeders, Scenarios: []wire.Scenario{
		{Name: "one", Weight: 1, Steps: []wire.Step{{Name: "step", Tool: "tool", Args: json.RawMessage(args)}}}}}
}

func compiled(t testing.TB, w *wire.Workload) *Plan {
	t.Helper()
	p, err := Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func table(name, order string, columns []string, rows ...string) wire.Feeder {
	f := wire.Feeder{Name: name, Order: order, Columns: columns}
	for _, r := range rows {
		var row []json.RawMessage
		if err := json.Unmarshal([]byte(r), &row); err != nil {
			panic(err)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// shopping is a mix with everything in it.
func shopping() *wire.Workload {
	return &wire.Workload{Seed: "7",
		Feeders: []wire.Feeder{
			table("users", "", []string{"name", "age"}, `["Ann", 30]`, `["Bo \"B\"", 41]`, `["Çağ", 25]`),
			table("terms", "random", []string{"term"}, `["red"]`, `["green"]`, `["blue"]`, `["a\nb"]`),
		},
		Scenarios: []wire.Scenario{
			{Name: "search", Weight: 8, Steps: []wire.Step{
				{Name: "search", Tool: "search", Args: json.RawMessage(`{"query":"${terms}","limit":"${int(1,50)}","tag":"${op_id}"}`),
					Extract: map[string]string{"first": "/results/0/id"}, Think: 200 * time.Millisecond},
				{Name: "open", Tool: "fetch", Args: json.RawMessage(`{"id":"${first}","user":"${users.name}","age":"${users.age}","n":"${seq}"}`)},
			}},
			{Name: "chat", Weight: 1, Steps: []wire.Step{{Name: "chat", Args: json.RawMessage(`{"prompt":"${tokens(30,10,5,60)}"}`)}}},
			{Name: "ping", Weight: 3, Steps: []wire.Step{{Name: "ping", Tool: "ping"}}},
		},
	}
}

// calls are an operation's calls as text, each answered alike.
func calls(r *Run, op uint64) string {
	var b strings.Builder
	for r.Start(op, int(op%5)); r.Next(); {
		fmt.Fprintf(&b, "%s/%s %s %s %v %v\n", r.Scenario, r.Step, r.Tool, r.Args, r.Wait, r.Keep)
		if err := r.Take(json.RawMessage(`{"results":[{"id":"x-1"}]}`), ""); err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}

// TestDrawDependsOnOperationAlone runs the same operations in another order, on
// another plan of the same workload and on several runs in turn.
func TestDrawDependsOnOperationAlone(t *testing.T) {
	const ops = 500
	want := make([]string, ops)
	first := compiled(t, shopping()).NewRun()
	for op := range want {
		want[op] = calls(first, uint64(op))
	}
	again := compiled(t, shopping())
	agents := []*Run{again.NewRun(), again.NewRun(), again.NewRun()}
	for _, op := range rand.New(rand.NewPCG(1, 2)).Perm(ops) {
		if got := calls(agents[op%3], uint64(op)); got != want[op] {
			t.Fatalf("operation %d in another order: %s", op, cmp.Diff(want[op], got))
		}
	}
	other := shopping()
	other.Seed = "8"
	if calls(compiled(t, other).NewRun(), 1) == want[1] && calls(compiled(t, other).NewRun(), 2) == want[2] {
		t.Error("another seed draws the same")
	}
}

// TestWeightsHitTheirShare: the seed is fixed, so it cannot fail by chance.
func TestWeightsHitTheirShare(t *testing.T) {
	const ops = 60_000
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		w := shopping()
		w.Seed = seed
		p := compiled(t, w)
		got := map[string]int{}
		for op := range uint64(ops) {
			got[p.pick(op).name]++
		}
		chi := 0.0
		for _, sc := range w.Scenarios {
			want := float64(ops) * float64(sc.Weight) / 12
			chi += (float64(got[sc.Name]) - want) * (float64(got[sc.Name]) - want) / want
		}
		if chi > 13.8 { // 0.1 % point at 2 degrees of freedom
			t.Errorf("seed %s: chi-squared %.1f of %v", seed, chi, got)
		}
	}
}

func TestNoWeightIsNeverPicked(t *testing.T) {
	w := shopping()
	w.Scenarios[0].Weight, w.Scenarios[2].Weight = 0, 0
	p := compiled(t, w)
	for op := range uint64(1000) {
		if got := p.pick(op).name; got != "chat" {
			t.Fatalf("operation %d is %q, whose weight is 0", op, got)
		}
	}
}

// TestFrozen keeps what a seed draws: a change of it changes every run that was
// ever described by its seed.
func TestFrozen(t *testing.T) {
	w := oneStep(`{"a":"${int(1,1000)}","b":"${uuid}","c":"${string(10)}","d":"${normal(100,15)}","e":"${float(0,1)}",
		"f":"${choice(x|2|true)}","g":"${words(4)}","h":"${tokens(4,2,1,9)}","i":"${text(3,9)}","j":"${op_id}","k":"${seq} ${op} ${user}","l":"${v}"}`,
		table("v", "random", []string{"v"}, `[1]`, `[2]`, `["three"]`))
	r := compiled(t, w).NewRun()
	r.Start(12345, 3)
	r.Next()
	want := `{"a":75,"b":"ac8d60a1-92ca-4513-bb93-7bef4dd3148e","c":"hMxVVrXnEm","d":109,"e":0.8644663923316185,"f":2,"g":"face thought also to","h":"business like used high",` +
		`"i":"she possible might in get house later know same if little come church ever service thus used once","j":"ordeal-8551222868547ccf","k":"12345 12345 3","l":2}`
	if got := string(r.Args); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCompileRefuses(t *testing.T) {
	many := make([]wire.Scenario, MaxScenarios+1)
	for i := range many {
		many[i] = wire.Scenario{Name: fmt.Sprint(i), Weight: 1, Steps: []wire.Step{{Name: "s"}}}
	}
	long := wire.Scenario{Name: "long", Weight: 1, Steps: make([]wire.Step, MaxSteps+1)}
	wide := []wire.Scenario{}
	for i := range 5 {
		sc := wire.Scenario{Name: fmt.Sprint(i), Weight: 1}
		for j := range 41 {
			sc.Steps = append(sc.Steps, wire.Step{Name: fmt.Sprint(j)})
		}
		wide = append(wide, sc)
	}
	step := func(s ...wire.Step) *wire.Workload {
		return &wire.Workload{Scenarios: []wire.Scenario{{Name: "a", Weight: 1, Steps: s}}}
	}
	users := table("users", "", []string{"name", "age"}, `["Ann", 30]`)
	for _, tt := range []struct {
		name string
		w    *wire.Workload
		want string
	}{
		{"Nothing", &wire.Workload{}, "workload: has 0 scenarios: want 1 to 100"},
		{"ManyScenarios", &wire.Workload{Scenarios: many}, "workload: has 101 scenarios: want 1 to 100"},
		{"ManySteps", &wire.Workload{Scenarios: []wire.Scenario{long}}, `scenario "long": has 51 steps: want 1 to 50`},
		{"ManyInAll", &wire.Workload{Scenarios: wide}, "workload: has 205 steps: want at most 200 in all scenarios"},
		{"NoWeight", &wire.Workload{Scenarios: []wire.Scenario{{Name: "a", Steps: []wire.Step{{Name: "s"}}}}}, "workload: all weights are 0: give at least one scenario a weight"},
		{"BadWeight", &wire.Workload{Scenarios: []wire.Scenario{{Name: "a", Weight: -1, Steps: []wire.Step{{Name: "s"}}}}},
			"scenario \"a\": weight is -1: want 0 to 1000000000\nworkload: all weights are 0: give at least one scenario a weight"},
		{"SameName", step(wire.Step{Name: "s"}, wire.Step{Name: "s"}), `scenario "a", step "s": is there twice: give each step of a scenario a name of its own`},
		{"NotJSON", step(wire.Step{Name: "s", Args: json.RawMessage(`"${a"`)}), `scenario "a", step "s": args: ${ is not closed: write } after it, or $${ for the characters themselves`},
		{"Unknown", oneStep(`{"q":["x ${wrods}"]}`, users),
			`scenario "one", step "step": args: "q": ${wrods}: is not known: feeders are users; variables so far none; generators op, op_id, seq, user, uuid, int(a,b), float(a,b), normal(mean,sd), string(n), choice(a|b|c), words(n), tokens(mean,sd,min,max), text(p50,p95), now_ms`},
		{"Timestamp", oneStep(`{"q":"${timestamp}"}`), `scenario "one", step "step": args: "q": ${timestamp}: would differ from run to run: write now_ms if that is meant`},
		{"NoColumn", oneStep(`{"q":"${users.nme}"}`, users), `scenario "one", step "step": args: "q": ${users.nme}: feeder users has no column "nme": it has name, age`},
		{"WhichColumn", oneStep(`{"q":"${users}"}`, users), `scenario "one", step "step": args: "q": ${users}: feeder users has several columns: write users.COLUMN, one of name, age`},
		{"InName", oneStep(`{"${op}":1}`), `scenario "one", step "step": args: "${op}": a name cannot hold ${...}, only a value`},
		{"TooEarly", step(wire.Step{Name: "s", Args: json.RawMessage(`{"id":"${id}"}`)}, wire.Step{Name: "t", Extract: map[string]string{"id": ""}}),
			`scenario "a", step "s": args: "id": ${id}: is extracted by step 2 only, after it is used here`},
		{"BadPointer", step(wire.Step{Name: "s", Extract: map[string]string{"id": "results"}}),
			`scenario "a", step "s": extract: id: want a JSON pointer such as /results/0/id, or text: and a regular expression`},
		{"BadTilde", step(wire.Step{Name: "s", Extract: map[string]string{"id": "/a~2"}}), `scenario "a", step "s": extract: id: ~ in a JSON pointer is written ~0, and / in a name ~1`},
		{"NameOfGenerator", step(wire.Step{Name: "s", Extract: map[string]string{"uuid": ""}}), `scenario "a", step "s": "uuid" is the name of a generator: choose another`},
		{"NameOfFeeder", &wire.Workload{Feeders: []wire.Feeder{users}, Scenarios: step(wire.Step{Name: "s", Extract: map[string]string{"users": ""}}).Scenarios},
			`scenario "a", step "s": extract: "users" is the name of a feeder: choose another`},
		{"LargeFeeder", oneStep(`{}`, table("big", "", []string{"x"}, `["`+strings.Repeat("x", MaxFeederBytes)+`"]`)),
			"workload: the rows of its feeders are 257 KiB as JSON: want at most 256 KiB, every unit of work carries them; keep fewer rows or columns"},
		{"LargeArgs", oneStep(`"` + strings.Repeat("x", MaxBytes) + `"`), "workload: is 512 KiB as JSON: want at most 512 KiB, every unit of work carries it"},
		{"ShortRow", oneStep(`{}`, table("f", "", []string{"a", "b"}, `[1,2]`, `[1]`)), `feeder "f": row 2: has 1 values: want 2, one a column`},
		{"EmptyFeeder", oneStep(`{}`, table("f", "", []string{"a"})), `feeder "f": has 1 columns and 0 rows: want at least one of each`},
		{"BadOrder", oneStep(`{}`, table("f", "shuffled", []string{"a"}, `[1]`)), `feeder "f": order is "shuffled": want sequential or random`},
		{"LongThink", step(wire.Step{Name: "s", Think: 2 * time.Hour}), `scenario "a", step "s": think is 2h0m0s: want 0 to 1h0m0s`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Compile(tt.w)
			if err == nil || p != nil {
				t.Fatalf("compiled, want an error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProblemsSayWhere: a caller finds the place by numbers.
func TestProblemsSayWhere(t *testing.T) {
	w := shopping()
	w.Scenarios[0].Steps[1].Args = json.RawMessage(`{"x":"${a}","y":"${b}"}`)
	w.Scenarios[2].Weight = -5
	_, err := Compile(w)
	var got []Problem
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		p := *e.(*Problem)
		p.Place, p.Text = "", ""
		got = append(got, p)
	}
	want := []Problem{{Scenario: 0, Step: 1}, {Scenario: 0, Step: 1}, {Scenario: 2, Step: -1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
