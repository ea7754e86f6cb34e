package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	engine "github.com/santhosh-tekuri/jsonschema/v6"
)

// base names the document itself; it only ever shows up in engine messages.
const base = "ordeal:///schema"

// Schema is one compiled schema. Safe for concurrent use; verdicts are found one at a time.
type Schema struct {
	root   *engine.Schema
	limits []Limit

	mu    sync.Mutex // guards gauge for the length of one verdict
	gauge *gauge
}

// Compile reads a schema of 2020-12 (assumed when $schema is absent), 2019-09 or
// drafts 7 to 4. A schema without $schema that 2020-12 refuses is tried as draft 7
// and draft 4, which older generators still write. Errors wrap one of ErrNoSchema, ErrNotSchema,
// ErrRemoteRef, ErrDanglingRef, ErrTooLarge.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	drafts := []*engine.Draft{engine.Draft2020}
	if obj, ok := doc.(map[string]any); ok && obj["$schema"] == nil {
		drafts = append(drafts, engine.Draft7, engine.Draft4)
	}
	var first error
	for _, d := range drafts {
		s, err := compileAs(doc, d)
		if err == nil {
			return s, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, ErrNotSchema) {
			break
		}
	}
	return nil, first
}

// readSchema decodes raw and holds it against the bounds.
func readSchema(raw json.RawMessage) (any, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return nil, ErrNoSchema
	}
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("schema: %w: %d bytes, at most %d are read", ErrTooLarge, len(raw), maxSchemaBytes)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSchema, err)
	}
	switch doc.(type) {
	case bool, map[string]any:
	default:
		return nil, fmt.Errorf("%w: must be an object or a boolean", ErrNotSchema)
	}
	e := extent{number: maxSchemaNumber}
	if err := e.measure(doc, 0); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if e.objects > maxSchemaObjects || e.depth > maxSchemaDepth {
		return nil, fmt.Errorf("schema: %w: %d objects in %d levels, at most %d in %d are read",
			ErrTooLarge, e.objects, e.depth, maxSchemaObjects, maxSchemaDepth)
	}
	clampCounts(doc)
	return doc, nil
}

// countKeywords take a length or a count. The engine keeps them as int and wraps
// larger numbers around, which would turn "practically unlimited" into a tight bound.
var countKeywords = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}

const maxCount = 1 << 40

func clampCounts(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range countKeywords {
			if n, ok := v[k].(json.Number); ok && rational(n).Cmp(ratInt(maxCount)) > 0 {
				v[k] = json.Number(fmt.Sprint(maxCount))
			}
		}
		for _, m := range v {
			clampCounts(m)
		}
	case []any:
		for _, m := range v {
			clampCounts(m)
		}
	}
}

// refuser is the loader of every outside document: it loads none.
type refuser struct{}

func (refuser) Load(string) (any, error) { return nil, ErrRemoteRef }

func compileAs(doc any, draft *engine.Draft) (s *Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			// Same reason as in gauge.run: the engine meets hostile input here.
			s, err = nil, fmt.Errorf("%w: the engine gave up: %v", ErrNotSchema, r)
		}
	}()
	s = &Schema{gauge: &gauge{}}
	c := engine.NewCompiler()
	c.DefaultDraft(draft)
	c.AssertFormat()
	c.UseLoader(refuser{})
	c.UseRegexpEngine(compilePattern(s.gauge))
	if err := c.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSchema, err)
	}
	if s.root, err = c.Compile(base); err != nil {
		return nil, compileError(err)
	}
	s.instrument()
	return s, nil
}

// compileError names the reference or the place instead of the engine's report.
func compileError(err error) error {
	if e, ok := errors.AsType[*engine.LoadURLError](err); ok {
		return fmt.Errorf("schema: %w: %s", ErrRemoteRef, oneLine(strings.TrimPrefix(e.URL, "ordeal:///")))
	}
	if e, ok := errors.AsType[*engine.JSONPointerNotFoundError](err); ok {
		return fmt.Errorf("schema: %w: %s", ErrDanglingRef, strings.TrimPrefix(e.URL, base))
	}
	if e, ok := errors.AsType[*engine.AnchorNotFoundError](err); ok {
		return fmt.Errorf("schema: %w: %s", ErrDanglingRef, strings.TrimPrefix(e.Reference, base))
	}
	if e, ok := errors.AsType[*engine.SchemaValidationError](err); ok {
		if verr, ok := e.Err.(*engine.ValidationError); ok {
			return fmt.Errorf("%w: %s", ErrNotSchema, newInvalid(verr, ""))
		}
	}
	return fmt.Errorf("%w: %s", ErrNotSchema, oneLine(err.Error()))
}

// Limits lists the patterns of the schema that are not understood, in a fixed order.
func (s *Schema) Limits() []Limit { return s.limits }
