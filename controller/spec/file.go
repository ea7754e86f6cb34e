package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// Setting is one line of a scan.yaml: the key in the spelling of its flag, and
// its values as the flag would take them (several for a repeatable flag).
type Setting struct {
	Key    string
	Values []string
	Line   int
}

// File reads a scan.yaml: one mapping whose keys are the long flag names
// (dashes or underscores) plus "target". A list sets a repeatable flag once per
// item; a mapping under header or env gives one "Name: value" or NAME=value an
// entry; any other mapping is passed as JSON (tool-args). known lists the valid
// keys; an unknown or repeated key is an error with its line. All problems are
// reported at once.
func File(name string, data []byte, known []string) ([]Setting, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a mapping of settings such as \"requests: 40\"", name, root.Line)
	}
	var settings []Setting
	var problems []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		s, err := setting(root.Content[i], root.Content[i+1], known)
		if err == nil && seen[s.Key] {
			err = fmt.Errorf("key %q is given twice", s.Key)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", name, root.Content[i].Line, err))
			continue
		}
		seen[s.Key] = true
		settings = append(settings, s)
	}
	return settings, errors.Join(problems...)
}

func setting(key, value *yaml.Node, known []string) (Setting, error) {
	s := Setting{Key: strings.ReplaceAll(key.Value, "_", "-"), Line: key.Line}
	if err := oneOf("key", s.Key, known); err != nil {
		return s, err
	}
	var err error
	switch {
	case value.Kind == yaml.SequenceNode:
		s.Values, err = items(value)
	case value.Kind == yaml.MappingNode && s.Key == "header":
		s.Values, err = pairs(value, ": ")
	case value.Kind == yaml.MappingNode && s.Key == "env":
		s.Values, err = pairs(value, "=")
	default:
		s.Values = make([]string, 1)
		s.Values[0], err = scalar(value)
	}
	if err != nil {
		return s, fmt.Errorf("key %q: %w", s.Key, err)
	}
	return s, nil
}

func items(list *yaml.Node) ([]string, error) {
	var out []string
	for _, n := range list.Content {
		v, err := scalar(n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func pairs(mapping *yaml.Node, sep string) ([]string, error) {
	var out []string
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		v, err := scalar(mapping.Content[i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, mapping.Content[i].Value+sep+v)
	}
	return out, nil
}

// scalar is a value as its flag would take it: text as it stands, a mapping as JSON.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", errors.New("has no value")
		}
		return n.Value, nil
	case yaml.AliasNode:
		return scalar(n.Alias)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return string(raw), nil
}
