package report

import (
	"cmp"
	"slices"
	"strings"
)

// tallied is one entry of a metric that maps names to values.
type tallied struct {
	name  string
	value any
}

// number is the value as a number, 0 when it is none.
func (t tallied) number() float64 {
	v, _ := t.value.(float64)
	return v
}

// tallies turns a map into entries, largest number first, then by name.
func tallies(v any) []tallied {
	m, _ := v.(map[string]any)
	out := make([]tallied, 0, len(m))
	for name, value := range m {
		out = append(out, tallied{name, value})
	}
	slices.SortFunc(out, func(a, b tallied) int {
		return cmp.Or(cmp.Compare(b.number(), a.number()), strings.Compare(a.name, b.name))
	})
	return out
}

// rows returns a list of maps as maps, nil when the value is something else.
func rows(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			return nil
		}
		out = append(out, m)
	}
	return out
}

// listed writes tallies as "3 timeout, 2 malformed", at most n of them.
func listed(entries []tallied, n int) string {
	var parts []string
	for i, e := range entries {
		if i == n {
			parts = append(parts, count(float64(len(entries)-n))+" more kinds")
			break
		}
		parts = append(parts, scalar(e.value, "")+" "+clean(e.name))
	}
	return strings.Join(parts, ", ")
}

// scalar shows one value of any kind in its unit.
func scalar(v any, unit string) string {
	switch x := v.(type) {
	case float64:
		return quantity(x, unit)
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case string:
		return clean(x)
	case []any:
		return scalarList(x, unit)
	}
	return absent
}

// maxListed bounds a list shown on one line.
const maxListed = 12

func scalarList(list []any, unit string) string {
	var parts []string
	for i, x := range list {
		if i == maxListed {
			parts = append(parts, count(float64(len(list)-i))+" more")
			break
		}
		parts = append(parts, scalar(x, unit))
	}
	return strings.Join(parts, ", ")
}
