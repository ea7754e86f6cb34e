package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	verdictTime = time.Second
	maxReason   = 200 // runes of one reason
)

// Invalid is a refusal: the document breaks the schema at Path.
type Invalid struct {
	Path    string // JSON pointer into the document, "" for its root
	Keyword string // schema keyword that refuses: "type", "required", ...
	Reason  string // one line of at most 200 characters, without long values

	breaks []breach // everything that refuses, in a fixed order
}

func (e *Invalid) Error() string {
	return breach{path: e.Path, reason: e.Reason}.at()
}

// Validate judges a JSON document. It returns nil, an [*Invalid], an error that
// wraps [ErrUndecided], or the reason why the document cannot be read.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := readValue(raw)
	if err != nil {
		return err
	}
	return s.verdict(v, "", newBudget(verdictUnits, verdictTime))
}

// ValidateOutput holds the structured content of a tool's answer against the
// tool's output schema. Whether the root has to be an object is a matter of the
// protocol revision and left to the caller. Absent or null content is ErrNoOutput
// unless the schema admits null and null was really sent.
func ValidateOutput(s *Schema, structured json.RawMessage) error {
	if len(structured) == 0 {
		return ErrNoOutput
	}
	err := s.Validate(structured)
	if err != nil && strings.TrimSpace(string(structured)) == "null" {
		return fmt.Errorf("%w: %w", ErrNoOutput, err)
	}
	return err
}

// verdict is judge with the refusal put in words. Breaches at the path that the
// caller meant to break come first.
func (s *Schema) verdict(v any, meant string, b *budget) error {
	refusal, err := s.judge(s.root, v, b)
	if err != nil {
		return err
	}
	if refusal == nil {
		return nil
	}
	return newInvalid(refusal, meant)
}

// forbids reports whether err is a refusal, as opposed to an open verdict.
func forbids(err error) (*Invalid, bool) { return errors.AsType[*Invalid](err) }

// breach is one refusing keyword at one place. Its identity leaves the wording out.
type breach struct{ path, keyword, reason string }

func (b breach) id() string { return b.path + "\x00" + b.keyword }

// at is the reason with its place in front.
func (b breach) at() string {
	if b.path == "" {
		return b.reason
	}
	return "at " + oneLine(b.path) + ": " + b.reason
}

func byPlace(a, b breach) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.keyword, b.keyword), cmp.Compare(a.reason, b.reason))
}

func newInvalid(refusal *engine.ValidationError, meant string) *Invalid {
	var all []breach
	collect(refusal, &all)
	slices.SortFunc(all, byPlace)
	first := all[0]
	if i := slices.IndexFunc(all, func(b breach) bool { return b.path == meant }); i >= 0 {
		first = all[i]
	}
	return &Invalid{Path: first.path, Keyword: first.keyword, Reason: first.reason, breaks: all}
}

// collect gathers the leaves of the engine's report. It stops where inner
// refusals are not breaches themselves: why each branch of anyOf or each element under contains did not fit.
func collect(e *engine.ValidationError, out *[]breach) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Contains, *kind.MinContains, *kind.PropertyNames:
	default:
		if len(e.Causes) > 0 {
			for _, c := range e.Causes {
				collect(c, out)
			}
			return
		}
	}
	*out = append(*out, breach{path: placeOf(e), keyword: keywordOf(e), reason: reasonOf(e)})
}

func placeOf(e *engine.ValidationError) string {
	if _, ok := e.ErrorKind.(*kind.PropertyNames); ok {
		// The engine hands out a location here that later checks overwrite.
		return ""
	}
	return pointer(e.InstanceLocation)
}

func keywordOf(e *engine.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case nil:
		return ""
	case *kind.Not:
		return "not"
	case *kind.Dependency:
		return "dependencies"
	case *kind.FalseSchema:
		// items: false and its like carry no keyword of their own; the schema's place names it.
		return e.SchemaURL[strings.LastIndexByte(e.SchemaURL, '/')+1:]
	default:
		if path := k.KeywordPath(); len(path) > 0 {
			return path[0]
		}
	}
	return ""
}

// closest tells what is wrong with the one alternative that at least has the
// right type and the right constants, as the tag of a tagged union is one.
func closest(e *engine.ValidationError) string {
	found := ""
	for _, c := range e.Causes {
		var inner []breach
		collect(c, &inner)
		if len(inner) == 0 || slices.ContainsFunc(inner, func(b breach) bool {
			return b.keyword == "const" || b.keyword == "type" && b.path == placeOf(e)
		}) {
			continue
		}
		if found != "" {
			return "" // no single one is close
		}
		slices.SortFunc(inner, byPlace)
		found = "; closest: " + inner[0].at()
	}
	return found
}

var english = message.NewPrinter(language.English)

func reasonOf(e *engine.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case nil:
		return "refused"
	case *kind.AnyOf:
		return oneLine(fmt.Sprintf("anyOf: none of %d alternatives fits%s", len(e.Causes), closest(e)))
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("oneOf: alternatives %d and %d both fit", k.Subschemas[0], k.Subschemas[1])
		}
		return oneLine(fmt.Sprintf("oneOf: none of %d alternatives fits%s", len(e.Causes), closest(e)))
	case *kind.Not:
		return "not: fits the excluded schema"
	case *kind.FalseSchema:
		return keywordOf(e) + ": nothing is allowed here"
	case *kind.Pattern:
		return oneLine("pattern: does not match " + k.Want)
	case *kind.Format:
		return oneLine(fmt.Sprintf("format: not a valid %s: %v", k.Want, k.Err))
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
	}
	return oneLine(e.ErrorKind.LocalizedString(english))
}

// oneLine makes text from a server printable and short.
func oneLine(s string) string {
	runes := []rune(s)
	cut := len(runes) > maxReason
	if cut {
		runes = runes[:maxReason-1]
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	if cut {
		return string(runes) + "…"
	}
	return string(runes)
}
