package report

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 3, 15, 8, 0, 0, 0, time.UTC)

// formats render a document into each golden file.
var formats = map[string]func(io.Writer, *result.Document) error{
	"scorecard": func(w io.Writer, d *result.Document) error {
		return Scorecard(w, d, ScorecardOptions{Hint: "ordeal report RESULT.json --format agents-md writes a fix guide."})
	},
	"verbose": func(w io.Writer, d *result.Document) error {
		return Scorecard(w, d, ScorecardOptions{Verbose: true, Width: 64})
	},
	"color":     func(w io.Writer, d *result.Document) error { return Scorecard(w, d, ScorecardOptions{Color: true}) },
	"json":      JSON,
	"report.md": Markdown,
	"agents.md": func(w io.Writer, d *result.Document) error { return AgentsMD(w, d, nil, now) },
	"verdict": func(w io.Writer, d *result.Document) error {
		_, err := io.WriteString(w, Verdict(d)+"\n"+strings.Join(FailedChecks(d), "\n")+"\n")
		return err
	},
}

func TestGolden(t *testing.T) {
	for name, doc := range documents() {
		for format, render := range formats {
			t.Run(name+"/"+format, func(t *testing.T) {
				golden(t, name+"."+format, rendered(t, func(w io.Writer) error { return render(w, doc) }))
			})
		}
	}
	t.Run("refused", func(t *testing.T) {
		golden(t, "refused.json", rendered(t, func(w io.Writer) error { return RefusalJSON(w, refused()) }))
		golden(t, "refused.scorecard", rendered(t, func(w io.Writer) error { return Refused(w, refused(), ScorecardOptions{}) }))
	})
	t.Run("since", func(t *testing.T) {
		older := failing()
		older.Target = degraded().Target
		before := rendered(t, func(w io.Writer) error { return AgentsMD(w, older, nil, now) })
		golden(t, "since.agents.md", rendered(t, func(w io.Writer) error { return AgentsMD(w, degraded(), before, now) }))
	})
}

func rendered(t *testing.T, render func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := render(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// A document from a file renders like the one in memory it was written from.
func TestStoredRendersAlike(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(documents())) {
		doc := documents()[name]
		stored, err := ParseJSON(bytes.NewReader(rendered(t, func(w io.Writer) error { return JSON(w, doc) })))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for format, render := range formats {
			want := rendered(t, func(w io.Writer) error { return render(w, doc) })
			got := rendered(t, func(w io.Writer) error { return render(w, stored) })
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s as %s (-memory +stored):\n%s", name, format, diff)
			}
		}
	}
}
