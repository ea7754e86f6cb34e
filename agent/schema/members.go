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
			w.add(missingRequired, "required", child(sp.path, name), edit{doc: sp.doc, path: sp.path, gone: []string{name}}).compat = root
		}
	}
	if len(present) > 1 {
		w.add(missingAllRequired, "required", sp.path, edit{doc: sp.doc, path: sp.path, gone: present}).compat = root
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
		w.add(extraParam, "additionalProperties", path, edit{doc: sp.doc, path: path, value: true}).compat = classic
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
			w.add(badPropertyName, "propertyNames", path, edit{doc: sp.doc, path: path, value: placeholder})
			return
		}
	}
}

func (w *walker) badExtra(sp spot, keyword, name string, c *engine.Schema) {
	path := child(sp.path, name)
	for _, v := range []any{wrongNumber, placeholder, nil, true} {
		if !w.g.accepts([]*engine.Schema{c}, v) {
			w.add(badExtraValue, keyword, path, edit{doc: sp.doc, path: path, value: v})
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
		w.add(tooFewProperties, "minProperties", sp.path, edit{doc: sp.doc, path: sp.path, gone: names[:len(obj)-low+1]})
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
