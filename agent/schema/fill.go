package schema

import (
	"errors"
	"slices"
	"strconv"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// fillPlace tries what the author wrote, then each type that the place admits.
func (g *generator) fillPlace(conj []*engine.Schema, p place, d demand) (made, error) {
	types := p.types()
	if p.impossible || types == 0 {
		return made{}, ErrNoFiniteInstance
	}
	m, closed, err := g.authored(conj, p, d)
	if m.origin != "" || closed {
		return m, err
	}
	var reason error
	for _, t := range typeOrder(p) {
		if types&t == 0 {
			continue
		}
		m, err := g.fillType(t, conj, p, d)
		if err == nil || errors.Is(err, ErrTooCostly) {
			return m, err
		}
		reason = tellingOf(reason, err)
	}
	return made{}, reason
}

func (g *generator) fillType(t typeset, conj []*engine.Schema, p place, d demand) (made, error) {
	switch t {
	case text:
		return g.text(conj, p, d)
	case integer | number:
		return g.number(conj, p, d)
	case object:
		return g.object(conj, p, d)
	case array:
		return g.array(conj, p, d)
	case boolean:
		return g.firstOf(conj, d, Placeholder, false, true)
	}
	return g.firstOf(conj, d, Placeholder, nil)
}

// typeOrder puts the type first that the other keywords speak about.
func typeOrder(p place) []typeset {
	order := []typeset{text, integer | number, boolean, object, array, null}
	speaks := func(t typeset, has func(*engine.Schema) bool) {
		if p.some(has) {
			i := slices.Index(order, t)
			order = slices.Insert(slices.Delete(order, i, i+1), 0, t)
		}
	}
	speaks(integer|number, func(n *engine.Schema) bool {
		return n.Minimum != nil || n.Maximum != nil || n.ExclusiveMinimum != nil || n.ExclusiveMaximum != nil || n.MultipleOf != nil
	})
	speaks(text, func(n *engine.Schema) bool { return n.Pattern != nil || n.MinLength != nil || n.MaxLength != nil })
	speaks(array, func(n *engine.Schema) bool {
		prefix, rest := itemsOf(n)
		return rest != nil || len(prefix) > 0 || n.MinItems != nil || n.Contains != nil
	})
	speaks(object, func(n *engine.Schema) bool {
		return len(n.Properties) > 0 || len(n.Required) > 0 || n.MinProperties != nil
	})
	return order
}

// authored tries const, default, examples and enum. closed is true when nothing else can be admitted.
func (g *generator) authored(conj []*engine.Schema, p place, d demand) (m made, closed bool, err error) {
	empty := false
	try := func(origin Origin, values []any) bool {
		for _, v := range values {
			if !g.accepts(conj, v) || d.refuses(v) {
				continue
			}
			if d.full && isEmpty(v) {
				empty = true
				continue
			}
			m = made{value: v, origin: origin, parts: sourceOf(v, origin)}
			return true
		}
		return false
	}
	for _, n := range p.nodes {
		if n.Const != nil {
			closed = true
			if try(fromConst, []any{*n.Const}) {
				return m, true, nil
			}
		}
	}
	for _, n := range p.nodes {
		var given []any
		if n.Default != nil {
			given = []any{*n.Default}
		}
		if try(fromDefault, offered(given, p, d)) || try(fromExample, offered(n.Examples, p, d)) {
			return m, true, nil
		}
	}
	for _, n := range p.nodes {
		if n.Enum != nil {
			closed = true
			if try(fromEnum, n.Enum.Values) {
				return m, true, nil
			}
		}
	}
	if empty && closed {
		return made{}, true, ErrEmpty
	}
	return made{}, closed, ErrNoFiniteInstance
}

// offered puts the required part of an authored set of arguments before the whole of it.
func offered(values []any, p place, d demand) []any {
	if !d.root {
		return values
	}
	var out []any
	for _, v := range values {
		obj, ok := v.(map[string]any)
		if !ok {
			continue
		}
		part := map[string]any{}
		for _, name := range p.required() {
			if m, ok := obj[name]; ok {
				part[name] = m
			}
		}
		out = append(out, part, v)
	}
	return out
}

func sourceOf(v any, origin Origin) Source {
	obj, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	s := Source{}
	for name := range obj {
		s[name] = origin
	}
	return s
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// firstOf takes the first value that the conjunction admits.
func (g *generator) firstOf(conj []*engine.Schema, d demand, origin Origin, values ...any) (made, error) {
	for _, v := range values {
		if err := g.b.spend(1); err != nil {
			return made{}, err
		}
		if !d.refuses(v) && g.accepts(conj, v) {
			return made{value: v, origin: origin}, nil
		}
	}
	return made{}, ErrNotFound
}

func (g *generator) number(conj []*engine.Schema, p place, d demand) (made, error) {
	s := p.span()
	if s.low != nil && s.high != nil {
		if c := s.low.Cmp(s.high); c > 0 || c == 0 && (s.lowOpen || s.highOpen) {
			return made{}, ErrNoFiniteInstance
		}
	}
	var values []any
	for _, r := range s.values(len(d.taken) + 8) {
		values = append(values, literal(r))
	}
	return g.firstOf(conj, d, Placeholder, values...)
}

func (g *generator) text(conj []*engine.Schema, p place, d demand) (made, error) {
	low, high := p.within(lengthBounds)
	patterns, known := p.patterns()
	switch {
	case high >= 0 && high < low:
		return made{}, ErrNoFiniteInstance
	case !known:
		return made{}, ErrPattern
	case low > maxFillText:
		return made{}, ErrTooLarge
	case high == 0 && d.full:
		return made{}, ErrEmpty
	}
	d.taken = slices.Clip(d.taken)
	if d.full {
		d.taken = append(d.taken, "")
	}
	for _, name := range p.formats() {
		if m, err := g.firstOf(conj, d, fromFormat, anySlice(formatSamples[name])...); err == nil {
			return m, nil
		}
	}
	for _, re := range patterns {
		if m, err := g.firstOf(conj, d, fromPattern, anySlice(samples(re.tree, low, high))...); err == nil {
			return m, nil
		}
	}
	var values []any
	for i := range len(d.taken) + 3 {
		values = append(values, numbered(i, low, high))
	}
	m, err := g.firstOf(conj, d, Placeholder, values...)
	if errors.Is(err, ErrNotFound) && len(patterns) > 0 {
		err = ErrPattern
	}
	return m, err
}

func anySlice(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// numbered gives the i-th placeholder text of low to high runes (high < 0: no bound).
func numbered(i, low, high int) string {
	s := []rune(placeholder)
	var mark []rune
	if i > 0 {
		mark = []rune(" " + strconv.Itoa(i+1))
	}
	if high >= 0 && high < len(s)+len(mark) {
		if mark = mark[min(1, len(mark)):]; len(mark) > high {
			mark = mark[len(mark)-high:]
		}
		s = s[:min(len(s), high-len(mark))]
	}
	s = append(s, mark...)
	for n := 0; len(s) < low; n++ {
		s = append(s, []rune(" " + placeholder)[n%(len(placeholder)+1)])
	}
	return string(s)
}
