package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"time"
)

const (
	shrinkUnits = 2_000_000
	shrinkTime  = time.Second
)

// Shrink makes a wrongly accepted payload smaller: it leaves out members and
// elements, shortens texts and simplifies numbers as long as the schema still
// refuses the payload for reasons of the original and accepted, which asks the tool, still says
// yes. accepted is called at most maxTries times. The result is the
// original when nothing smaller holds or the case is not forbidden.
func Shrink(s *Schema, c Case, accepted func(json.RawMessage) bool, maxTries int) json.RawMessage {
	doc, err := readValue(c.Payload)
	if err != nil {
		return c.Payload
	}
	h := shrinker{s: s, b: newBudget(shrinkUnits, shrinkTime), accepted: accepted, left: maxTries, asked: map[string]bool{}}
	first, refused := forbids(s.verdict(doc, c.Path, h.b))
	if !refused {
		return c.Payload
	}
	h.breaks = map[string]bool{}
	for _, b := range first.breaks {
		h.breaks[b.id()] = true
	}
	h.best = doc
	for h.pass(nil) && h.left > 0 {
	}
	return encode(h.best)
}

type shrinker struct {
	s        *Schema
	b        *budget
	accepted func(json.RawMessage) bool
	left     int             // questions to the tool that remain
	breaks   map[string]bool // what the original broke
	asked    map[string]bool // payloads that were tried
	best     any
}

// pass tries to simplify the value at path and everything inside once and reports whether anything got smaller.
func (h *shrinker) pass(path []string) bool {
	smaller := false
	for again := true; again && h.left > 0 && !h.b.dry; {
		again = false
		for _, v := range simpler(at(h.best, path)) {
			if h.try(put(h.best, path, v)) {
				again, smaller = true, true
				break
			}
		}
	}
	switch v := at(h.best, path).(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			smaller = h.pass(child(path, name)) || smaller
		}
	case []any:
		for i := range v {
			smaller = h.pass(child(path, itoa(i))) || smaller
		}
	}
	return smaller
}

// try keeps doc if it is refused for the same reasons and the tool still accepts it.
func (h *shrinker) try(doc any) bool {
	raw := encode(doc)
	if h.left <= 0 || h.asked[string(raw)] {
		return false
	}
	h.asked[string(raw)] = true
	refusal, refused := forbids(h.s.verdict(doc, "", h.b))
	if !refused {
		return false
	}
	for _, b := range refusal.breaks {
		if !h.breaks[b.id()] {
			return false // another violation than the one that was found
		}
	}
	h.left--
	if !h.accepted(raw) {
		return false
	}
	h.best = doc
	return true
}

// simpler proposes smaller forms of a value, the smallest first.
func simpler(v any) []any {
	switch v := v.(type) {
	case map[string]any:
		return fewerMembers(v)
	case []any:
		return fewerElements(v)
	case string:
		return shorter([]rune(v))
	case json.Number:
		return rounder(rational(v))
	}
	return nil
}

func fewerMembers(obj map[string]any) []any {
	if len(obj) == 0 {
		return nil
	}
	out := []any{map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		out = append(out, drop(obj, nil, name))
	}
	return out
}

// fewerElements leaves out ever smaller pieces, as in delta debugging.
func fewerElements(list []any) []any {
	var out []any
	for size := len(list); size >= 1; size /= 2 {
		for from := 0; from < len(list); from += size {
			to := min(from+size, len(list))
			out = append(out, slices.Concat(list[:from], list[to:]))
		}
	}
	return out
}

// shorter keeps ever longer beginnings; after some rounds the least length that holds is found.
func shorter(text []rune) []any {
	var out []any
	for n := 0; n < len(text); n = n + max(1, (len(text)-n)/2) {
		out = append(out, string(text[:n]))
	}
	if s := string(text); len(text) == 1 && s != "A" {
		out = append(out, "A")
	}
	return out
}

func rounder(r *big.Rat) []any {
	var out []any
	offer := func(c *big.Rat) {
		if simplicity(c) < simplicity(r) {
			out = append(out, literal(c))
		}
	}
	offer(new(big.Rat))
	offer(ratInt(1))
	offer(ratInt(-1))
	whole := new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom()))
	offer(whole)
	half := new(big.Rat).SetInt(new(big.Int).Quo(whole.Num(), big.NewInt(2)))
	offer(half)
	offer(new(big.Rat).Sub(whole, new(big.Rat).SetInt64(int64(whole.Sign()))))
	return out
}

// simplicity orders numbers: fewer digits after the point, then smaller, then positive.
func simplicity(r *big.Rat) float64 {
	places, _ := r.FloatPrec()
	size, _ := new(big.Rat).Abs(r).Float64()
	s := size*4 + float64(places)*1e300
	if r.Sign() < 0 {
		s++
	}
	return s
}
