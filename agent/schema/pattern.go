package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxPatternLen  = 4096
	maxPatternSize = 4000      // instructions of one compiled program
	maxPatternSum  = 400_000   // instructions of all patterns of a schema, about half a second of compiling
	maxMatchWork   = 200 << 20 // characters times instructions of one match, about a second at worst
)

// A Limit is one thing of a schema that is not understood. Only verdicts that
// depend on it are affected.
type Limit struct {
	Path    string // JSON pointer of the subschema inside the schema
	Pattern string
	Reason  string
}

// matcher is one pattern of a schema. Patterns are ECMA-262 by the standard and
// RE2 here: what RE2 cannot express is opaque and answered by the gauge.
type matcher struct {
	source string
	reason string // why it is opaque, "" when it is understood
	wrong  bool   // no dialect accepts it
	re     *regexp.Regexp
	tree   *syntax.Regexp
	size   int
	gauge  *gauge
}

func (m *matcher) String() string { return m.source }

// MatchString is called by the engine inside a verdict.
func (m *matcher) MatchString(s string) bool {
	if m.re == nil {
		return m.gauge.guess(m.source, s)
	}
	work := len(s) * m.size
	if work > maxMatchWork {
		return m.gauge.guess(m.source, s)
	}
	m.gauge.charge(int64(1 + work/1000))
	return m.re.MatchString(s)
}

// matches is for use outside a verdict: it also says whether the answer is sure.
func (m *matcher) matches(s string) (matched, sure bool) {
	if m.re == nil || len(s)*m.size > maxMatchWork {
		return false, false
	}
	return m.re.MatchString(s), true
}

// newMatcher never fails: a pattern that is not understood costs its own
// verdicts, not the whole tool.
func newMatcher(source string, g *gauge) *matcher {
	m := &matcher{source: source, gauge: g}
	if len(source) > maxPatternLen {
		m.reason = "pattern is longer than 4096 bytes"
		return m
	}
	if g.patterns > maxPatternSum {
		m.reason = "the patterns of the schema take more than 400,000 instructions together"
		return m
	}
	tree, err := syntax.Parse(fromECMA(source), syntax.Perl)
	if err != nil {
		m.reason, m.wrong = err.Error(), brokenEverywhere(source, err)
		return m
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err == nil {
		g.patterns += len(prog.Inst)
	}
	if err != nil || len(prog.Inst) > maxPatternSize {
		m.reason = "pattern compiles to more than 4000 instructions"
		return m
	}
	m.re, m.tree, m.size = regexp.MustCompile(fromECMA(source)), tree, len(prog.Inst)
	return m
}

// compilePattern is the engine's regular expression hook.
func compilePattern(g *gauge) engine.RegexpEngine {
	return func(source string) (engine.Regexp, error) { return newMatcher(source, g), nil }
}

// fromECMA rewrites the escapes that differ only in spelling.
func fromECMA(p string) string {
	if !strings.Contains(p, `\`) {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 == len(p) {
			b.WriteByte(p[i])
			continue
		}
		i++
		switch {
		case p[i] == 'u' && i+4 < len(p) && isHex(p[i+1:i+5]):
			b.WriteString(`\x{` + p[i+1:i+5] + `}`)
			i += 4
		case p[i] == '0' && (i+1 == len(p) || p[i+1] < '0' || p[i+1] > '9'):
			b.WriteString(`\x00`)
		default:
			b.WriteByte('\\')
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// brokenEverywhere tells a pattern that is wrong in any dialect from one that
// RE2 merely lacks ([] and [^] are legal in ECMA and an open bracket in RE2).
func brokenEverywhere(source string, err error) bool {
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrTrailingBackslash, syntax.ErrMissingRepeatArgument:
		return !strings.Contains(source, "(?")
	case syntax.ErrMissingBracket:
		return !strings.Contains(source, "[]") && !strings.Contains(source, "[^]")
	}
	return false
}
