package schema

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

const maxSampleText = 20_000 // steps and runes of one text made from a pattern

// formatSamples are valid texts of each format that the engine asserts.
// Addresses and names are those reserved for documentation.
var formatSamples = map[string][]string{
	"date-time":             {"2024-01-15T10:30:00Z", "2024-01-16T10:30:00Z"},
	"date":                  {"2024-01-15", "2024-01-16"},
	"time":                  {"10:30:00Z", "10:31:00Z"},
	"duration":              {"P1D", "P2D"},
	"period":                {"2024-01-15T10:30:00Z/P1D"},
	"email":                 {"probe@example.com", "probe2@example.com"},
	"hostname":              {"example.com", "example.org"},
	"ipv4":                  {"192.0.2.1", "192.0.2.2"},
	"ipv6":                  {"2001:db8::1", "2001:db8::2"},
	"uri":                   {"https://example.com/", "https://example.org/"},
	"iri":                   {"https://example.com/", "https://example.org/"},
	"uri-reference":         {"https://example.com/", "/ordeal"},
	"iri-reference":         {"https://example.com/", "/ordeal"},
	"uri-template":          {"https://example.com/{id}", "/{id}"},
	"uuid":                  {"123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174001"},
	"json-pointer":          {"/ordeal", "/probe"},
	"relative-json-pointer": {"1/ordeal", "0#"},
	"regex":                 {"^ordeal$", "^probe$"},
	"semver":                {"1.0.0", "1.0.1"},
}

// formatOutsiders come close to each format and miss it.
var formatOutsiders = map[string]string{
	"date-time":             "2024-02-30T25:61:00Z",
	"date":                  "2024-02-30",
	"time":                  "25:61:00Z",
	"duration":              "1 day",
	"period":                "2024-01-15/yesterday",
	"email":                 "probe.example.com",
	"hostname":              "-probe-.example",
	"ipv4":                  "256.0.2.1",
	"ipv6":                  "2001:db8::g1",
	"uri":                   "not a uri",
	"iri":                   "not an iri",
	"uri-reference":         "%zz",
	"iri-reference":         "%zz",
	"uri-template":          "https://example.com/{id",
	"uuid":                  "123e4567-e89b-42d3-a456-42661417400z",
	"json-pointer":          "ordeal~2",
	"relative-json-pointer": "ordeal",
	"regex":                 "(ordeal",
	"semver":                "1.0",
}

// samples proposes texts of low to high runes (high < 0: no bound) that a
// pattern should match; the caller checks each. Repeats are stretched step by
// step until the text is long enough, alternatives are tried in turn.
func samples(tree *syntax.Regexp, low, high int) []string {
	var out []string
	for _, extra := range []int{0, 1, 2, 4, 8, low, low * 2} {
		for alt := range 3 {
			w := sampler{extra: min(extra, 1000), alt: alt, left: maxSampleText}
			if !w.write(tree) {
				continue
			}
			s := w.b.String()
			for _, s := range []string{s, s + strings.Repeat("a", max(0, low-len([]rune(s))))} {
				n := len([]rune(s))
				if n >= low && (high < 0 || n <= high) && !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
		}
	}
	// A text that says something is preferred over the empty one.
	slices.SortStableFunc(out, func(a, b string) int {
		return boolInt(a == "") - boolInt(b == "")
	})
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sampler writes one text along the syntax tree of a pattern.
type sampler struct {
	b     strings.Builder
	extra int // repetitions beyond the least
	alt   int // which alternative to take
	left  int // steps and runes that are still allowed
}

func (w *sampler) write(re *syntax.Regexp) bool {
	if w.left--; w.left < 0 {
		return false
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		return w.put(re.Rune...)
	case syntax.OpCharClass:
		r, ok := pleasant(re.Rune)
		return ok && w.put(r)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return w.put('a')
	case syntax.OpStar, syntax.OpQuest:
		return w.repeat(re.Sub[0], 0, bound(re))
	case syntax.OpPlus:
		return w.repeat(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		return w.repeat(re.Sub[0], re.Min, re.Max)
	case syntax.OpAlternate:
		return w.write(re.Sub[w.alt%len(re.Sub)])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if !w.write(sub) {
				return false
			}
		}
	}
	// What is left matches positions, not characters.
	return true
}

func bound(re *syntax.Regexp) int {
	if re.Op == syntax.OpQuest {
		return 1
	}
	return -1
}

func (w *sampler) repeat(re *syntax.Regexp, low, high int) bool {
	n := low + w.extra
	if high >= 0 {
		n = min(n, high)
	}
	for range n {
		if !w.write(re) {
			return false
		}
	}
	return true
}

func (w *sampler) put(runes ...rune) bool {
	if w.left -= len(runes); w.left < 0 {
		return false
	}
	for _, r := range runes {
		w.b.WriteRune(r)
	}
	return true
}

// pleasant picks a readable member of a character class given as pairs of bounds.
func pleasant(pairs []rune) (rune, bool) {
	for _, r := range "a0A_- " {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] <= r && r <= pairs[i+1] {
				return r, true
			}
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if unicode.IsPrint(pairs[i]) {
			return pairs[i], true
		}
	}
	if len(pairs) == 0 {
		return 0, false
	}
	return pairs[0], true
}
