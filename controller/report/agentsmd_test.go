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
	for in, want := range map[string]string{"mock:degraded": "mock:degraded", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "a\x1b[31m": `'a\x1b[31m'`, "~": "'~'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
