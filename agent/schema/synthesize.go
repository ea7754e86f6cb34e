package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// Origin says where a synthesized value came from.
type Origin string

// Origins, from what the author of the schema wrote to what was made up. A
// composed value has the weakest origin of its parts.
const (
	fromConst   Origin = "const"
	fromDefault Origin = "default"
	fromExample Origin = "example"
	fromEnum    Origin = "enum"
	fromFormat  Origin = "format"
	fromPattern Origin = "pattern"
	Placeholder Origin = "placeholder" // made up, within the bounds of the schema
)

var strength = []Origin{fromConst, fromDefault, fromExample, fromEnum, fromFormat, fromPattern, Placeholder}

func weaker(a, b Origin) Origin {
	return strength[max(slices.Index(strength, a), slices.Index(strength, b), 0)]
}

// Source gives the origin of each argument by its name.
type Source map[string]Origin

// Placeholders names the arguments that were made up, sorted.
func (s Source) Placeholders() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name] == Placeholder {
			out = append(out, name)
		}
	}
	return out
}

const (
	placeholder     = "ordeal probe"
	synthesizeUnits = 400_000
	synthesizeTime  = time.Second
	maxFillDepth    = 64
	maxFillText     = 1 << 14 // longest text made up
	maxFillItems    = 200     // longest array made up
	maxMembers      = 2000    // members of an object made up
	maxBranches     = 64      // combinations of alternatives tried at one place
)

// objectNode holds arguments to being an object whatever the schema forgot to say.
var objectNode = func() *engine.Schema {
	var t engine.Types
	t.Add("object")
	return &engine.Schema{Types: &t, DraftVersion: 2020}
}()

// Synthesize makes the smallest set of arguments that the schema admits: the
// required ones only. Each value is the const, default, example or enum member of
// its author where there is one, else derived from format, pattern and bounds,
// else a placeholder. An array gets one element where its elements are described.
// The result satisfies the schema; otherwise err is a [*Decline] with the reason.
func Synthesize(s *Schema) (args json.RawMessage, how Source, err error) {
	b := newBudget(synthesizeUnits, synthesizeTime)
	m, err := newGenerator(s, b).arguments()
	if err != nil {
		if d, ok := errors.AsType[*Decline](err); ok {
			return nil, nil, d
		}
		return nil, nil, &Decline{Reason: err}
	}
	return encode(m.value), m.parts, nil
}

// made is a value with its origin.
type made struct {
	value  any
	origin Origin
	parts  Source // of an object: the origin of each member
}

// generator fills places with values. One generator serves one call.
type generator struct {
	s      *Schema
	b      *budget
	ids    map[*engine.Schema]int
	open   map[string]int // conjunctions being filled right now, how often each
	reopen int            // how often one may be open: 2 below an optional array, so that a tree gets one child
	depth  int
}

func newGenerator(s *Schema, b *budget) *generator {
	return &generator{s: s, b: b, ids: map[*engine.Schema]int{}, open: map[string]int{}, reopen: 1}
}

func (g *generator) arguments() (made, error) {
	conj := []*engine.Schema{g.s.root, objectNode}
	if set, _ := declared(conj[:1]); set&object == 0 {
		return made{}, ErrNotObject
	}
	return g.fill(conj, demand{root: true})
}

// demand is what is asked of a value beyond the schema.
type demand struct {
	root  bool  // the arguments themselves
	full  bool  // neither [] nor ""
	taken []any // values that must not come again
}

func (d demand) refuses(v any) bool {
	return slices.ContainsFunc(d.taken, func(t any) bool { return same(t, v) })
}

// fill makes a value for a conjunction. That a smallest instance never needs the
// same conjunction inside itself is what tells endless requirements from deep ones.
func (g *generator) fill(conj []*engine.Schema, d demand) (made, error) {
	key := g.key(conj)
	if g.open[key] >= g.reopen && len(conj) > 0 {
		return made{}, ErrNoFiniteInstance
	}
	if g.depth >= maxFillDepth {
		return made{}, ErrTooDeep
	}
	g.open[key]++
	g.depth++
	defer func() { g.open[key]--; g.depth-- }()

	var odo odometer
	var reason error
	for range maxBranches {
		odo.rewind()
		p := flatten(conj, &odo, nil)
		if err := g.b.spend(int64(1 + len(p.nodes))); err != nil {
			return made{}, err
		}
		m, err := g.fillPlace(conj, p, d)
		if err == nil || errors.Is(err, ErrTooCostly) {
			return m, err
		}
		reason = tellingOf(reason, err)
		if !odo.next() {
			return made{}, reason
		}
	}
	return made{}, tellingOf(reason, ErrNotFound)
}

// tellingOf keeps the reason that says most: a contradiction in one branch says nothing
// about the others, so "no finite instance" stands only if every branch says so.
func tellingOf(a, b error) error {
	if a == nil || errors.Is(a, ErrNoFiniteInstance) && !errors.Is(b, ErrNoFiniteInstance) {
		return b
	}
	return a
}

// key identifies a conjunction by its members, in a form that does not depend on addresses.
func (g *generator) key(conj []*engine.Schema) string {
	ids := make([]int, len(conj))
	for i, n := range conj {
		if g.ids[n] == 0 {
			g.ids[n] = len(g.ids) + 1
		}
		ids[i] = g.ids[n]
	}
	slices.Sort(ids)
	return string(encode(slices.Compact(ids)))
}

// accepts reports whether every schema of the conjunction is sure to admit v, or cannot tell because of a pattern.
func (g *generator) accepts(conj []*engine.Schema, v any) bool {
	for _, n := range conj {
		if refusal, err := g.s.judge(n, v, g.b); refusal != nil || err != nil {
			return false
		}
	}
	return true
}

// odometer counts through all combinations of alternatives, the last one fastest.
type odometer struct {
	digits, sizes []int
	pos           int
}

func (o *odometer) rewind() { o.pos = 0 }

func (o *odometer) pick(n int) int {
	if o.pos == len(o.digits) {
		o.digits, o.sizes = append(o.digits, 0), append(o.sizes, n)
	}
	o.pos++
	return o.digits[o.pos-1]
}

func (o *odometer) branch(alternatives []*engine.Schema) int { return o.pick(len(alternatives)) }

// holds tries without the condition first: it usually demands less.
func (o *odometer) holds(*engine.Schema) bool { return o.pick(2) == 1 }

func (o *odometer) next() bool {
	for i := len(o.digits) - 1; i >= 0; i-- {
		if o.digits[i]+1 < o.sizes[i] {
			o.digits[i]++
			o.digits, o.sizes = o.digits[:i+1], o.sizes[:i+1]
			return true
		}
	}
	return false
}
