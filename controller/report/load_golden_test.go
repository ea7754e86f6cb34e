package report

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
)

// loadFormats render a load test into each golden file.
var loadFormats = map[string]func(io.Writer, *result.Document) error{
	"scorecard": func(w io.Writer, d *result.Document) error { return Scorecard(w, d, ScorecardOptions{}) },
	"narrow": func(w io.Writer, d *result.Document) error {
		return Scorecard(w, d, ScorecardOptions{Width: 64, Verbose: true, Hint: "ordeal report RESULT.json --format html shows it over time."})
	},
	"report.md": Markdown,
	"csv":       PeriodsCSV,
	"hgrm":      HGRM,
	"hlog":      HDRLog,
	"verdict": func(w io.Writer, d *result.Document) error {
		_, err := io.WriteString(w, Verdict(d)+"\n")
		return err
	},
}

func TestLoadGolden(t *testing.T) {
	for name, doc := range loadDocuments() {
		for format, render := range loadFormats {
			t.Run(name+"/"+format, func(t *testing.T) {
				golden(t, name+"."+format, rendered(t, func(w io.Writer) error { return render(w, doc) }))
			})
		}
	}
}

// The pages of short documents; of the others TestLoadHTML holds the form.
func TestLoadHTMLGolden(t *testing.T) {
	for _, name := range []string{"load-failed", "load-unsent", "load-partial"} {
		golden(t, name+".html", rendered(t, func(w io.Writer) error { return LoadHTML(w, loadDocuments()[name]) }))
	}
}

// A load test from a file renders like the one in memory.
func TestStoredLoadRendersAlike(t *testing.T) {
	for name, doc := range loadDocuments() {
		stored := copied(t, doc)
		for format, render := range loadFormats {
			want := rendered(t, func(w io.Writer) error { return render(w, doc) })
			got := rendered(t, func(w io.Writer) error { return render(w, stored) })
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s as %s (-memory +stored):\n%s", name, format, diff)
			}
		}
	}
}

// Outcomes that say nothing about the target are in no denominator.
func TestOutcomeShares(t *testing.T) {
	want := []outcomeRow{{"ok", 90, 100}, {"timeout", 10, 100}, {"cancelled", 5, 0}, {"harness_error", 2, 0}}
	got := outcomesOf(map[string]int64{"harness_error": 2, "timeout": 10, "cancelled": 5, "ok": 90})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcomeRow{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
