package schema

import (
	"maps"
	"slices"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// alternatives corrupts a spot by the keywords that combine schemas.
func (w *walker) alternatives(sp spot) {
	for _, n := range sp.place.nodes {
		if len(n.AnyOf) > 0 {
			w.outside(sp, n, "anyOf", n.AnyOf)
		}
		if len(n.OneOf) > 0 {
			w.outside(sp, n, "oneOf", n.OneOf)
			w.both(sp, n)
		}
		if n.Not != nil {
			w.made(sp, notAllowed, "not", sp.place, func(c *engine.Schema) { c.Not = without(c.Not, n.Not) }, n.Not)
		}
		if n.If != nil {
			w.conditions(sp, n)
		}
	}
}

func without(have, gone *engine.Schema) *engine.Schema {
	if have == gone {
		return nil
	}
	return have
}

// skipping is the place of a spot without the alternatives of one schema.
func (w *walker) skipping(sp spot, n *engine.Schema) place {
	return flatten(sp.conj, &witness{w, sp.value}, n)
}

// made records a value made for the place with keywords edited away and further schemas demanded.
func (w *walker) made(sp spot, kind Kind, keyword string, p place, edit func(*engine.Schema), also ...*engine.Schema) bool {
	conj := append(p.alone(edit), also...)
	if len(sp.path) == 0 {
		conj = append(conj, objectNode)
	}
	m, err := w.g.fill(conj, demand{})
	if err != nil || w.g.accepts(sp.conj, m.value) {
		return false
	}
	w.replace(sp, kind, keyword, m.value)
	return true
}

// conditions looks for a value that keeps one side of the condition and breaks what follows from it.
func (w *walker) conditions(sp spot, n *engine.Schema) {
	p, keep := w.skipping(sp, n), func(*engine.Schema) {}
	if n.Then != nil {
		w.made(sp, brokenCondition, "then", p, keep, n.If, negated(n.Then))
	}
	if n.Else != nil {
		w.made(sp, brokenCondition, "else", p, keep, negated(n.If), negated(n.Else))
	}
}

// negated admits what n refuses. The draft only matters to keywords that it does not have.
func negated(n *engine.Schema) *engine.Schema {
	return &engine.Schema{Not: n, DraftVersion: 2020}
}

// both looks for a value that two alternatives of oneOf admit. Of more than six
// alternatives only neighbours of the first six are paired.
func (w *walker) both(sp spot, n *engine.Schema) {
	p := w.skipping(sp, n)
	few := n.OneOf[:min(len(n.OneOf), 6)]
	for i := range few {
		for j := i + 1; j < len(few); j++ {
			if w.made(sp, twoBranches, "oneOf", p, func(*engine.Schema) {}, few[i], few[j]) {
				return
			}
		}
	}
}

// outside looks for values that no alternative admits, preferring what the rest
// of the place admits: one next to the present value, one far from it. The near
// one is often the same as a missing member or a wrong type and then goes by that name.
func (w *walker) outside(sp spot, n *engine.Schema, keyword string, group []*engine.Schema) {
	rest := w.skipping(sp, n).alone(func(*engine.Schema) {})
	fits := func(v any) bool {
		return slices.ContainsFunc(group, func(c *engine.Schema) bool { return w.g.accepts([]*engine.Schema{c}, v) })
	}
	for _, values := range [][]any{near(sp.value), far(sp)} {
		if v, ok := w.pure(values, rest, fits); ok {
			w.replace(sp, noBranch, keyword, v)
		}
	}
}

// near lists objects that differ from the present one in one member.
func near(value any) []any {
	obj, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(obj))
	names = names[:min(len(names), 16)]
	var out []any
	for _, name := range names {
		out = append(out, drop(obj, nil, name))
	}
	for _, name := range names {
		out = append(out, put(obj, []string{name}, wrongNumber), put(obj, []string{name}, nil))
	}
	return out
}

// far lists one value of each type. The arguments themselves stay an object.
func far(sp spot) []any {
	stranger := map[string]any{unknownName: true}
	if len(sp.path) == 0 {
		return []any{stranger, map[string]any{}}
	}
	if typeOf(sp.value) == object {
		return []any{stranger, true, wrongNumber, placeholder, nil}
	}
	return []any{true, []any{}, stranger, wrongNumber, placeholder, nil, ""}
}
