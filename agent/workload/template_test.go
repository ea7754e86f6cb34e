package workload

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTemplates names what operation 4 of user 9 calls.
func TestTemplates(t *testing.T) {
	people := table("p", "", []string{"name", "age", "tags", "First Name"}, `["Ann",30,["x","\"y\""],"A"]`, `["Bo \"B\"\n\u2028é",41,{"k":[1,"z\\"]},null]`)
	words := table("words", "", []string{"value"}, `["w"]`) // ${words} is the feeder, ${words(n)} the generator
	for _, tt := range []struct{ args, want string }{
		{`{}`, `{}`},
		{`{"a": [1, 2.50, "x"]}`, `{"a":[1,2.50,"x"]}`},
		{`{"a":"${op}"}`, `{"a":4}`},
		{`{"a":"n ${op}"}`, `{"a":"n 4"}`},
		{`{"a":"${ op }${user}"}`, `{"a":"49"}`},
		{`["${op}",{"b":"${user}"}]`, `[4,{"b":9}]`},
		{`"${op}"`, `4`},
		{`{"a":"$${op}"}`, `{"a":"${op}"}`},
		{`{"a":"$${op} ${op} $$${op}"}`, `{"a":"${op} 4 $${op}"}`},
		{`{"a":"$ {op} $"}`, `{"a":"$ {op} $"}`},
		{`{"a":"\u0024\u007bop}"}`, `{"a":4}`},
		{`{"a":"\"\\ \u0001 ${op}"}`, `{"a":"\"\\ \u0001 4"}`},
		{`{"a":"${seq}"}`, `{"a":4}`},
		{`{"a":"${p.name}","b":"${p.age}","c":"${p.tags}"}`, `{"a":"Ann","b":30,"c":["x","\"y\""]}`},
		{`{"a":"<${p.name}>","b":"${p.age} y","c":"t=${p.tags}"}`, `{"a":"<Ann>","b":"30 y","c":"t=[\"x\",\"\\\"y\\\"\"]"}`},
		{`{"a":"${p.First Name}"}`, `{"a":"A"}`},
		{`{"a":"${int(7,7)}","b":"${float(2.5,2.5)}","c":"${normal(3.20,0)}","d":"${normal(1e2,0)}"}`, `{"a":7,"b":2.5,"c":3.20,"d":100}`},
		{`{"a":"${choice(7)}","b":"${choice( true )}","c":"${choice(a b)}","d":"${choice(\"7\")}","e":"${choice(\"a|}\")}","f":"x${choice(null)}"}`,
			`{"a":7,"b":true,"c":"a b","d":"7","e":"a|}","f":"xnull"}`},
		{`{"a":"${choice({x)}"}`, `{"a":"{x"}`},
		{`["${words}","${words(1)}"]`, `["w","present"]`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			r := compiled(t, oneStep(tt.args, people, words)).NewRun()
			r.Start(4, 9)
			r.Next()
			if diff := cmp.Diff(tt.want, string(r.Args)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("NextRow", func(t *testing.T) {
		r := compiled(t, oneStep(`{"a":"${p.name}","b":"<${p.name}>","c":"<${p.tags}>","d":"${p.First Name}"}`, people)).NewRun()
		r.Start(5, 0)
		r.Next()
		want := `{"a":"Bo \"B\"\n\u2028é","b":"<Bo \"B\"\n\u2028é>","c":"<{\"k\":[1,\"z\\\\\"]}>","d":null}`
		if diff := cmp.Diff(want, string(r.Args)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBadTemplates(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"", "${}: is empty: feeders are blank"},
		{"op()", "want op"},
		{"int", "want int(a,b)"},
		{"int(1)", "want int(a,b)"},
		{"int(1,2", ") is missing at the end"},
		{"int(2,1)", "want int(a,b): 2 is above 1"},
		{"int(1.5,2)", `want int(a,b): "1.5" is no whole number`},
		{"float(1,inf)", `want float(a,b): "inf" is no number`},
		{"float(2,1)", "want float(a,b): no numbers lie between 2 and 1"},
		{"float(-1e308,1e308)", "want float(a,b): no numbers lie between"},
		{"normal(1,-1)", "want normal(mean,sd): sd is from 0"},
		{"string(0)", `want string(n): "0" is no number from 1 to 1048576`},
		{"string()", `want string(n): "" is no number`},
		{"choice()", "want choice(a|b|c)"},
		{"choice", "want choice(a|b|c)"},
		{"words(200001)", `want words(n): "200001" is no number from 1 to 200000`},
		{"tokens(1,2,3)", "want tokens(mean,sd,min,max)"},
		{"tokens(1,2,5,3)", "want tokens(mean,sd,min,max): mean and sd are from 0, min from 1, max from min to 200000"},
		{"text(9,3)", "want text(p50,p95): p50 is from 1, p95 from p50 to 200000"},
		{"text(3,9,nope)", `want text(p50,p95): "nope" is no feeder`},
		{"text(3,9,blank)", `want text(p50,p95): "blank" holds no text`},
		{"hash(x)", `unknown generator "hash": known are op, op_id`},
		{"nope.x", "is not known"},
		{"env:TOKEN", "${env:TOKEN}: is a reference to a secret: those go into headers"},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			args, _ := json.Marshal(map[string]string{"a": "x ${" + tt.expr + "}"})
			_, err := Compile(oneStep(string(args), table("blank", "", []string{"x"}, `[""]`)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// TestGenerators looks at many draws of each.
func TestGenerators(t *testing.T) {
	for _, tt := range []struct{ expr, pattern string }{
		{"int(-3,3)", `^-?[0-3]$`},
		{"float(0,1)", `^(0|[0-9.]+(e-[0-9]+)?)$`},
		{"normal(100,15)", `^[0-9]{2,3}$`},
		{"normal(1.00,0.1)", `^[01]\.[0-9]{2}$`},
		{"string(33)", `^"[A-Za-z0-9]{33}"$`},
		{"uuid", `^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`},
		{"op_id", `^"ordeal-[0-9a-f]{16}"$`},
		{"words(3)", `^"[a-z]+ [a-z]+ [a-z]+"$`},
		{"choice(a|2|true)", `^("a"|2|true)$`},
		{"now_ms", `^1[0-9]{12}$`},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			r, want, distinct := compiled(t, oneStep(fmt.Sprintf(`"${%s}"`, tt.expr))).NewRun(), regexp.MustCompile(tt.pattern), map[string]bool{}
			for op := range uint64(2000) {
				r.Start(op, 0)
				r.Next()
				if !want.Match(r.Args) {
					t.Fatalf("operation %d has %s, want %s", op, r.Args, want)
				}
				distinct[string(r.Args)] = true
			}
			if len(distinct) < 3 && tt.expr != "now_ms" {
				t.Errorf("only %d different values in 2000 draws", len(distinct))
			}
		})
	}
}

// TestPlaceholdersAreIndependent: two of one kind in one step draw differently.
func TestPlaceholdersAreIndependent(t *testing.T) {
	r := compiled(t, oneStep(`["${int(0,9)}","${int(0,9)}"]`)).NewRun()
	counts := map[string]int{}
	for op := range uint64(50_000) {
		r.Start(op, 0)
		r.Next()
		counts[string(r.Args)]++
	}
	chi := 0.0
	for a := range 10 {
		for b := range 10 {
			d := float64(counts[fmt.Sprintf("[%d,%d]", a, b)]) - 500
			chi += d * d / 500
		}
	}
	if chi > 149 { // 0.1 % point at 99 degrees of freedom
		t.Errorf("pairs have chi-squared %.1f", chi)
	}
}

// TestFeederOrder: sequential takes row after row, random all of them alike, and
// an operation has one row however often it looks.
func TestFeederOrder(t *testing.T) {
	rows := []string{`["a",0]`, `["b",1]`, `["c",2]`}
	r := compiled(t, oneStep(`["${s.n}","${r.l}","${r.n}"]`, table("s", "sequential", []string{"l", "n"}, rows...), table("r", "random", []string{"l", "n"}, rows...))).NewRun()
	seen := [3]float64{}
	for op := range uint64(30_000) {
		r.Start(op, 0)
		r.Next()
		var got []any
		if err := json.Unmarshal(r.Args, &got); err != nil {
			t.Fatal(err)
		}
		n := int(got[2].(float64))
		seen[n]++
		if got[0] != float64(op%3) || got[1] != string("abc"[n]) {
			t.Fatalf("operation %d has %v", op, got)
		}
	}
	chi := 0.0
	for _, n := range seen {
		chi += (n - 10_000) * (n - 10_000) / 10_000
	}
	if chi > 13.8 {
		t.Errorf("rows have chi-squared %.1f", chi)
	}
}

// TestSeqIsUnique over all calls of operations, whatever their scenario.
func TestSeqIsUnique(t *testing.T) {
	w := shopping()
	for i := range w.Scenarios {
		for j := range w.Scenarios[i].Steps {
			w.Scenarios[i].Steps[j].Args = json.RawMessage(`"${seq}"`)
		}
	}
	r, calls, seen := compiled(t, w).NewRun(), 0, map[string]bool{}
	for op := range uint64(1000) {
		for r.Start(op, 0); r.Next(); calls++ {
			seen[string(r.Args)] = true
			if err := r.Take(json.RawMessage(`{"results":[{"id":1}]}`), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if calls <= 1000 || len(seen) != calls {
		t.Errorf("%d numbers for %d calls, want one each", len(seen), calls)
	}
}
