package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxKept bounds the buffers that a run keeps for the next answer: one of 20 MB
// must not stay with every caller.
const maxKept = 64 << 10

// maxVariable bounds what a variable holds, in bytes of JSON.
const maxVariable = 1 << 20

// extraction is where a variable comes from: a pointer, or a pattern.
type extraction struct {
	slot    int
	from    string // as written
	pointer pointer
	pattern *regexp.Regexp
}

// Miss is an answer in which what a step extracts is not to be found. It is a
// failure of the target, by its content.
type Miss struct {
	Scenario, Step string
	Text           string
}

func (m *Miss) Error() string { return fmt.Sprintf("step %.60s: %s", m.Step, m.Text) }

const textPrefix = "text:"

// extractions compiles what a step extracts, in the order of the names.
func (c *compiler) extractions(all map[string]string) []extraction {
	var out []extraction
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.nameFree(name)
		if c.isFeeder(name) {
			c.fail("extract: %q is the name of a feeder: choose another", name)
		}
		e := extraction{slot: c.slots[name], from: all[name]}
		var err error
		if pattern, found := strings.CutPrefix(e.from, textPrefix); found {
			e.pattern, err = regexp.Compile(pattern)
		} else {
			e.pointer, err = parsePointer(e.from)
		}
		if err != nil {
			c.fail("extract: %s: %v", name, err)
		}
		out = append(out, e)
		if !slices.Contains(c.known, name) {
			c.known = append(c.known, name)
		}
	}
	return out
}

// Take extracts from the answer of the call at hand what later steps need:
// structured content where there is some, else text. The error is a *Miss.
func (r *Run) Take(structured json.RawMessage, text string) error {
	err := r.take(structured, text)
	if cap(r.text) > maxKept {
		r.text = nil
	}
	return err
}

func (r *Run) take(structured json.RawMessage, text string) error {
	st := &r.scenario.steps[r.next-1]
	var doc []byte
	for i := range st.extract {
		e := &st.extract[i]
		if e.pattern == nil && doc == nil {
			if doc = r.document(structured, text); doc == nil {
				return r.miss(e, "the answer is not JSON")
			}
		}
		value, err := e.find(doc, text)
		if err != nil {
			return r.miss(e, err.Error())
		}
		r.keep(e.slot, value)
	}
	return nil
}

// keep copies a value: the answer's memory is the caller's.
func (r *Run) keep(slot int, value []byte) {
	old := r.vars[slot]
	if cap(old) > maxKept && len(value) <= maxKept {
		old = nil
	}
	r.vars[slot] = append(old[:0], value...)
}

func (r *Run) miss(e *extraction, why string) error {
	return &Miss{Scenario: r.Scenario, Step: r.Step, Text: fmt.Sprintf("%.80s %s", e.shown(), why)}
}

func (e *extraction) shown() string {
	if e.from == "" {
		return `""`
	}
	return e.from
}

// Why something was not found.
var (
	errAbsent = errors.New("not in the answer")
	errLarge  = fmt.Errorf("is over %d KiB of the answer: a variable holds no more", maxVariable>>10)
)

// find is the JSON value to keep.
func (e *extraction) find(doc []byte, text string) ([]byte, error) {
	if e.pattern != nil {
		m := e.pattern.FindStringSubmatchIndex(text)
		if len(m) > 2 {
			m = m[2:] // the first group
		}
		switch {
		case len(m) == 0 || m[0] < 0:
			return nil, errAbsent
		case m[1]-m[0] > maxVariable:
			return nil, errLarge
		}
		return quoted(text[m[0]:m[1]]), nil
	}
	value := e.pointer.find(doc)
	switch {
	case value == nil:
		return nil, errAbsent
	case len(value) > maxVariable:
		return nil, errLarge
	case !utf8.Valid(value):
		return bytes.ToValidUTF8(value, []byte("\uFFFD")), nil
	}
	return value, nil
}

// document is the JSON of an answer, nil without any. Text may go on after its
// JSON on a new line: several blocks of text come joined like that.
func (r *Run) document(structured json.RawMessage, text string) []byte {
	if s := bytes.TrimSpace(structured); len(s) > 0 && string(s) != "null" {
		if json.Valid(s) {
			return s
		}
		return nil
	}
	r.text = append(r.text[:0], text...)
	if json.Valid(r.text) {
		return bytes.TrimSpace(r.text)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	var first json.RawMessage
	if dec.Decode(&first) != nil || !strings.HasPrefix(text[dec.InputOffset():], "\n") {
		return nil
	}
	return first
}
