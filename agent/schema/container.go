package schema

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// array makes the shortest array that says something: one element where elements are described.
func (g *generator) array(conj []*engine.Schema, p place, d demand) (made, error) {
	low, high := p.within(itemBounds)
	if high >= 0 && high < low {
		return made{}, ErrNoFiniteInstance
	}
	if low > maxFillItems {
		return made{}, ErrTooLarge
	}
	want := max(low, p.prefix(), g.contained(p))
	if want == 0 && len(p.item(0)) > 0 {
		want = 1
	}
	if high >= 0 {
		want = min(want, high)
	}
	reopen := g.reopen
	if low == 0 {
		g.reopen = 2
	}
	m, err := g.list(p, want)
	g.reopen = reopen
	recursion := errors.Is(err, ErrNoFiniteInstance) || errors.Is(err, ErrTooDeep)
	if err != nil && (low > 0 || !recursion) {
		return made{}, err
	}
	if err != nil {
		// The elements contain this array again: the innermost one stays empty.
		m = made{value: []any{}, origin: Placeholder}
	}
	if d.full && isEmpty(m.value) && (err == nil || g.depth == 2) {
		return made{}, ErrEmpty
	}
	if !g.accepts(conj, m.value) || d.refuses(m.value) {
		return made{}, ErrNotFound
	}
	return m, nil
}

// contained is how many elements have to match contains.
func (g *generator) contained(p place) int {
	most := 0
	for _, n := range p.nodes {
		if n.Contains == nil {
			continue
		}
		need := 1
		if n.MinContains != nil {
			need = *n.MinContains
		}
		most = max(most, need)
	}
	return most
}

// list makes n elements, distinct ones where the place asks for it.
func (g *generator) list(p place, n int) (made, error) {
	if n > maxFillItems {
		return made{}, ErrTooLarge
	}
	items := make([]any, 0, n)
	origin := strength[0]
	distinct := p.some(unique)
	for i := range n {
		conj := p.item(i)
		for _, node := range p.nodes {
			if node.Contains != nil && (node.MinContains == nil && i == 0 || node.MinContains != nil && i < *node.MinContains) {
				conj = append(slices.Clip(conj), node.Contains)
			}
		}
		var d demand
		if distinct {
			d.taken = items
		}
		m, err := g.fill(conj, d)
		if err != nil {
			return made{}, declined(strconv.Itoa(i), err)
		}
		items = append(items, m.value)
		origin = weaker(origin, m.origin)
	}
	if n == 0 {
		origin = Placeholder
	}
	return made{value: items, origin: origin}, nil
}

// object makes the required members, then as many more as minProperties asks for.
func (g *generator) object(conj []*engine.Schema, p place, d demand) (made, error) {
	o := objectMaker{g: g, p: p, value: map[string]any{}, parts: Source{}}
	if err := o.require(); err != nil {
		return made{}, err
	}
	low, high := p.within(propertyBounds)
	if high >= 0 && len(o.value) > high {
		return made{}, ErrNoFiniteInstance
	}
	if err := o.grow(low); err != nil {
		return made{}, err
	}
	if !g.accepts(conj, o.value) || d.refuses(o.value) {
		return made{}, ErrNotFound
	}
	origin := strength[0]
	if len(o.parts) == 0 {
		origin = Placeholder
	}
	for _, part := range o.parts {
		origin = weaker(origin, part)
	}
	return made{value: o.value, origin: origin, parts: o.parts}, nil
}

type objectMaker struct {
	g     *generator
	p     place
	value map[string]any
	parts Source
}

// require adds required members until nothing more follows from the members that are there.
func (o *objectMaker) require() error {
	for {
		missing := o.missing()
		if len(missing) == 0 {
			return nil
		}
		for _, name := range missing {
			if err := o.add(name); err != nil {
				return err
			}
		}
		o.trigger()
	}
}

func (o *objectMaker) missing() []string {
	names := o.p.required()
	for _, n := range o.p.nodes {
		for trigger, needs := range sortedNeeds(n) {
			if _, there := o.value[trigger]; there || slices.Contains(names, trigger) {
				names = append(names, needs...)
			}
		}
	}
	var out []string
	for _, name := range names {
		if _, there := o.value[name]; !there && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// sortedNeeds walks dependentRequired and its older spelling in a fixed order.
func sortedNeeds(n *engine.Schema) func(yield func(string, []string) bool) {
	all := maps.Clone(n.DependentRequired)
	for trigger, d := range n.Dependencies {
		if needs, ok := d.([]string); ok {
			if all == nil {
				all = map[string][]string{}
			}
			all[trigger] = append(slices.Clip(all[trigger]), needs...)
		}
	}
	return func(yield func(string, []string) bool) {
		for _, trigger := range slices.Sorted(maps.Keys(all)) {
			if !yield(trigger, all[trigger]) {
				return
			}
		}
	}
}

// dependents lists the schemas that the presence of name brings in.
func dependents(n *engine.Schema, name string) []*engine.Schema {
	var out []*engine.Schema
	if c := n.DependentSchemas[name]; c != nil {
		out = append(out, c)
	}
	if c, ok := n.Dependencies[name].(*engine.Schema); ok {
		out = append(out, c)
	}
	return out
}

// trigger widens the place by the schemas that depend on present members.
func (o *objectMaker) trigger() {
	conj := slices.Clip(o.p.nodes)
	for _, n := range o.p.nodes {
		for _, name := range slices.Sorted(maps.Keys(o.value)) {
			conj = append(conj, dependents(n, name)...)
		}
	}
	if len(conj) > len(o.p.nodes) {
		wider := flatten(conj[len(o.p.nodes):], &odometer{}, nil)
		for _, n := range wider.nodes {
			if !slices.Contains(o.p.nodes, n) {
				o.p.nodes = append(slices.Clip(o.p.nodes), n)
			}
		}
	}
}

func (o *objectMaker) add(name string) error {
	if len(o.value) >= maxMembers {
		return ErrTooLarge
	}
	m, err := o.g.fill(o.p.property(name), demand{full: true})
	if err != nil {
		return declined(name, err)
	}
	o.value[name], o.parts[name] = m.value, m.origin
	return nil
}

// grow adds declared members that can be filled, then invented names.
func (o *objectMaker) grow(low int) error {
	if low > maxFillItems {
		return ErrTooLarge
	}
	for _, name := range o.p.properties() {
		if len(o.value) >= low {
			return nil
		}
		if _, there := o.value[name]; !there {
			if err := o.add(name); errors.Is(err, ErrTooCostly) {
				return err
			}
		}
	}
	for _, name := range extraNames(o.g, o.p, low+4) {
		if len(o.value) >= low {
			break
		}
		if _, there := o.value[name]; !there {
			if err := o.add(name); err != nil {
				return err
			}
		}
	}
	if len(o.value) < low {
		return ErrNotFound
	}
	return o.require()
}

// extraNames invents member names: plain ones, and ones that the patterns of names ask for.
func extraNames(g *generator, p place, n int) []string {
	var names []string
	for i := range n {
		name := "ordeal_probe"
		if i > 0 {
			name += "_" + strconv.Itoa(i+1)
		}
		names = append(names, name)
	}
	for _, node := range p.nodes {
		for _, m := range patternsOf(node) {
			if m.tree != nil {
				names = append(names, samples(m.tree, 0, -1)...)
			}
		}
		if node.PropertyNames != nil {
			var taken []any
			for range min(n, 16) {
				m, err := g.fill([]*engine.Schema{node.PropertyNames}, demand{taken: taken})
				if s, ok := m.value.(string); ok && err == nil {
					names, taken = append(names, s), append(taken, s)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !nameAllowed(g, p, name) })
}

func nameAllowed(g *generator, p place, name string) bool {
	for _, n := range p.nodes {
		if n.PropertyNames != nil && !g.accepts([]*engine.Schema{n.PropertyNames}, name) {
			return false
		}
	}
	return flattenable(p.property(name))
}

// flattenable is false for members that false schemas forbid outright.
func flattenable(conj []*engine.Schema) bool {
	return !flatten(conj, &odometer{}, nil).impossible
}
