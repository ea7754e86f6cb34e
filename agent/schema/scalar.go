package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	longText     = 50_000
	wrongNumber  = json.Number("12345")
	unknownName  = "ordeal_unknown_field"
	maxListCases = 1000 // longest array sent to exceed maxItems
)

func itoa(i int) string { return strconv.Itoa(i) }

// top marks a candidate at a top-level field as one of the classic ones.
func (sp spot) top() bool { return len(sp.path) == 1 }

// fieldCases replaces the value of a declared member.
func (w *walker) fieldCases(sp spot) {
	set, known := declared(sp.conj)
	w.replace(sp, nullRequired, "type", nil).compat = sp.top()
	w.wrongTypes(sp, set, known)
	if set&text != 0 {
		w.replace(sp, emptyString, "minLength", "").compat = sp.top()
		w.replace(sp, veryLongString, "maxLength", strings.Repeat("A", w.longLength(sp.place))).compat = sp.top()
	}
	w.valueCases(sp, set, known)
}

// elementCases is fieldCases for an element of an array, where wrong_item stands for null and wrong types.
func (w *walker) elementCases(sp spot) {
	set, known := declared(sp.conj)
	if set&text != 0 && known {
		w.replace(sp, emptyString, "minLength", "")
		w.replace(sp, veryLongString, "maxLength", strings.Repeat("A", w.longLength(sp.place)))
	}
	w.valueCases(sp, set, known)
}

// longLength is 50,000 or just more than the schema allows.
func (w *walker) longLength(p place) int {
	_, high := p.within(lengthBounds)
	if high >= longText && high < w.opt.MaxText {
		return high + 1
	}
	return min(longText, w.opt.MaxText)
}

// wrongTypes sends 12345 for a text and a text for anything else; for a union a
// value of the first type outside it. Without a declared type 12345 shows that nothing is asked.
func (w *walker) wrongTypes(sp spot, set typeset, known bool) {
	bare := set &^ null
	switch {
	case !known || bare == text:
		w.replace(sp, wrongType, "type", wrongNumber).compat = sp.top()
	case bare&text == 0:
		single := bare == integer|number || bare != 0 && bare&(bare-1) == 0
		w.replace(sp, wrongType, "type", placeholder).compat = sp.top() && single
	default:
		if v, ok := foreign(set); ok {
			w.replace(sp, wrongType, "type", v)
		}
	}
}

// foreign gives a value of a type outside the set.
func foreign(set typeset) (any, bool) {
	for _, c := range []struct {
		t typeset
		v any
	}{{integer, wrongNumber}, {text, placeholder}, {boolean, true}, {array, []any{}}, {object, map[string]any{}}, {null, nil}} {
		if set&c.t == 0 {
			return c.v, true
		}
	}
	return nil, false
}

// valueCases follows the keywords of scalars.
func (w *walker) valueCases(sp spot, set typeset, known bool) {
	if set&(integer|number) != 0 {
		w.rangeCases(sp, known)
		w.multipleCases(sp)
		if known && set&number == 0 {
			w.isolated(sp, fractionalInteger, "type", w.fractions(sp), nil)
		}
	}
	if set&text != 0 {
		w.textCases(sp)
	}
	w.listCases(sp)
}

// rangeCases steps over each bound by the least amount that keeps to the multiples, by 1 without multiples.
func (w *walker) rangeCases(sp spot, known bool) {
	s := sp.place.span()
	classic := sp.top() && known
	if s.low != nil {
		v := below(s.low, s.lowOpen, s.step)
		w.replace(sp, outOfRange, pick(s.lowOpen, "exclusiveMinimum", "minimum"), literal(v)).compat = classic && !s.lowOpen
	}
	if s.high != nil {
		// The mirror image: above high is below -high.
		v := below(new(big.Rat).Neg(s.high), s.highOpen, s.step)
		only := s.low == nil || s.lowOpen
		w.replace(sp, outOfRange, pick(s.highOpen, "exclusiveMaximum", "maximum"), literal(v.Neg(v))).compat = classic && !s.highOpen && only
	}
}

// below gives the greatest number that a lower bound excludes, by steps.
func below(bound *big.Rat, open bool, step *big.Rat) *big.Rat {
	if step == nil {
		if open {
			return new(big.Rat).Set(bound)
		}
		return new(big.Rat).Sub(bound, ratInt(1))
	}
	v := roundUp(bound, step)
	if open && v.Cmp(bound) == 0 {
		return v
	}
	return v.Sub(v, step)
}

func pick(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}

func (w *walker) multipleCases(sp spot) {
	if !sp.place.some(func(n *engine.Schema) bool { return n.MultipleOf != nil }) {
		return
	}
	from := number64(sp.value)
	step := sp.place.span().step
	var values []any
	half := new(big.Rat).Quo(step, ratInt(2))
	for _, d := range []*big.Rat{ratInt(1), ratInt(-1), half, new(big.Rat).Neg(half), ratInt(2)} {
		v := new(big.Rat).Add(from, d)
		if _, exact := v.FloatPrec(); exact {
			values = append(values, literal(v))
		}
	}
	w.isolated(sp, notMultipleOf, "multipleOf", values, func(n *engine.Schema) { n.MultipleOf = nil })
}

// number64 reads a number, 1 for anything else.
func number64(v any) *big.Rat {
	if n, ok := v.(json.Number); ok {
		return rational(n)
	}
	return ratInt(1)
}

func (w *walker) fractions(sp spot) []any {
	values := []any{json.Number("1.5")}
	for _, half := range []int64{1, -1} {
		v := new(big.Rat).Add(number64(sp.value), big.NewRat(half, 2))
		values = append(values, literal(v))
	}
	return values
}

// textCases follows length, pattern and format.
func (w *walker) textCases(sp spot) {
	low, high := sp.place.within(lengthBounds)
	given, _ := sp.value.(string)
	if low > 0 && low <= w.opt.MaxText {
		w.replace(sp, tooShort, "minLength", stretched(given, low-1))
	}
	if high >= 0 && high < w.opt.MaxText {
		w.replace(sp, tooLong, "maxLength", stretched(given, high+1))
	}
	if all, _ := sp.place.patterns(); len(all) > 0 {
		w.isolated(sp, patternOutsider, "pattern", patternOutsiders(given, low, high), func(n *engine.Schema) { n.Pattern = nil })
	}
	for _, name := range sp.place.formats() {
		values := []any{formatOutsiders[name], placeholder, "%", "{", ""}
		w.isolated(sp, formatOutsider, "format", values, func(n *engine.Schema) { n.Format = nil })
	}
}

// patternOutsiders proposes texts that a pattern may refuse, in the allowed length first.
func patternOutsiders(given string, low, high int) []any {
	var out []any
	for _, s := range []string{placeholder, "!", "~~~", given + "!", "!" + given, " ", "0", "a", "A", "\n", ""} {
		if n := len([]rune(s)); n < low {
			s += strings.Repeat("!", min(low-n, maxFillText))
		} else if high >= 0 && n > high {
			s = string([]rune(s)[:high])
		}
		out = append(out, s)
	}
	return out
}

// stretched cuts or lengthens a text to n runes.
func stretched(s string, n int) string {
	runes := []rune(s)
	if len(runes) >= n {
		return string(runes[:n])
	}
	return s + strings.Repeat("A", n-len(runes))
}

// listCases leaves enum and const by a value of the same type.
func (w *walker) listCases(sp spot) {
	for _, n := range sp.place.nodes {
		if n.Enum != nil {
			w.isolated(sp, enumOutsider, "enum", outsiders(n.Enum.Values), func(n *engine.Schema) { n.Enum = nil })
		}
		if n.Const != nil {
			w.isolated(sp, constOutsider, "const", outsiders([]any{*n.Const}), func(n *engine.Schema) { n.Const = nil })
		}
	}
}

// outsiders proposes values that resemble the listed ones and are none of them.
func outsiders(listed []any) []any {
	var out []any
	for _, v := range listed {
		switch v := v.(type) {
		case string:
			out = append(out, v+"_ordeal", strings.ToUpper(v), placeholder)
		case json.Number:
			out = append(out, literal(new(big.Rat).Add(rational(v), ratInt(1))), literal(new(big.Rat).Add(rational(v), ratInt(1000))))
		case bool:
			out = append(out, !v)
		}
		if len(out) > 0 {
			break
		}
	}
	out = append(out, placeholder, wrongNumber, true, false, nil)
	return slices.DeleteFunc(out, func(v any) bool {
		return slices.ContainsFunc(listed, func(l any) bool { return same(l, v) })
	})
}

// isolated takes the first value that breaks nothing but the keyword that edit
// removes, else the first that the schemas of the place refuse at all.
func (w *walker) isolated(sp spot, kind Kind, keyword string, values []any, edit func(*engine.Schema)) {
	var rest []*engine.Schema
	if edit != nil {
		rest = sp.place.alone(edit)
	}
	if v, ok := w.pure(values, rest, func(v any) bool { return w.g.accepts(sp.conj, v) }); ok {
		w.replace(sp, kind, keyword, v)
	}
}

// pure picks the first value that allowed refuses and rest admits, else the first that allowed refuses.
func (w *walker) pure(values []any, rest []*engine.Schema, allowed func(any) bool) (v any, ok bool) {
	for _, c := range values {
		if w.b.dry || allowed(c) {
			continue
		}
		if w.g.accepts(rest, c) {
			return c, true
		}
		if !ok {
			v, ok = c, true
		}
	}
	return v, ok
}
