package schema

import (
	"encoding/json"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// typeset is a set of JSON types. A schema type "number" holds both number bits,
// so that intersecting it with "integer" leaves the integer.
type typeset uint8

const (
	null typeset = 1 << iota
	boolean
	integer
	number // with a fraction
	text
	array
	object
	anyType = null | boolean | integer | number | text | array | object
)

var typeNames = map[string]typeset{
	"null": null, "boolean": boolean, "integer": integer, "number": integer | number,
	"string": text, "array": array, "object": object,
}

func typesetOf(t *engine.Types) typeset {
	var set typeset
	for _, name := range t.ToStrings() {
		set |= typeNames[name]
	}
	return set
}

// typeOf gives the type of a decoded value; 3.0 is an integer, as in the standard.
func typeOf(v any) typeset {
	switch v := v.(type) {
	case bool:
		return boolean
	case json.Number:
		if rational(v).IsInt() {
			return integer
		}
		return number
	case string:
		return text
	case []any:
		return array
	case map[string]any:
		return object
	}
	return null
}

// declared works out which types a conjunction admits by its type keywords,
// through $ref, allOf and all branches of anyOf and oneOf. known is false when no type is declared anywhere.
func declared(conj []*engine.Schema) (set typeset, known bool) {
	r := typeReader{open: map[*engine.Schema]bool{}, left: maxTypeVisits}
	return r.all(conj)
}

// maxTypeVisits ends the reading of compositions that multiply out; what was not read declares nothing.
const maxTypeVisits = 2000

type typeReader struct {
	open map[*engine.Schema]bool // schemas being read, against cycles
	left int
}

func (r *typeReader) all(conj []*engine.Schema) (set typeset, known bool) {
	set = anyType
	for _, n := range conj {
		if n == nil || r.open[n] || r.left <= 0 {
			continue
		}
		r.left--
		r.open[n] = true
		if n.Types != nil {
			set, known = set&typesetOf(n.Types), true
		}
		inner := append([]*engine.Schema{n.Ref, n.RecursiveRef}, n.AllOf...)
		if s, ok := r.all(inner); ok {
			set, known = set&s, true
		}
		for _, group := range [][]*engine.Schema{n.AnyOf, n.OneOf} {
			if s, ok := r.any(group); ok {
				set, known = set&s, true
			}
		}
		delete(r.open, n)
	}
	return set, known
}

// any is known only if every branch declares its types.
func (r *typeReader) any(group []*engine.Schema) (set typeset, known bool) {
	for _, n := range group {
		s, ok := r.all([]*engine.Schema{n})
		if !ok {
			return anyType, false
		}
		set |= s
	}
	return set, len(group) > 0
}
