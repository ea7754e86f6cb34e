package report

import (
	"go/parser"
	"go/token"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ordeal/controller/result"
)

// sectionsOf are the titles of the numbered sections of a guide.
func sectionsOf(t *testing.T, doc *result.Document) []string {
	t.Helper()
	guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) }))
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^### \d+\. (.*)$`).FindAllStringSubmatch(guide, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestSectionsBySeverity(t *testing.T) {
	doc := failing()
	doc.Probes[0].Findings = append(doc.Probes[0].Findings,
		result.Finding{ID: "latency.new_rule", Severity: result.Critical, Message: "Nobody speaks for this yet."},
		result.Finding{ID: "latency.other_rule", Severity: result.Warning, Message: "Nor for this."},
		result.Finding{ID: "latency.quiet_rule", Severity: result.Info, Message: "Only for information."})
	want := []string{
		"Writes applied twice", "Acknowledged writes that left no trace", "Crashes on malformed input", "Input the schema forbids is accepted",
		"Latency: new rule", "Answers break the output schema", "Operations that do not come back after a fault", "Calls fail without any fault injected",
		"Sessions get lost", "Calls are refused for quota", "Latency over the limit", "Heavy latency tail", "Saturates under concurrent callers", "Latency: other rule",
	}
	if got := sectionsOf(t, doc); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What our own generator could not do is nothing to fix in the target.
func TestGeneratorIsNotTheTarget(t *testing.T) {
	if got, want := sectionsOf(t, openLoop()), []string{"Sessions get lost"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := sectionsOf(t, passing()); len(got) != 0 {
		t.Errorf("passing: got %q, want nothing to fix", got)
	}
}

func TestGuideQuotesCaveats(t *testing.T) {
	guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, failing(), nil, now) }))
	for _, want := range []string{
		"> **Before acting on this:**\n> - The back-off budget of 30s ran out",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"id":"n1","text":null},"name":"add_note"}}`,
		"Patch for tool `add_note`",
		`# seen to pass: "text"`,
		"Process afterwards: exit status 1",
	} {
		if !strings.Contains(guide, want) {
			t.Errorf("no %q in the guide", want)
		}
	}
}

// The patch follows the language; an unknown one shows the answer to expect, a
// model endpoint has no patch.
func TestPatchLanguage(t *testing.T) {
	for language, want := range map[string]string{"python": "```python", "TypeScript": "```typescript", "javascript": "```typescript", "go": "```go", "rust": "The answer should be:", "": "The answer should be:"} {
		doc := failing()
		doc.Target.Language = language
		guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) }))
		if !strings.Contains(guide, want) {
			t.Errorf("%q: no %q", language, want)
		}
		if strings.HasPrefix(want, "The") && strings.Contains(guide, "Patch") {
			t.Errorf("%q: a patch in a language it may not be", language)
		}
	}
	guide := string(rendered(t, func(w io.Writer) error { return AgentsMD(w, llm(), nil, now) }))
	if strings.Contains(guide, "Patch") {
		t.Error("a patch for a model endpoint")
	}
}

// Every patch belongs to a topic and exists in all languages, and those in Go
// parse.
func TestPatches(t *testing.T) {
	languages := []string{"python", "typescript", "go"}
	files, err := patchFiles.ReadDir("patch")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		topicKey, rest, _ := strings.Cut(f.Name(), ".")
		if rankOf(topic{key: topicKey}) < 0 || !slices.Contains(languages, strings.TrimSuffix(rest, ".tmpl")) {
			t.Errorf("%s: no such topic or language", f.Name())
			continue
		}
		for _, language := range languages {
			code := patchFor(topicKey, language, "search notes", []string{"query", "a\"b\n"})
			if code == "" || strings.Contains(code, "{{") || strings.Contains(code, "<no value>") {
				t.Errorf("%s in %s: %q", topicKey, language, code)
			}
			if language == "go" {
				assertGo(t, topicKey, code)
			}
		}
	}
}

// assertGo parses declarations, or the statements of a function.
func assertGo(t *testing.T, name, code string) {
	t.Helper()
	_, asFile := parser.ParseFile(token.NewFileSet(), name, "package p\n"+code, parser.AllErrors)
	_, asBody := parser.ParseFile(token.NewFileSet(), name, "package p\nfunc f() {\n"+code+"\n}", parser.AllErrors)
	if asFile != nil && asBody != nil {
		t.Errorf("%s: %v\n%s", name, asFile, code)
	}
}

func TestIdentifier(t *testing.T) {
	for in, want := range map[string]string{"add_note": "add_note", "search-notes.v2": "search_notes_v2", "7up": "up", "天気": "handle_call", "": "handle_call",
		"x(): import os": "x____import_os", strings.Repeat("a", 80): strings.Repeat("a", 40)} {
		if got := identifier(in); got != want {
			t.Errorf("identifier(%q) = %q, want %q", in, got, want)
		}
	}
}

// The guide fits a context window with room to spare: about 2,300 tokens for
// a bad server, and never far more.
func TestGuideSize(t *testing.T) {
	for name, doc := range documents() {
		if n := len(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) })); n > 13_000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

func TestReproducerIsASCII(t *testing.T) {
	got := reproducer(malformed{Tool: "a\u202eb", Payload: []byte("{\"q\":\"\\u0001 天 \U0001F600 `` ```\"}")})
	want := "````json\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"q":"\u0001 \u5929 \ud83d\ude00 ` + "`` ```" + `"},"name":"a\u202eb"}}` + "\n````"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	long := reproducer(malformed{Tool: "t", Payload: []byte(`{"q":"` + strings.Repeat("A", 50_000) + `"}`)})
	if len(long) > maxPayload+100 || !strings.Contains(long, "(shortened, 50") {
		t.Errorf("a long reproducer of %d bytes: %.80s", len(long), long)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"mock:degraded": "mock:degraded", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "a\x1b[31m": `'a\x1b[31m'`, "~": "'~'", "error_rate>0.5/10s": "'error_rate>0.5/10s'"} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

// guideOf renders the guide of a document.
func guideOf(t *testing.T, doc *result.Document) string {
	t.Helper()
	return string(rendered(t, func(w io.Writer) error { return AgentsMD(w, doc, nil, now) }))
}

// Each case stands with the rule it breaks, and of many only the first few.
func TestGuideListsCasesWithTheirRules(t *testing.T) {
	for doc, want := range map[*result.Document]string{
		failing():  "- Cases, with what the schema says:\n  - `add_note: missing_required[text]`: at /: required: text is missing \\<b>\n  - `search_notes: wrong_type[limit]`\n",
		degraded(): "  - `summarize: null_required[query]`\n  - and 1 more\n",
	} {
		if guide := guideOf(t, doc); !strings.Contains(guide, want) {
			t.Errorf("no %q in\n%s", want, guide)
		}
	}
}

// A schema that forbids little leaves fields without bounds; they are named,
// not counted as a thing to fix.
func TestGuideNamesUndeclaredBounds(t *testing.T) {
	doc := degraded()
	metrics := doc.Probes[indexOf(t, doc, "contract")].Metrics
	metrics["schema_strictness"] = num(0.6, "rate", 15)
	if guide := guideOf(t, doc); strings.Contains(guide, "declare what you reject") {
		t.Error("advice for a schema that declares enough")
	}
	metrics["schema_strictness"] = num(0.4, "rate", 15)
	guide := guideOf(t, doc)
	for _, want := range []string{"## For information: declare what you reject", "forbid 40.0% of", "- `echo.query`: no `minLength, maxLength`\n"} {
		if !strings.Contains(guide, want) {
			t.Errorf("no %q in\n%s", want, guide)
		}
	}
}

func indexOf(t *testing.T, doc *result.Document, probe string) int {
	t.Helper()
	i := slices.IndexFunc(doc.Probes, func(p result.Probe) bool { return p.Name == probe })
	if i < 0 {
		t.Fatalf("no probe %s", probe)
	}
	return i
}

// What a server does against the protocol has a section, and a knee one whose
// check speaks of times, not of errors.
func TestSectionsOfFindings(t *testing.T) {
	doc := passing()
	at := indexOf(t, doc, "latency")
	doc.Probes[at].Findings = []result.Finding{
		{ID: "contract.protocol", Severity: result.Warning, Message: "Protocol: line 3 on stdout is no JSON: hello `x` (seen 3 times)."},
		{ID: "contract.protocol", Severity: result.Warning, Message: "Protocol: an answer to a notification."},
		{ID: "concurrency.latency_knee", Severity: result.Warning, Message: "At 4 callers p95 is 0.90s."},
		{ID: "concurrency.peak_goodput", Severity: result.Info, Message: "The best goodput is 5 successes/s."},
	}
	if got, want := sectionsOf(t, doc), []string{"Slows down under concurrent callers", "Messages that break the protocol"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	guide := guideOf(t, doc)
	for _, want := range []string{
		"**FINDING: 2 kinds of messages break the protocol**", "- From the server: line 3 on stdout is no JSON: hello \\`x\\` (seen 3 times).",
		"**FINDING: At 4 callers p95 is 0.90s**", "Fixed when: Run the concurrency probe: p95 of every level is within three times that of the first, or below 50 ms.",
	} {
		if !strings.Contains(guide, want) {
			t.Errorf("no %q in\n%s", want, guide)
		}
	}
}

// A tail of milliseconds is noise of the machine.
func TestShortTailIsNoSection(t *testing.T) {
	for p99, want := range map[float64]int{0.049: 0, 0.051: 1} {
		doc := passing()
		m := doc.Probes[indexOf(t, doc, "latency")].Metrics
		m["tail_ratio"], m["observed_p99_s"] = num(8, "x", 100), num(p99, "s", 100)
		if got := sectionsOf(t, doc); len(got) != want {
			t.Errorf("p99 %v: sections %q", p99, got)
		}
	}
}

func TestGoServersGetATypedInput(t *testing.T) {
	doc := failing()
	doc.Target.Language = "go"
	if guide := guideOf(t, doc); !strings.Contains(guide, "mcp.AddTool(server,") || !strings.Contains(guide, "in add_noteInput)") {
		t.Errorf("no typed input in\n%s", guide)
	}
}
