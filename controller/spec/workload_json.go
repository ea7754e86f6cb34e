package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gopkg.in/yaml.v3"

	"ordeal/agent/workload"
)

// maxYAMLDepth bounds nesting, and with it aliases that contain themselves.
const maxYAMLDepth = 64

// json is a value as JSON, its keys in the order they are written. Numbers keep
// their digits: an id of 19 must not pass through a floating-point number.
func (r *workloadReader) json(n *yaml.Node, path string) json.RawMessage {
	buf, err := appendJSON(nil, n, 0)
	if r.size += len(buf); err == nil && r.size > workload.MaxBytes { // by aliases, of a small file
		err = fmt.Errorf("takes the workload over %d KiB as JSON", workload.MaxBytes>>10)
		r.size -= len(buf)
	}
	if err != nil {
		r.fail(n.Line, path, "%v", err)
		return nil
	}
	return buf
}

// object is a mapping as JSON.
func (r *workloadReader) object(n *yaml.Node, path string) json.RawMessage {
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, path, "is %s: want a mapping of arguments", kindOf(n))
		return nil
	}
	return r.json(n, path)
}

func appendJSON(buf []byte, n *yaml.Node, depth int) ([]byte, error) {
	switch n = deref(n); {
	case depth > maxYAMLDepth:
		return nil, fmt.Errorf("is nested more than %d deep", maxYAMLDepth)
	case len(buf) > workload.MaxBytes:
		return nil, fmt.Errorf("is over %d KiB as JSON", workload.MaxBytes>>10)
	case n.Kind == yaml.MappingNode:
		return appendObject(buf, n, depth)
	case n.Kind == yaml.SequenceNode:
		return appendList(buf, n, depth)
	}
	return appendScalar(buf, n)
}

func appendObject(buf []byte, n *yaml.Node, depth int) ([]byte, error) {
	buf = append(buf, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := deref(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			return nil, fmt.Errorf("line %d: a key must be a word", key.Line)
		case seen[key.Value]:
			return nil, fmt.Errorf("line %d: key %.60q is given twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(buf, jsonText(key.Value)...), ':')
		var err error
		if buf, err = appendJSON(buf, n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(buf, '}'), nil
}

func appendList(buf []byte, n *yaml.Node, depth int) ([]byte, error) {
	buf = append(buf, '[')
	for i, item := range n.Content {
		if i > 0 {
			buf = append(buf, ',')
		}
		var err error
		if buf, err = appendJSON(buf, item, depth+1); err != nil {
			return nil, err
		}
	}
	return append(buf, ']'), nil
}

func appendScalar(buf []byte, n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return append(buf, jsonText(n.Value)...), nil
	case "!!null":
		return append(buf, "null"...), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(buf, n.Value...), nil
		}
	case "!!bool":
	default:
		return nil, fmt.Errorf("line %d: a value of type %.40s has no JSON", n.Line, n.Tag)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, fmt.Errorf("line %d: %.40q: %v", n.Line, n.Value, err)
	}
	raw, err := json.Marshal(v)
	if err != nil { // .inf and .nan
		return nil, fmt.Errorf("line %d: %.40q has no JSON", n.Line, n.Value)
	}
	return append(buf, raw...), nil
}

// jsonText is a text as a JSON string; < > & stay as they are.
func jsonText(s string) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(errors.New("spec: a string that has no JSON"))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
