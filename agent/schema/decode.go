package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// Bounds of documents. Schemas of real tools stay under 100 kB, 2,000 objects
// and 20 levels; the engine's compile time grows with the square of the objects.
const (
	maxSchemaBytes   = 1 << 20
	maxSchemaObjects = 3000
	maxSchemaDepth   = 400
	maxValueBytes    = 16 << 20
	maxValueDepth    = 200

	// 1e400 as a rational has 400 digits; 1e999999999 would fill the memory.
	// Documents get more room than schemas, so that numbers derived from a schema's fit.
	maxSchemaNumber = 400
	maxValueNumber  = 4000
)

// decode reads one JSON value, numbers kept as written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

// encode writes v with sorted keys and without HTML escapes.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Every value here was decoded from JSON or built of the same few types.
		panic("schema: value that is not JSON: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// extent counts what makes a document expensive.
type extent struct {
	objects, depth int
	number         int // longest number and largest exponent handled
}

// measure walks v and refuses numbers that cannot be handled exactly.
func (e *extent) measure(v any, depth int) error {
	e.depth = max(e.depth, depth)
	switch v := v.(type) {
	case map[string]any:
		e.objects++
		for _, m := range v {
			if err := e.measure(m, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, m := range v {
			if err := e.measure(m, depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		return numberFits(v, e.number)
	}
	return nil
}

func numberFits(n json.Number, limit int) error {
	s := string(n)
	if len(s) > limit {
		return fmt.Errorf("%w: a number of %d characters, at most %d are handled", ErrTooLarge, len(s), limit)
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return nil
	}
	exp, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
	if err != nil || exp > limit || exp < -limit {
		return fmt.Errorf("%w: number %s, exponents up to %d are handled", ErrTooLarge, s, limit)
	}
	return nil
}

// readValue decodes a document that is to be judged.
func readValue(raw json.RawMessage) (any, error) {
	if len(raw) > maxValueBytes {
		return nil, fmt.Errorf("%w: document of %d bytes, at most %d are judged", ErrTooLarge, len(raw), maxValueBytes)
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("document is not JSON: %w", err)
	}
	e := extent{number: maxValueNumber}
	if err := e.measure(v, 0); err != nil {
		return nil, err
	}
	if e.depth > maxValueDepth {
		return nil, fmt.Errorf("%w: document nests %d levels, at most %d are judged", ErrTooLarge, e.depth, maxValueDepth)
	}
	return v, nil
}

// rational gives the exact value of a number that passed numberFits.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// literal writes r as a JSON number; every r made here has a finite decimal form.
func literal(r *big.Rat) json.Number {
	if r.IsInt() {
		return json.Number(r.Num().String())
	}
	places, _ := r.FloatPrec()
	return json.Number(r.FloatString(places))
}

// same reports whether two JSON values are equal, numbers by value.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || rational(a).Cmp(rational(b)) == 0)
	default:
		switch b.(type) {
		case map[string]any, []any, json.Number:
			return false
		}
		return a == b
	}
}
