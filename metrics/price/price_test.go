package price

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookup(t *testing.T) {
	table, err := Parse([]byte(`
as_of: 2026-11-05
models:
  gpt-4o: {input: 2.5, output: 10, cached_input: 1.25}
  gpt-4o-2024-05-13: {input: 5, output: 15}
  Claude-Haiku-4-5: {input: 1, output: 5}
`))
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct{ name, model, want string }{
		{"Exact", "gpt-4o", "gpt-4o"},
		{"DashedDate", "gpt-4o-2024-08-06", "gpt-4o"},
		{"DatedEntryFirst", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"},
		{"PlainDate", "claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"CloudDate", "claude-haiku-4-5@20251001", "claude-haiku-4-5"},
		{"Case", " GPT-4o ", "gpt-4o"},
		{"SiblingIsNotPriced", "gpt-4o-mini", ""},
		{"DatedSiblingIsNotPriced", "gpt-4o-mini-2024-07-18", ""},
		{"NextVersionIsNotPriced", "claude-haiku-4-5-5", ""},
		{"LatestIsNotADate", "gpt-4o-latest", ""},
		{"DateAlone", "-20251001", ""},
		{"Empty", "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, ok := table.Lookup(row.model)
			if got.Model != row.want || ok != (row.want != "") {
				t.Errorf("Lookup(%q) = %q, %v, want %q", row.model, got.Model, ok, row.want)
			}
		})
	}
	if m, _ := table.Lookup("gpt-4o-2024-05-13"); m.CachedInput != m.Input {
		t.Errorf("cached_input left out: got %v, want the input price %v", m.CachedInput, m.Input)
	}
}

func TestFirstPrefersTheUsersFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	file := "{\n\t\"as_of\": \"2027-01-01\",\n\t\"models\": {\n\t\t\"claude-opus-5\": {\"input\": 1, \"output\": 2, \"cached_input\": 0.1}\n\t}\n}\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := First("claude-opus-5-20260724", own, Builtin())
	want := Match{Rate: Rate{1, 2, 0.1}, Model: "claude-opus-5", Source: path, AsOf: "2027-01-01"}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("First: ok %v (-want +got):\n%s", ok, diff)
	}
	if got, ok := First("claude-haiku-4-5", own, Builtin()); !ok || got.Source != "built-in" || got.Input != 1 {
		t.Errorf("First falls back: got %v, %v", got, ok)
	}
	if _, ok := First("no-such-model", nil, Builtin()); ok {
		t.Error("an unknown model has a price")
	}
}

func TestBuiltinIsPlausible(t *testing.T) {
	table := Builtin()
	if table.AsOf == "" || table.Models() == 0 {
		t.Fatalf("built-in table: as of %q, %d models", table.AsOf, table.Models())
	}
	for model, r := range builtin {
		if r.Input <= 0 || r.Output < r.Input || r.CachedInput <= 0 || r.CachedInput >= r.Input {
			t.Errorf("%s: implausible rate %+v", model, r)
		}
		if m, ok := table.Lookup(model + "-20260101"); !ok || m.Model != model {
			t.Errorf("%s with a date: got %q, %v", model, m.Model, ok)
		}
	}
}

func TestCost(t *testing.T) {
	r := Rate{Input: 3, Output: 15, CachedInput: 0.3}
	rows := []struct {
		name            string
		in, out, cached int64
		want            float64
	}{
		{"InputOnly", 1_000_000, 0, 0, 3},
		{"OutputOnly", 0, 1_000_000, 0, 15},
		{"AllCached", 1_000_000, 0, 1_000_000, 0.3},
		{"Mixed", 1000, 200, 400, (600*3 + 400*0.3 + 200*15) / 1e6},
		{"CachedAboveInput", 100, 0, 500, 100 * 0.3 / 1e6},
		{"NegativeCached", 100, 0, -5, 100 * 3 / 1e6},
		{"Nothing", 0, 0, 0, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := r.Cost(row.in, row.out, row.cached); math.Abs(got-row.want) > 1e-12 {
				t.Errorf("Cost = %v, want %v", got, row.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	rows := []struct {
		name, file string
		want       []string
	}{
		{"UnknownTopKey", "model: {}\nmodels: {a: {input: 1, output: 1}}", []string{`line 1: the file: unknown key "model": want one of as_of, models`}},
		{"UnknownPriceKey", "models:\n  a: {input: 1, output: 1, cached: 1}", []string{`line 2: models.a: unknown key "cached"`}},
		{"MissingOutput", "models:\n  a: {input: 1}", []string{"line 2: models.a: input and output are both required"}},
		{"Negative", "models:\n  a: {input: -1, output: 1}", []string{"models.a.input: -1 is not a price"}},
		{"NotFinite", "models:\n  a: {input: .inf, output: .nan}", []string{".inf is not a price", ".nan is not a price"}},
		{"Text", "models:\n  a: {input: \"1\", output: 1}", []string{"models.a.input: want a number"}},
		{"Twice", "models:\n  a: {input: 1, output: 1}\n  A: {input: 2, output: 2}", []string{"line 3: models.A: given twice"}},
		{"TwiceExactly", "models:\n  a: {input: 1, output: 1}\n  a: {input: 2, output: 2}", []string{`key "a" given twice`}},
		{"All", "x: 1\nmodels:\n  a: {input: 1}\n  b: {input: z, output: 1}", []string{"line 1", "line 3", "line 4"}},
		{"NoModels", "as_of: x", []string{"models: missing"}},
		{"EmptyModels", "models: {}", []string{"models: empty"}},
		{"List", "- a", []string{"the file: want a mapping"}},
		{"Empty", "", []string{"not readable"}},
		{"TwoDocuments", "models: {a: {input: 1, output: 1}}\n---\nmodels: {}", []string{"a second document"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse([]byte(row.file))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("missing file: %v", err)
	}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("big file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("models:\n  a: {input: 1, output: 2, cached_input: 0}"))
	f.Add([]byte(`{"as_of": "x", "models": {"a": {"input": 1e300, "output": 0}}}`))
	f.Add([]byte("models: &x {a: *x}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse(data)
		if err != nil {
			return
		}
		if table.Models() == 0 {
			t.Fatal("accepted a file without a model")
		}
		for model := range table.rates {
			m, ok := table.Lookup(model)
			if !ok || m.Input < 0 || m.Output < 0 || m.CachedInput < 0 || math.IsNaN(m.Input+m.Output+m.CachedInput) {
				t.Fatalf("%q: %+v, %v", model, m, ok)
			}
		}
	})
}
