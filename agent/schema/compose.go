package schema

import (
	"maps"
	"slices"
	"strings"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// objectCases corrupts an object by its own keywords.
func (w *walker) objectCases(sp spot, obj map[string]any) {
	root := len(sp.path) == 0
	var present []string
	for _, name := range sp.place.required() {
		if _, ok := obj[name]; ok {
			present = append(present, name)
			w.add(missingRequired, "required", child(sp.path, name), drop(sp.doc, sp.path, name)).compat = root
		}
	}
	if len(present) > 1 {
		w.add(missingAllRequired, "required", sp.path, drop(sp.doc, sp.path, present...)).compat = root
	}
	w.extraCases(sp, obj, root)
	w.countCases(sp, obj)
	w.dependentCases(sp, obj)
}

// extraCases adds unknown members: one that nobody declared, and bad ones under
// names or patterns for which the schema states conditions.
func (w *walker) extraCases(sp spot, obj map[string]any, root bool) {
	closed := !flattenable(sp.place.property(unknownName))
	if closed || root {
		path := child(sp.path, unknownName)
		classic := root && slices.ContainsFunc(sp.place.nodes, func(n *engine.Schema) bool { return n.AdditionalProperties == false })
		w.add(extraParam, "additionalProperties", path, put(sp.doc, path, true)).compat = classic
	}
	for _, n := range sp.place.nodes {
		if n.PropertyNames != nil {
			w.badName(sp, n.PropertyNames)
		}
		if c, ok := n.AdditionalProperties.(*engine.Schema); ok && !closed {
			w.badExtra(sp, "additionalProperties", unknownName, c)
		}
		for _, m := range patternsOf(n) {
			if m.tree == nil {
				continue
			}
			names := samples(m.tree, 0, -1)
			if i := slices.IndexFunc(names, func(s string) bool { return fresh(m, obj, s) }); i >= 0 {
				w.badExtra(sp, "patternProperties", names[i], n.PatternProperties[m])
			}
		}
	}
}

func fresh(m *matcher, obj map[string]any, name string) bool {
	_, there := obj[name]
	hit, sure := m.matches(name)
	return hit && sure && !there
}

func (w *walker) badName(sp spot, names *engine.Schema) {
	for _, name := range []string{"ordeal probe!", "", "Ordeal", strings.Repeat("n", 300)} {
		if !w.g.accepts([]*engine.Schema{names}, name) {
			path := child(sp.path, name)
			w.add(badPropertyName, "propertyNames", path, put(sp.doc, path, placeholder))
			return
		}
	}
}

func (w *walker) badExtra(sp spot, keyword, name string, c *engine.Schema) {
	path := child(sp.path, name)
	for _, v := range []any{wrongNumber, placeholder, nil, true} {
		if !w.g.accepts([]*engine.Schema{c}, v) {
			w.add(badExtraValue, keyword, path, put(sp.doc, path, v))
			return
		}
	}
}

// countCases leaves the number of members that the schema allows.
func (w *walker) countCases(sp spot, obj map[string]any) {
	low, high := sp.place.within(propertyBounds)
	if low > 0 && low-1 <= len(obj) {
		required := sp.place.required()
		names := slices.Sorted(maps.Keys(obj))
		slices.SortStableFunc(names, func(a, b string) int {
			return boolInt(slices.Contains(required, a)) - boolInt(slices.Contains(required, b))
		})
		w.add(tooFewProperties, "minProperties", sp.path, drop(sp.doc, sp.path, names[:len(obj)-low+1]...))
	}
	if high < 0 || high > maxListCases {
		return
	}
	o := objectMaker{g: w.g, p: sp.place, value: maps.Clone(obj), parts: Source{}}
	for i := 0; len(o.value) <= high; i++ {
		name := unknownName + "_" + itoa(i+1)
		if o.add(name) != nil {
			o.value[name] = placeholder
		}
	}
	w.replace(sp, tooManyProperties, "maxProperties", o.value)
}

// dependentCases leaves out what a present member brings with it.
func (w *walker) dependentCases(sp spot, obj map[string]any) {
	for _, n := range sp.place.nodes {
		for trigger, needs := range sortedNeeds(n) {
			o := objectMaker{g: w.g, p: sp.place, value: maps.Clone(obj), parts: Source{}}
			if _, there := obj[trigger]; !there && o.add(trigger) != nil {
				continue
			}
			for _, name := range needs {
				if _, there := o.value[name]; !there {
					o.value[name] = placeholder
					if m, err := w.g.fill(sp.place.property(name), demand{full: true}); err == nil {
						o.value[name] = m.value
					}
				}
			}
			for _, name := range needs {
				if name != trigger {
					w.replace(sp, dependentRequired, "dependentRequired", drop(o.value, nil, name))
				}
			}
		}
		for _, trigger := range slices.Sorted(maps.Keys(n.DependentSchemas)) {
			o := objectMaker{g: w.g, p: sp.place, value: maps.Clone(obj), parts: Source{}}
			if _, there := obj[trigger]; !there && o.add(trigger) == nil {
				w.replace(sp, dependentRequired, "dependentSchemas", o.value)
			}
		}
	}
}

// arrayCases corrupts an array by its own keywords.
func (w *walker) arrayCases(sp spot, list []any) {
	low, high := sp.place.within(itemBounds)
	if low > 0 && low-1 <= len(list) {
		w.replace(sp, tooFewItems, "minItems", list[:low-1])
	}
	if high >= 0 && high < maxListCases {
		w.replace(sp, tooManyItems, "maxItems", w.lengthened(sp, list, high+1))
	}
	if sp.place.some(unique) {
		w.duplicates(sp, list, high)
	}
	w.wrongItems(sp, list)
}

// lengthened gives the array n elements, distinct ones while they can be made.
func (w *walker) lengthened(sp spot, list []any, n int) []any {
	if n <= maxFillItems && sp.place.some(unique) {
		if m, err := w.g.list(sp.place, n); err == nil {
			return m.value.([]any)
		}
	}
	filler := any(placeholder)
	if len(list) > 0 {
		filler = list[len(list)-1]
	} else if m, err := w.g.fill(sp.place.item(0), demand{}); err == nil {
		filler = m.value
	}
	out := slices.Clone(list)
	for len(out) < n {
		out = append(out, filler)
	}
	return out
}

func (w *walker) duplicates(sp spot, list []any, high int) {
	out := slices.Clone(list)
	if len(out) == 0 {
		out = w.lengthened(sp, out, 1)
	}
	if high >= 0 && len(out) >= high && high >= 2 {
		out[len(out)-1] = out[0]
	} else {
		out = append(out, out[0])
	}
	w.replace(sp, duplicateItems, "uniqueItems", out)
}

// wrongItems puts one bad element into a good array, one too many into a closed
// tuple, and takes away what contains asks for.
func (w *walker) wrongItems(sp spot, list []any) {
	for i := range min(max(1, len(list)), max(1, sp.place.prefix())) {
		conj := sp.place.item(i)
		out := slices.Clone(list)
		if i == len(out) {
			out = append(out, nil)
		}
		for _, v := range []any{wrongNumber, placeholder, nil} {
			if len(conj) > 0 && !w.g.accepts(conj, v) {
				out[i] = v
				w.add(wrongItem, "items", child(sp.path, itoa(i)), put(sp.doc, sp.path, out))
				break
			}
		}
	}
	if n := sp.place.prefix(); n > 0 && n == len(list) && !flattenable(sp.place.item(n)) {
		w.add(wrongItem, "items", child(sp.path, itoa(n)), put(sp.doc, sp.path, append(slices.Clip(list), placeholder)))
	}
	for _, n := range sp.place.nodes {
		if n.Contains != nil {
			w.uncontained(sp, list, n.Contains)
		}
	}
}

func (w *walker) uncontained(sp spot, list []any, contains *engine.Schema) {
	out := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return w.g.accepts([]*engine.Schema{contains}, v) })
	for _, v := range []any{placeholder, wrongNumber, nil} {
		if len(out) == 0 && !w.g.accepts([]*engine.Schema{contains}, v) {
			out = append(out, v)
		}
	}
	w.replace(sp, wrongItem, "contains", out)
}
