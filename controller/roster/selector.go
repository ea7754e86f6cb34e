package roster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordeal/agent/wire"
)

// Selector says which labels an agent must carry; the zero Selector asks for
// none.
type Selector struct {
	terms map[string][]string // label → the values it may have, sorted
}

// ParseSelector reads terms such as zone=eu; of several all must hold, and
// zone=eu|us holds for either value.
func ParseSelector(terms []string) (Selector, error) {
	s := Selector{terms: map[string][]string{}}
	for _, term := range terms {
		key, either, ok := strings.Cut(term, "=")
		if !ok {
			return Selector{}, fmt.Errorf("selector %q: want LABEL=VALUE, as in zone=eu, or zone=eu|us for either", term)
		}
		values := strings.Split(either, "|")
		for _, v := range values {
			if err := wire.CheckLabel(key, v); err != nil {
				return Selector{}, fmt.Errorf("selector %q: %w", term, err)
			}
		}
		if err := s.and(key, values); err != nil {
			return Selector{}, fmt.Errorf("selector %q: %w", term, err)
		}
	}
	return s, nil
}

// and narrows the values a label may have.
func (s *Selector) and(key string, values []string) error {
	slices.Sort(values)
	values = slices.Compact(values)
	before, narrows := s.terms[key]
	if narrows {
		values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(before, v) })
	}
	if len(values) == 0 {
		was := strings.Join(before, "|")
		return fmt.Errorf("no agent can match it and %s=%s too; write one term %s=A|B for either", key, was, key)
	}
	s.terms[key] = values
	return nil
}

// Matches reports whether labels fulfil every term.
func (s Selector) Matches(labels map[string]string) bool { return s.mismatch(labels) == "" }

// mismatch names the first term, by label, that labels do not fulfil.
func (s Selector) mismatch(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(s.terms)) {
		value, ok := labels[key]
		switch {
		case !ok:
			return fmt.Sprintf("has no label %s, wanted %s", key, s.term(key))
		case !slices.Contains(s.terms[key], value):
			return fmt.Sprintf("%s=%s, wanted %s", key, value, s.term(key))
		}
	}
	return ""
}

func (s Selector) term(key string) string { return key + "=" + strings.Join(s.terms[key], "|") }

// String is the selector with its terms sorted by label; "" when it asks for
// nothing. Split at the commas, ParseSelector reads it again.
func (s Selector) String() string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(s.terms)) {
		terms = append(terms, s.term(key))
	}
	return strings.Join(terms, ",")
}
