package schema

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// never is the schema that admits nothing.
var never = &engine.Schema{Bool: new(bool)}

// instrument puts the gauge into every reachable node and collects the limits.
// The format check is the one hook that the engine calls before it descends.
func (s *Schema) instrument() {
	seen := map[*engine.Schema]bool{s.root: true}
	for queue := []*engine.Schema{s.root}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		s.noteLimits(n)
		n.Format = gauged(n.Format, s.gauge)
		for _, c := range subschemas(n) {
			if !seen[c] {
				seen[c] = true
				queue = append(queue, c)
			}
		}
	}
	slices.SortStableFunc(s.limits, func(a, b Limit) int { return cmp.Compare(a.Path, b.Path) })
}

func gauged(f *engine.Format, g *gauge) *engine.Format {
	out := &engine.Format{}
	check := func(any) error { return nil }
	if f != nil {
		out.Name, check = f.Name, f.Validate
		if f.Name == "regex" {
			check = checkRegex
		}
	}
	out.Validate = func(v any) error {
		g.charge(1)
		return check(v)
	}
	return out
}

// checkRegex replaces the engine's check, which would ask our lenient pattern hook.
func checkRegex(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if m := newMatcher(s, &gauge{}); m.wrong {
		return engine.LocalizableError("%s", m.reason)
	}
	return nil
}

func (s *Schema) noteLimits(n *engine.Schema) {
	_, at, _ := strings.Cut(n.Location, "#")
	note := func(re engine.Regexp) {
		if m, ok := re.(*matcher); ok && m.re == nil {
			s.limits = append(s.limits, Limit{Path: at, Pattern: m.source, Reason: m.reason})
		}
	}
	note(n.Pattern)
	for _, re := range patternsOf(n) {
		note(re)
	}
}

// patternsOf lists the patterns of patternProperties in a fixed order.
func patternsOf(n *engine.Schema) []*matcher {
	var out []*matcher
	for re := range n.PatternProperties {
		if m, ok := re.(*matcher); ok {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *matcher) int { return cmp.Compare(a.source, b.source) })
	return out
}

// itemsOf unites the three spellings of item schemas: the leading ones by
// position, and the one for the rest (nil when anything goes).
func itemsOf(n *engine.Schema) (prefix []*engine.Schema, rest *engine.Schema) {
	prefix, rest = n.PrefixItems, n.Items2020
	switch items := n.Items.(type) {
	case *engine.Schema:
		rest = items
	case []*engine.Schema:
		prefix = items
		rest = asSchema(n.AdditionalItems)
	}
	return prefix, rest
}

// asSchema reads a keyword whose value is a schema or a boolean.
func asSchema(v any) *engine.Schema {
	switch v := v.(type) {
	case *engine.Schema:
		return v
	case bool:
		if !v {
			return never
		}
	}
	return nil
}

// subschemas lists every schema that n refers to, in a fixed order.
func subschemas(n *engine.Schema) []*engine.Schema {
	prefix, rest := itemsOf(n)
	all := []*engine.Schema{n.Ref, n.RecursiveRef, n.Not, n.If, n.Then, n.Else, n.PropertyNames,
		n.UnevaluatedProperties, n.UnevaluatedItems, n.Contains, n.ContentSchema, rest, asSchema(n.AdditionalProperties)}
	if n.DynamicRef != nil {
		all = append(all, n.DynamicRef.Ref)
	}
	all = slices.Concat(all, n.AllOf, n.AnyOf, n.OneOf, prefix)
	for _, k := range slices.Sorted(maps.Keys(n.Properties)) {
		all = append(all, n.Properties[k])
	}
	for _, m := range patternsOf(n) {
		all = append(all, n.PatternProperties[m])
	}
	for _, k := range slices.Sorted(maps.Keys(n.Dependencies)) {
		all = append(all, asSchema(n.Dependencies[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(n.DependentSchemas)) {
		all = append(all, n.DependentSchemas[k])
	}
	return slices.DeleteFunc(all, func(c *engine.Schema) bool { return c == nil || c == never })
}
