package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ordeal/controller/result"
	"ordeal/metrics"
)

func TestParseJSONErrors(t *testing.T) {
	valid := string(rendered(t, func(w io.Writer) error { return JSON(w, degraded()) }))
	replaced := func(old, with string) string {
		t.Helper()
		if !strings.Contains(valid, old) {
			t.Fatalf("%q is not in the document", old)
		}
		return strings.Replace(valid, old, with, 1)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"Empty", " \n", "result: empty: give the file that --json-out wrote"},
		{"NotJSON", "{\n  \"a\": x}", "result: line 2, column 8: not JSON: invalid character 'x' looking for beginning of value"},
		{"CutShort", valid[:400], "not JSON: unexpected end of JSON input"},
		{"TrailingData", valid + "{}", "not JSON: invalid character '{' after top-level value"},
		{"Array", "[1]", "result: line 1, column 1: the document is array, want"},
		{"OtherJSON", `{"score": 3}`, "result: no schema_version: not a result document of ordeal"},
		{"Newer", replaced(`"schema_version": 1`, `"schema_version": 7`), "result: schema_version is 7, this ordeal reads 1: use a newer ordeal"},
		{"Older", replaced(`"schema_version": 1`, `"schema_version": 0`), "result: schema_version is 0, want 1"},
		{"WrongType", replaced(`"calls": 291`, `"calls": "many"`), "run.calls is string, want int64"},
		{"UnknownStatus", replaced(`"status": "fail"`, `"status": "failed"`), `result: checks[0].status is "failed": want pass, unproven, fail, undecided or n/a`},
		{"UnknownDirection", replaced(`"direction": "max"`, `"direction": "up"`), `result: checks[0].direction is "up": want max or min`},
		{"UnknownPhase", replaced(`"phase": "baseline"`, `"phase": "warm"`), `result: probes[0].phase is "warm": want baseline, chaos, behavior or load`},
		{"UnknownSeverity", replaced(`"severity": "critical"`, `"severity": "bad"`), `result: probes[3].findings[0].severity is "bad": want critical, warning or info`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseJSON(strings.NewReader(tt.in))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestParseJSONRefusal(t *testing.T) {
	_, err := ParseJSON(bytes.NewReader(rendered(t, func(w io.Writer) error { return RefusalJSON(w, refused()) })))
	var got *RefusedError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a *RefusedError", err)
	}
	want := refused()
	got.Refusal.Target.ToolArgs = compact(got.Refusal.Target.ToolArgs)
	if diff := cmp.Diff(*want, got.Refusal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseJSONIgnoresNewFields(t *testing.T) {
	in := strings.Replace(string(rendered(t, func(w io.Writer) error { return JSON(w, llm()) })), `"run": {`, `"later": [1], "run": {"later": {},`, 1)
	if _, err := ParseJSON(strings.NewReader(in)); err != nil {
		t.Error(err)
	}
}

func TestParseJSONReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := ParseJSON(io.MultiReader(strings.NewReader("{"), failingReader{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestJSONIsStable(t *testing.T) {
	for name, doc := range documents() {
		first := rendered(t, func(w io.Writer) error { return JSON(w, doc) })
		back, err := ParseJSON(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		second := rendered(t, func(w io.Writer) error { return JSON(w, back) })
		if diff := cmp.Diff(string(first), string(second)); diff != "" {
			t.Errorf("%s: written, read and written (-first +second):\n%s", name, diff)
		}
		if first[len(first)-1] != '\n' || bytes.Contains(first, []byte(`\u003c`)) {
			t.Errorf("%s: no final line feed, or < escaped", name)
		}
	}
}

// A number that JSON cannot hold is an error, not a broken document.
func TestJSONRefusesNaN(t *testing.T) {
	doc := degraded()
	doc.Probes[0].Metrics["p50_s"] = metrics.Measured{Value: math.NaN()}
	var b bytes.Buffer
	if err := JSON(&b, doc); err == nil || b.Len() > 0 {
		t.Errorf("got error %v and %d bytes, want an error and none", err, b.Len())
	}
}

func TestWriteErrors(t *testing.T) {
	for name, render := range formats {
		if err := render(failingWriter{}, degraded()); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v, want %v", name, err, io.ErrClosedPipe)
		}
	}
	if err := Refused(failingWriter{}, refused(), ScorecardOptions{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("refused: got %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func resultSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "docs", "result-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("result-schema.json", raw); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("result-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocumentsMatchSchema(t *testing.T) {
	schema := resultSchema(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*.json.golden"))
	if err != nil || len(files) < len(documents())+1 {
		t.Fatalf("%d golden documents, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance(t, data)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	// The zero document, as bare as the struct allows.
	bare := rendered(t, func(w io.Writer) error { return JSON(w, &result.Document{SchemaVersion: 1}) })
	if err := schema.Validate(instance(t, bare)); err != nil {
		t.Errorf("bare document: %v", err)
	}
}

// The schema has teeth: each of these is refused.
func TestSchemaRefuses(t *testing.T) {
	schema := resultSchema(t)
	for name, spoil := range map[string]func(doc map[string]any){
		"OtherVersion":   func(d map[string]any) { d["schema_version"] = 2 },
		"NoVerdict":      func(d map[string]any) { delete(d, "verdict") },
		"ExtraMember":    func(d map[string]any) { d["more"] = true },
		"UnknownStatus":  func(d map[string]any) { first(d, "checks")["status"] = "skipped" },
		"ScoreAbove100":  func(d map[string]any) { d["verdict"].(map[string]any)["score"] = 101 },
		"MetricNoN":      func(d map[string]any) { delete(metric(d, "p50_s"), "n") },
		"HalfInterval":   func(d map[string]any) { metric(d, "p50_s")["interval"] = map[string]any{"lo": 1} },
		"UnknownEffect":  func(d map[string]any) { first(d, "caveats")["effect"] = "severe" },
		"NotRefused":     func(d map[string]any) { d["refused"] = true },
		"NegativeCalls":  func(d map[string]any) { d["run"].(map[string]any)["calls"] = -1 },
		"BadHistogram":   func(d map[string]any) { d["histograms"].(map[string]any)["latency"].(map[string]any)["data"] = "***" },
		"BadCheckMetric": func(d map[string]any) { first(d, "checks")["metric"] = "p95" },
		"FleetNoAgents":  func(d map[string]any) { delete(fleetOf(d), "agents") },
		"FleetExtra":     func(d map[string]any) { fleetOf(d)["size"] = 3 },
		"GangOfWhat":     func(d map[string]any) { first(fleetOf(d), "gangs")["of"] = "workers" },
		"GangNoPlan":     func(d map[string]any) { delete(first(fleetOf(d), "gangs"), "planned") },
		"UnknownOutlier": func(d map[string]any) { first(fleetOf(d), "outliers")["what"] = "strange" },
		"CertainOutlier": func(d map[string]any) {
			first(fleetOf(d), "outliers")["evidence"].(map[string]any)["p"] = 0
		},
		"GroupNoRate": func(d map[string]any) {
			delete(first(fleetOf(d)["breakdown"].(map[string]any), "groups"), "error_rate")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			if err := json.Unmarshal(rendered(t, func(w io.Writer) error { return JSON(w, zoned()) }), &doc); err != nil {
				t.Fatal(err)
			}
			spoil(doc)
			data, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(instance(t, data)) == nil {
				t.Error("accepted")
			}
		})
	}
}

func first(d map[string]any, list string) map[string]any { return d[list].([]any)[0].(map[string]any) }

func fleetOf(d map[string]any) map[string]any { return d["fleet"].(map[string]any) }

func metric(d map[string]any, name string) map[string]any {
	return first(d, "probes")["metrics"].(map[string]any)[name].(map[string]any)
}

func instance(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Whatever parses renders in every format, within the width, and reads back as
// what it was.
func FuzzParseJSON(f *testing.F) {
	for _, doc := range documents() {
		var b bytes.Buffer
		if err := JSON(&b, doc); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"schema_version":1}`))
	f.Add([]byte(`{"schema_version":1,"refused":true,"reason":"x"}`))
	f.Add([]byte(`{"schema_version":1,"probes":[{"phase":"baseline","metrics":{"levels":{"value":[{"a":1},2]},"cases":{"value":{"tool":1}}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := ParseJSON(bytes.NewReader(data))
		if err != nil {
			if strings.Contains(err.Error(), "\x1b") {
				t.Fatalf("escape sequence in %q", err)
			}
			return
		}
		assertSheet(t, string(rendered(t, func(w io.Writer) error { return Scorecard(w, doc, ScorecardOptions{Verbose: true}) })), MaxWidth)
		rendered(t, func(w io.Writer) error { return Markdown(w, doc) })
		rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, data, now) })
		once := rendered(t, func(w io.Writer) error { return JSON(w, doc) })
		again, err := ParseJSON(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("what was written does not read: %v", err)
		}
		if twice := rendered(t, func(w io.Writer) error { return JSON(w, again) }); !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
	})
}
