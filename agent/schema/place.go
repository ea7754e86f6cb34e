package schema

import (
	"maps"
	"math/big"
	"slices"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// chooser decides between alternatives while a place is flattened.
type chooser interface {
	branch(alternatives []*engine.Schema) int
	holds(condition *engine.Schema) bool
}

// place is what one position of a document must satisfy: every schema that
// applies there in one flat list, after $ref and allOf have been followed and a
// branch has been chosen for anyOf, oneOf and if.
type place struct {
	nodes      []*engine.Schema
	impossible bool
}

// flatten builds the place of a conjunction of schemas. The groups of alternatives of skip are left out.
func flatten(conj []*engine.Schema, c chooser, skip *engine.Schema) place {
	f := flattener{c: c, skip: skip, seen: map[*engine.Schema]bool{}}
	for _, n := range conj {
		f.add(n)
	}
	return f.p
}

type flattener struct {
	p    place
	c    chooser
	skip *engine.Schema
	seen map[*engine.Schema]bool
}

func (f *flattener) add(n *engine.Schema) {
	if n == nil || f.seen[n] {
		return
	}
	f.seen[n] = true
	if n.Bool != nil {
		f.p.impossible = f.p.impossible || !*n.Bool
		return
	}
	f.p.nodes = append(f.p.nodes, n)
	f.add(n.Ref)
	f.add(n.RecursiveRef)
	if n.DynamicRef != nil {
		f.add(n.DynamicRef.Ref)
	}
	for _, a := range n.AllOf {
		f.add(a)
	}
	if n == f.skip {
		return
	}
	for _, group := range [][]*engine.Schema{n.AnyOf, n.OneOf} {
		if len(group) > 0 {
			f.add(group[f.c.branch(group)])
		}
	}
	if n.If != nil {
		if f.c.holds(n.If) {
			f.add(n.If)
			f.add(n.Then)
		} else {
			f.add(n.Else)
		}
	}
}

// alone returns the nodes as plain conjunctions: what flatten has followed is
// cut off, and edit may take a keyword away.
func (p place) alone(edit func(*engine.Schema)) []*engine.Schema {
	out := make([]*engine.Schema, 0, len(p.nodes)+1)
	for _, n := range p.nodes {
		c := *n
		c.Ref, c.RecursiveRef, c.DynamicRef = nil, nil, nil
		c.AllOf, c.AnyOf, c.OneOf, c.If, c.Then, c.Else = nil, nil, nil, nil, nil, nil
		edit(&c)
		out = append(out, &c)
	}
	return out
}

// types intersects the declared types of all nodes.
func (p place) types() typeset {
	all := anyType
	for _, n := range p.nodes {
		if n.Types != nil {
			all &= typesetOf(n.Types)
		}
	}
	return all
}

// required lists the required names in the order of the schema.
func (p place) required() []string {
	var out []string
	for _, n := range p.nodes {
		for _, name := range n.Required {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// properties lists the declared names, sorted.
func (p place) properties() []string {
	names := map[string]bool{}
	for _, n := range p.nodes {
		for name := range n.Properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// property is the conjunction that applies to the member called name.
func (p place) property(name string) []*engine.Schema {
	var out []*engine.Schema
	covered := false
	for _, n := range p.nodes {
		own := false
		if c := n.Properties[name]; c != nil {
			out, own = append(out, c), true
		}
		for _, m := range patternsOf(n) {
			if hit, sure := m.matches(name); sure && hit {
				out, own = append(out, n.PatternProperties[m]), true
			}
		}
		if !own {
			if c := asSchema(n.AdditionalProperties); c != nil {
				out, own = append(out, c), true
			}
		}
		covered = covered || own
	}
	for _, n := range p.nodes {
		if !covered && n.UnevaluatedProperties != nil {
			out = append(out, n.UnevaluatedProperties)
		}
	}
	return out
}

// item is the conjunction that applies to the element at index i.
func (p place) item(i int) []*engine.Schema {
	var out []*engine.Schema
	for _, n := range p.nodes {
		prefix, rest := itemsOf(n)
		switch {
		case i < len(prefix):
			out = append(out, prefix[i])
		case rest != nil:
			out = append(out, rest)
		case n.UnevaluatedItems != nil:
			out = append(out, n.UnevaluatedItems)
		}
	}
	return out
}

// prefix is the greatest number of elements that have a schema of their own.
func (p place) prefix() int {
	longest := 0
	for _, n := range p.nodes {
		prefix, _ := itemsOf(n)
		longest = max(longest, len(prefix))
	}
	return longest
}

// within folds a pair of optional bounds over all nodes; high is -1 when there is none.
func (p place) within(bounds func(*engine.Schema) (low, high *int)) (low, high int) {
	high = -1
	for _, n := range p.nodes {
		lo, hi := bounds(n)
		if lo != nil {
			low = max(low, *lo)
		}
		if hi != nil && (high < 0 || *hi < high) {
			high = *hi
		}
	}
	return low, high
}

func lengthBounds(n *engine.Schema) (low, high *int)   { return n.MinLength, n.MaxLength }
func itemBounds(n *engine.Schema) (low, high *int)     { return n.MinItems, n.MaxItems }
func propertyBounds(n *engine.Schema) (low, high *int) { return n.MinProperties, n.MaxProperties }

// some reports whether any node has the property asked for.
func (p place) some(has func(*engine.Schema) bool) bool { return slices.ContainsFunc(p.nodes, has) }

func unique(n *engine.Schema) bool { return n.UniqueItems }

// patterns lists the patterns that apply; ok is false when one is not understood.
func (p place) patterns() (all []*matcher, ok bool) {
	ok = true
	for _, n := range p.nodes {
		if m, is := n.Pattern.(*matcher); is {
			all = append(all, m)
			ok = ok && m.re != nil
		}
	}
	return all, ok
}

// formats lists the names of the asserted formats.
func (p place) formats() []string {
	var out []string
	for _, n := range p.nodes {
		if n.Format != nil && n.Format.Name != "" {
			out = append(out, n.Format.Name)
		}
	}
	return out
}

// span folds the numeric keywords of all nodes.
func (p place) span() span {
	var s span
	for _, n := range p.nodes {
		s.raise(n.Minimum, false)
		s.raise(n.ExclusiveMinimum, true)
		s.lower(n.Maximum, false)
		s.lower(n.ExclusiveMaximum, true)
		s.step = commonMultiple(s.step, n.MultipleOf)
	}
	if p.types()&number == 0 {
		s.step = commonMultiple(s.step, big.NewRat(1, 1))
	}
	return s
}
