package schema

import (
	"encoding/json"
	"maps"
	"slices"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSeeds ends the search for candidates on schemas of thousands of places;
// it is far above MaxCases so that every kind finds its share.
const maxSeeds = 4000

// walker goes through the places of a schema along the baseline and collects
// candidates. Fields that the baseline does not have are visited with a value
// made for them, so that optional parts are probed too.
type walker struct {
	s     *Schema
	b     *budget
	g     *generator
	opt   Options
	doc   any // the baseline
	seeds []seed
	full  bool // maxSeeds was reached
	open  []string
}

func newWalker(s *Schema, b *budget, doc any, opt Options) *walker {
	return &walker{s: s, b: b, g: newGenerator(s, b), opt: opt, doc: doc}
}

// spot is one visited place: where it is, what applies there, what stands there.
type spot struct {
	path  []string
	conj  []*engine.Schema
	place place
	value any
	doc   any // the baseline with value in place
}

func (w *walker) spot(path []string, conj []*engine.Schema, value, doc any) spot {
	return spot{path: path, conj: conj, value: value, doc: doc, place: flatten(conj, &witness{w, value}, nil)}
}

// witness chooses the alternatives that a present value satisfies.
type witness struct {
	w     *walker
	value any
}

func (c *witness) branch(alternatives []*engine.Schema) int {
	i := slices.IndexFunc(alternatives, c.holds)
	return max(i, 0)
}

func (c *witness) holds(n *engine.Schema) bool {
	return c.w.g.accepts([]*engine.Schema{n}, c.value)
}

// add records a candidate.
func (w *walker) add(kind Kind, keyword string, path []string, e edit) *seed {
	if len(w.seeds) >= maxSeeds {
		w.full = true
		return &seed{}
	}
	w.seeds = append(w.seeds, seed{kind: kind, keyword: keyword, path: path, edit: e})
	return &w.seeds[len(w.seeds)-1]
}

// replace records the document with another value at the spot.
func (w *walker) replace(sp spot, kind Kind, keyword string, value any) *seed {
	return w.add(kind, keyword, sp.path, edit{doc: sp.doc, path: sp.path, value: value})
}

// arguments visits the whole: first what is not an object, then the object. Null
// is left alone where a call without arguments is valid: SDKs read it as none.
func (w *walker) arguments() {
	root := w.spot(nil, []*engine.Schema{w.s.root}, w.doc, w.doc)
	for _, c := range []struct {
		name  string
		value any
	}{{"array", []any{}}, {"null", nil}, {"string", placeholder}} {
		if c.value == nil && w.s.Validate(json.RawMessage("{}")) == nil {
			continue
		}
		w.replace(root, wrongContainer, "type", c.value).detail = c.name
	}
	w.within(root)
}

// within visits what lies inside a spot.
func (w *walker) within(sp spot) {
	if w.b.spend(int64(1+len(sp.place.nodes))) != nil || w.full {
		return
	}
	key := w.g.key(sp.conj)
	if slices.Contains(w.open, key) {
		return // a schema inside itself is corrupted once
	}
	w.open = append(w.open, key)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	w.alternatives(sp)
	switch v := sp.value.(type) {
	case map[string]any:
		w.members(sp, v)
	case []any:
		w.elements(sp, v)
	}
}

// members corrupts an object as a whole and then each declared member.
func (w *walker) members(sp spot, obj map[string]any) {
	w.objectCases(sp, obj)
	if len(sp.path) >= w.opt.MaxDepth {
		return
	}
	names := sp.place.properties()
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if !slices.Contains(names, name) && len(sp.place.property(name)) > 0 {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if conj := sp.place.property(name); flattenable(conj) {
			w.member(sp, obj, name, conj)
		}
	}
}

// member visits one member. Where the baseline has none, or null, which says
// nothing about the alternatives, a value is put there first with all that its presence requires.
func (w *walker) member(sp spot, obj map[string]any, name string, conj []*engine.Schema) {
	path := child(sp.path, name)
	if v, present := obj[name]; present && v != nil {
		field := w.spot(path, conj, v, sp.doc)
		w.fieldCases(field)
		w.within(field)
		return
	}
	o := objectMaker{g: w.g, p: sp.place, value: maps.Clone(obj), parts: Source{}}
	m, err := w.g.fill(conj, demand{full: true, taken: []any{nil}})
	if err != nil {
		// Nothing could be made; the field is still corrupted as a whole.
		w.fieldCases(spot{path: path, conj: conj, doc: sp.doc, place: flatten(conj, &odometer{}, nil)})
		return
	}
	o.value[name] = m.value
	if o.require() != nil {
		o.value = maps.Clone(obj)
		o.value[name] = m.value
	}
	field := w.spot(path, conj, m.value, put(sp.doc, sp.path, o.value))
	w.fieldCases(field)
	if w.g.accepts([]*engine.Schema{w.s.root}, field.doc) {
		w.within(field)
	}
}

// elements corrupts an array as a whole and then its first element; the others
// have the same schema unless it is a tuple.
func (w *walker) elements(sp spot, list []any) {
	w.arrayCases(sp, list)
	if len(sp.path) >= w.opt.MaxDepth {
		return
	}
	for i := range min(len(list), max(1, sp.place.prefix())) {
		conj := sp.place.item(i)
		if len(conj) == 0 {
			continue
		}
		element := w.spot(child(sp.path, itoa(i)), conj, list[i], sp.doc)
		w.elementCases(element)
		w.within(element)
	}
}
