package schema

import (
	"slices"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

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
				w.add(wrongItem, "items", child(sp.path, itoa(i)), edit{doc: sp.doc, path: sp.path, value: out})
				break
			}
		}
	}
	if n := sp.place.prefix(); n > 0 && n == len(list) && !flattenable(sp.place.item(n)) {
		w.add(wrongItem, "items", child(sp.path, itoa(n)), edit{doc: sp.doc, path: sp.path, value: append(slices.Clip(list), placeholder)})
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
