package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ordeal/controller/result"
	"ordeal/metrics"
)

// hostile texts try to break out of a line, a table, a fence, a comment or the
// terminal.
var hostile = []string{
	"", "plain words of a server", "\n# EVIL\nrun this", "```\n# EVIL\n```sh\nrm -rf /\n", "````````\nEVIL", "~~~\n# EVIL",
	"--> <!-- ordeal-state {\"version\":1} --> EVIL", "</td></tr><script>EVIL</script>", "a|b|c\n|---|\n| EVIL |",
	"\x1b[2J\x1b]0;EVIL\x07\x9b31m", "\u202eLIVE\u2066\u200f\ufeff", "\xff\xfe\x00", strings.Repeat("W", 300), strings.Repeat("天", 200),
	strings.Repeat("e\u0301\u0301\u0301\u0301", 90), "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA\ufe0f", "[EVIL](http://evil.example) ![x](y)",
	"- EVIL\n1. EVIL\n> EVIL\n=====", "'; rm -rf / #", "$(EVIL) `EVIL`", "%s%d%!", "\\", "ﷺ" + strings.Repeat("اُ", 60), "PASS: score 100", "<b>EVIL",
}

// poison fills every free text of a document with hostile ones. Closed sets
// (status, severity, phase, direction, scope, effect) stay as they are, since
// ParseJSON holds them.
func poison(doc *result.Document, rng *rand.Rand) {
	pick := func() string { return hostile[rng.IntN(len(hostile))] }
	poisonValue(reflect.ValueOf(doc).Elem(), pick)
	for i := range doc.Probes {
		doc.Probes[i].Phase = phaseTitles[rng.IntN(3)].name
		doc.Probes[i].Metrics[pick()] = metrics.Measured{Value: pick(), Unit: pick(), N: rng.Int64() - rng.Int64(), Caveats: []string{pick()}}
		doc.Probes[i].Metrics[pick()] = metrics.Measured{Value: map[string]any{pick(): pick(), pick(): 1e300}}
		doc.Probes[i].Metrics[pick()] = metrics.Measured{Value: []any{map[string]any{pick(): pick(), pick(): nil}, map[string]any{pick(): rng.Float64()}}}
	}
	for i := range doc.Checks {
		doc.Checks[i].Direction = "max"
		doc.Checks[i].Limit = math.MaxFloat64 * rng.Float64()
	}
}

func poisonValue(v reflect.Value, pick func() string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[result.Run]() || v.Type().Field(i).Name != "StartedAt" {
				poisonValue(v.Field(i), pick)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			text, _ := json.Marshal(map[string]any{"query": pick(), "tool": pick(), "policy": pick()})
			v.Set(reflect.ValueOf(json.RawMessage(text)))
			return
		}
		for i := range v.Len() {
			poisonValue(v.Index(i), pick)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poisonValue(v.Elem(), pick)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]string]() && v.Len() > 0 {
			v.Set(reflect.ValueOf(map[string]string{pick(): pick(), pick(): pick()}))
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.CanSet() {
			v.SetString(pick())
		}
	}
}

var verdictStart = regexp.MustCompile(`^(PASS|FAIL|NO VERDICT|NO SCORE)\b`)

// In whatever a server puts into a document, no line of the scorecard is wider
// than asked for, nothing but printable characters gets through, and the last
// two lines are the verdict and the gaps.
func TestScorecardHoldsHostileText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	docs := documents()
	for range 20 {
		for name, doc := range docs {
			poison(doc, rng)
			width := MinWidth + rng.IntN(MaxWidth-MinWidth+1)
			got := string(rendered(t, func(w io.Writer) error {
				return Scorecard(w, doc, ScorecardOptions{Width: width, Verbose: rng.IntN(2) == 0, Hint: hostile[rng.IntN(len(hostile))]})
			}))
			assertSheet(t, got, width)
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if !verdictStart.MatchString(lines[len(lines)-2]) || !strings.HasPrefix(lines[len(lines)-1], "Biggest gaps: ") {
				t.Fatalf("%s: last lines %q", name, lines[len(lines)-2:])
			}
		}
		docs = documents()
	}
}

func TestRefusedHoldsHostileText(t *testing.T) {
	for _, text := range hostile {
		ref := &result.Refusal{Reason: text, Remedy: text, Target: result.Target{Name: text, URI: text, Tool: text, ToolArgs: json.RawMessage(text), ToolArgsSource: text}}
		got := string(rendered(t, func(w io.Writer) error { return Refused(w, ref, ScorecardOptions{}) }))
		assertSheet(t, got, MaxWidth)
		lines := strings.Split(got, "\n")
		if !strings.HasPrefix(lines[len(lines)-3], "REFUSED: ") {
			t.Errorf("second last line %q", lines[len(lines)-3])
		}
	}
}

func assertSheet(t *testing.T, sheet string, width int) {
	t.Helper()
	for line := range strings.Lines(sheet) {
		line = strings.TrimSuffix(line, "\n")
		assertPrintable(t, line)
		if n := columns(line); n > width {
			t.Fatalf("%d columns, want at most %d: %q", n, width, line)
		}
	}
}

// Colour adds escape sequences and changes nothing else.
func TestColorKeepsLayout(t *testing.T) {
	sgr := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, doc := range documents() {
		plain := rendered(t, func(w io.Writer) error { return Scorecard(w, doc, ScorecardOptions{}) })
		color := rendered(t, func(w io.Writer) error { return Scorecard(w, doc, ScorecardOptions{Color: true}) })
		if !bytes.Contains(color, []byte("\x1b[")) {
			t.Errorf("%s: no colour", name)
		}
		if got := sgr.ReplaceAll(color, nil); !bytes.Equal(got, plain) {
			t.Errorf("%s: layout differs without its colours:\n%s", name, got)
		}
	}
}

// Foreign text never acts as Markdown: outside of fences no line is a heading,
// list, quote or tag of its making, fences close, and the state block is the
// last comment of the guide.
func TestMarkdownHoldsHostileText(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 15 {
		for name, doc := range documents() {
			poison(doc, rng)
			page := string(rendered(t, func(w io.Writer) error { return Markdown(w, doc) }))
			guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) }))
			assertMarkdown(t, name+" report", page)
			assertMarkdown(t, name+" guide", guide)
			s, found := readState([]byte(guide))
			if !found || s == nil || s.Target != toValid(doc.Target.Name) {
				t.Fatalf("%s: state %+v, found %v, want target %q", name, s, found, doc.Target.Name)
			}
			if len(guide) > 24_000 {
				t.Fatalf("%s: guide of %d bytes", name, len(guide))
			}
		}
	}
}

// toValid is what encoding/json makes of a text.
func toValid(s string) string {
	return strings.Map(func(r rune) rune { return r }, s)
}

var (
	ownBlock = regexp.MustCompile(`(?s)\n<!-- ordeal-state\n.*\n-->\n$`)
	htmlTag  = regexp.MustCompile(`<[a-zA-Z/!]`)
	evilLine = regexp.MustCompile(`^\s*(#+|[-+*>]|\d+[.)])\s*EVIL`)
)

func assertMarkdown(t *testing.T, name, page string) {
	t.Helper()
	page = ownBlock.ReplaceAllString(page, "\n")
	fence := ""
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		assertPrintable(t, strings.TrimLeft(strings.ReplaceAll(line, "\t", " "), " "))
		marks := strings.TrimLeft(line, " ")
		marks = marks[:len(marks)-len(strings.TrimLeft(marks, "`"))]
		switch {
		case fence != "" && strings.TrimSpace(line) == fence:
			fence = ""
		case fence == "" && len(marks) >= 3 && !strings.Contains(strings.TrimLeft(line, " `"), "`"):
			fence = marks
		case fence == "":
			if evilLine.MatchString(line) {
				t.Fatalf("%s: foreign text acts as Markdown: %q", name, line)
			}
			bare := outsideCode(line)
			if htmlTag.MatchString(bare) {
				t.Fatalf("%s: foreign text acts as HTML: %q", name, line)
			}
			if strings.Contains(bare, "](") {
				t.Fatalf("%s: foreign text acts as a link: %q", name, line)
			}
		}
	}
	if fence != "" {
		t.Fatalf("%s: a fence does not close", name)
	}
}

// outsideCode is a line of Markdown without its code spans and escaped
// characters, by the rules of CommonMark: a span ends at a run of backquotes
// as long as the one that began it.
func outsideCode(line string) string {
	var b strings.Builder
	for len(line) > 0 {
		run := len(line) - len(strings.TrimLeft(line, "`"))
		switch {
		case line[0] == '\\' && len(line) > 1 && line[1] < 0x80:
			line = line[2:]
		case run > 0:
			line = line[run:]
			if end := closingRun(line, run); end >= 0 {
				line = line[end+run:]
			}
		default:
			b.WriteByte(line[0])
			line = line[1:]
		}
	}
	return b.String()
}

func closingRun(s string, n int) int {
	for i := 0; i < len(s); {
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run == n {
			return i
		}
		i += max(run, 1)
	}
	return -1
}

// Rendering reads a document and leaves it as it is.
func TestRenderingKeepsTheDocument(t *testing.T) {
	for name, doc := range documents() {
		before := rendered(t, func(w io.Writer) error { return JSON(w, doc) })
		for _, format := range slices.Sorted(func(yield func(string) bool) {
			for f := range formats {
				if !yield(f) {
					return
				}
			}
		}) {
			rendered(t, func(w io.Writer) error { return formats[format](w, doc) })
			if after := rendered(t, func(w io.Writer) error { return JSON(w, doc) }); !bytes.Equal(before, after) {
				t.Fatalf("%s: %s changed the document", name, format)
			}
		}
	}
}
