package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"Plain", "p95 was 7.99s", "p95 was 7.99s"},
		{"WhiteSpace", " a\tb\r\n\n c\u2028d\u00a0 ", "a b c d"},
		{"Escape", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"C1", "a\u009bb\x7f", `a\x9bb\x7f`},
		{"NUL", "a\x00b", `a\x00b`},
		{"RightToLeft", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		{"ZeroWidth", "a\u200bb\ufeffc", `a\u200bb\ufeffc`},
		{"BrokenUTF8", "a\xff\xc3b", `a\xff\xc3b`},
		{"PrivateUse", "\ue000\U000f0000", `\ue000\U000f0000`},
		{"VariationSelector", "\u2764\ufe0f", "\u2764"},
		{"Marks", "e\u0301\u0301\u0301\u0301x\u0301", "e\u0301\u0301x\u0301"},
		{"Japanese", "天気", "天気"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clean(tt.in); got != tt.want {
				t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "天気": 4, "e\u0301": 1, "ｱ": 1, "Ａ": 2, "\U0001F600": 2, "\U0001F1E9\U0001F1EA": 4, "µ": 1} {
		if got := columns(s); got != want {
			t.Errorf("columns(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc..."}, {"天気天気", 6, "天..."}, {"天気", 3, "..."}, {"abc", 2, ".."}, {"abc", 0, ""}, {"", 0, ""}} {
		if got := fit(tt.in, tt.n); got != tt.want {
			t.Errorf("fit(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"abcdefghij k", 4, []string{"abcd", "efgh", "ij k"}},
		{"天気天気", 3, []string{"天", "気", "天", "気"}},
	} {
		if diff := cmp.Diff(tt.want, wrap(tt.in, tt.n)); diff != "" {
			t.Errorf("wrap(%q, %d) (-want +got):\n%s", tt.in, tt.n, diff)
		}
	}
}

func TestCleanBlock(t *testing.T) {
	got := cleanBlock("a\r\n  b\x1b[2J\n天\nc\nd", 3, 100)
	if want := "a\n  b\\x1b[2J\n天\n(shortened)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := cleanBlock("ab天", 3, 4); got != "ab\n(shortened)" {
		t.Errorf("cut inside a character: got %q", got)
	}
}

func TestEsc(t *testing.T) {
	for in, want := range map[string]string{
		"plain 7.99s -> ok":          "plain 7.99s -> ok",
		"missing_required[query]":    "missing_required[query]",
		"[a](http://x) ![b](c)":      `\[a\](http://x) ![b\](c)`,
		"*bold* `code` <b>&amp;":     "\\*bold\\* \\`code\\` \\<b>&amp;amp;",
		"# head":                     `\# head`,
		"1. list":                    `1\. list`,
		"0.1.0":                      "0.1.0",
		"_em_ snake_case":            `\_em\_ snake_case`,
		"a|b":                        `a\|b`,
		"-":                          "-",
		"a\n\n# b":                   "a # b",
		"<!-- ordeal-state\n{}\n-->": `\<!-- ordeal-state {} -->`,
	} {
		if got := esc(in); got != want {
			t.Errorf("esc(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{"a": "`a`", "a`b": "`` a`b ``", "```": "```` ``` ````", "": "-", "a\n`b": "`` a `b ``"} {
		if got := code(in); got != want {
			t.Errorf("code(%q) = %q, want %q", in, got, want)
		}
	}
	if got := codeCell("a|b"); got != "`a\\|b`" {
		t.Errorf("codeCell = %q", got)
	}
}

// Whatever comes in, what comes out is one printable line, and cleaning it
// again changes nothing but a run of blanks.
func FuzzClean(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := clean(s)
		assertPrintable(t, out)
		for _, line := range wrap(out, 20) {
			if columns(line) > 20 {
				t.Fatalf("%q: a line of %d columns: %q", s, columns(line), line)
			}
		}
		if got := strings.Join(strings.Fields(clean(out)), " "); got != strings.Join(strings.Fields(out), " ") {
			t.Fatalf("%q: cleaned again %q, want %q", s, got, out)
		}
	})
}

func assertPrintable(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("broken UTF-8 in %q", s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			t.Fatalf("%U in %q", r, s)
		}
	}
}
