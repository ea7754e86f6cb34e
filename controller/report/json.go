package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ordeal/controller/result"
)

// MaxDocument is the largest document ParseJSON reads, in bytes.
const MaxDocument = 256 << 20

// RefusedError is what ParseJSON returns for the document of a refused run:
// well-formed, but without a measurement. [Refused] renders it.
type RefusedError struct{ Refusal result.Refusal }

func (e *RefusedError) Error() string {
	return "result: the run was refused: " + clean(e.Refusal.Reason)
}

// JSON writes the document, indented by two, in the order of the struct with
// sorted maps, and a final line feed: the same document gives the same bytes.
func JSON(w io.Writer, doc *result.Document) error { return writeJSON(w, doc) }

// RefusalJSON writes the document of a refused run in the form of JSON.
func RefusalJSON(w io.Writer, ref *result.Refusal) error { return writeJSON(w, ref) }

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("result: encode: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// ParseJSON reads a document written by JSON. The schema version must match;
// fields it does not know are ignored, since a later release may add some.
// Errors name the place. A refusal comes back as a *RefusedError.
func ParseJSON(r io.Reader) (*result.Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("result: %w", err)
	case len(data) > MaxDocument:
		return nil, fmt.Errorf("result: more than %d MiB, not a result document", MaxDocument>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("result: empty: give the file that --json-out wrote")
	}
	if err := checkHead(data); err != nil {
		return nil, err
	}
	doc := &result.Document{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, located(data, err)
	}
	denull(&doc.Target)
	if err := checkDocument(doc); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return doc, nil
}

// denull makes a JSON null the nothing that it was in memory.
func denull(t *result.Target) {
	for _, raw := range []*json.RawMessage{&t.ToolArgs, &t.Capabilities} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
}

// checkHead decides whether the bytes are a result document of our version.
func checkHead(data []byte) error {
	var head struct {
		SchemaVersion *int `json:"schema_version"`
		Refused       bool `json:"refused"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return located(data, err)
	}
	switch {
	case head.SchemaVersion == nil:
		return errors.New("result: no schema_version: not a result document of ordeal")
	case *head.SchemaVersion > result.SchemaVersion:
		return fmt.Errorf("result: schema_version is %d, this ordeal reads %d: use a newer ordeal", *head.SchemaVersion, result.SchemaVersion)
	case *head.SchemaVersion < result.SchemaVersion:
		return fmt.Errorf("result: schema_version is %d, want %d", *head.SchemaVersion, result.SchemaVersion)
	case !head.Refused:
		return nil
	}
	ref := result.Refusal{}
	if err := json.Unmarshal(data, &ref); err != nil {
		return located(data, err)
	}
	denull(&ref.Target)
	return &RefusedError{Refusal: ref}
}

// checkDocument checks the closed sets a renderer relies on, all at once.
func checkDocument(doc *result.Document) error {
	var errs []error
	for i, c := range doc.Checks {
		if !slices.Contains(statusOrder, c.Status) {
			errs = append(errs, fmt.Errorf("checks[%d].status is %q: want pass, unproven, fail, undecided or n/a", i, c.Status))
		}
		if c.Direction != "max" && c.Direction != "min" {
			errs = append(errs, fmt.Errorf("checks[%d].direction is %q: want max or min", i, c.Direction))
		}
	}
	for i, p := range doc.Probes {
		if !slices.ContainsFunc(phaseTitles, func(t phaseTitle) bool { return t.name == p.Phase }) {
			errs = append(errs, fmt.Errorf("probes[%d].phase is %q: want baseline, chaos, behavior or load", i, p.Phase))
		}
		for j, f := range p.Findings {
			if _, ok := severityLeads[f.Severity]; !ok {
				errs = append(errs, fmt.Errorf("probes[%d].findings[%d].severity is %q: want critical, warning or info", i, j, f.Severity))
			}
		}
		if len(errs) > 10 {
			break
		}
	}
	return errors.Join(errs...)
}

// located adds line and column to a JSON error.
func located(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line, col := position(data, syntax.Offset)
		return fmt.Errorf("result: line %d, column %d: not JSON: %w", line, col, err)
	case errors.As(err, &kind):
		line, col := position(data, kind.Offset)
		field := kind.Field
		if field == "" {
			field = "the document"
		}
		return fmt.Errorf("result: line %d, column %d: %s is %s, want %s", line, col, field, kind.Value, kind.Type)
	}
	return fmt.Errorf("result: %w", err)
}

// position turns the number of bytes read into line and column of the last of
// them, both from 1.
func position(data []byte, offset int64) (line, col int) {
	before := data[:max(0, min(int(offset), len(data)))]
	last := bytes.LastIndexByte(before, '\n')
	return bytes.Count(before, []byte("\n")) + 1, max(1, len(before)-last-1)
}
