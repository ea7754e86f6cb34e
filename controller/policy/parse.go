package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"ordeal/controller/spec"
)

// Problem is one mistake in a policy file.
type Problem struct {
	File string
	Line int    // 1-based; 0 when the file as a whole is meant
	Path string // e.g. thresholds.error_rate_max; empty for the file
	Text string
}

func (p *Problem) Error() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Path != "" {
		at += ": " + p.Path
	}
	return at + ": " + p.Text
}

// Parse reads a policy file. name is only for messages. The error joins a
// *Problem, one line each, for everything that is wrong; warnings are about
// keys that are accepted and have no effect.
func Parse(name string, data []byte) (*Policy, []string, error) {
	r := reader{file: name}
	root := r.root(data)
	if root == nil {
		return nil, nil, errors.Join(r.problems...)
	}
	p := r.policy(root)
	if len(r.problems) > 0 {
		return nil, nil, errors.Join(r.problems...)
	}
	return p, r.warnings, nil
}

// reader collects problems on its way through the nodes. Nodes and not a
// struct with KnownFields: only they have a line for every value, tell a
// missing key from an empty one, and keep a boolean apart from a number.
type reader struct {
	file     string
	problems []error
	warnings []string
}

func (r *reader) fail(line int, path, format string, args ...any) {
	r.problems = append(r.problems, &Problem{File: r.file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// root returns the mapping of the one document in data, nil after a failure.
func (r *reader) root(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isNull(doc.Content[0]) {
		r.fail(0, "", "the policy is empty; it needs at least a thresholds section")
		return nil
	}
	if err != nil {
		r.fail(0, "", "not valid YAML: %s", oneLine(err))
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.fail(second.Line, "", "a second document begins; a policy is one document")
	case !errors.Is(err, io.EOF):
		r.fail(0, "", "not valid YAML: %s", oneLine(err))
	case doc.Content[0].Kind != yaml.MappingNode:
		r.fail(doc.Content[0].Line, "", "a policy is a mapping of keys such as thresholds and pass_score")
	default:
		return doc.Content[0]
	}
	return nil
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
}

var topKeys = []string{"name", "description", "thresholds", "weights", "pass_score", "fail_cap", "absolute_fail_cap", "strict", "decision"}

func (r *reader) policy(root *yaml.Node) *Policy {
	p := &Policy{Name: "unnamed", Weights: defaultWeights(), Decision: ByInterval,
		PassScore: defaultPassScore, FailCap: defaultFailCap, AbsoluteFailCap: defaultAbsoluteFailCap}
	top := r.mapping(root, "", topKeys)
	line := func(key string) int {
		if n, ok := top[key]; ok {
			return n.Line
		}
		return root.Line
	}
	r.text(top["name"], "name", &p.Name)
	r.text(top["description"], "description", &p.Description)
	r.percent(top["pass_score"], "pass_score", &p.PassScore)
	r.percent(top["fail_cap"], "fail_cap", &p.FailCap)
	r.percent(top["absolute_fail_cap"], "absolute_fail_cap", &p.AbsoluteFailCap)
	if p.AbsoluteFailCap > p.FailCap {
		r.fail(line("absolute_fail_cap"), "absolute_fail_cap", "%g is above fail_cap %g; breaking an absolute rule cannot leave a better score than missing another", p.AbsoluteFailCap, p.FailCap)
	}
	r.flag(top["strict"], "strict", &p.Strict)
	r.mode(top["decision"], &p.Decision)
	if p.Strict && p.Decision == ByPoint {
		r.fail(line("strict"), "strict", "true needs \"decision: interval\"; a point proves nothing")
	}
	p.Thresholds = r.thresholds(top["thresholds"], line("thresholds"))
	r.weights(top["weights"], &p.Weights)
	return p
}

// mapping returns the values of a mapping by key and reports unknown and
// repeated keys. prefix is the path of the mapping.
func (r *reader) mapping(n *yaml.Node, prefix string, valid []string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		path := prefix + key.Value
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fail(key.Line, strings.TrimSuffix(prefix, "."), "a key must be a word; valid keys: %s", strings.Join(valid, ", "))
		case !slices.Contains(valid, key.Value):
			hint := ""
			if near := spec.Nearest(key.Value, valid); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			r.fail(key.Line, printable(path), "unknown key%s; valid keys: %s", hint, strings.Join(valid, ", "))
		case out[key.Value] != nil:
			r.fail(key.Line, path, "given twice, first in line %d", out[key.Value].Line)
		default:
			// The place of an alias, not of its anchor.
			at := *value
			at.Line = n.Content[i+1].Line
			out[key.Value] = &at
		}
	}
	return out
}

// printable keeps a message on one line whatever the key holds.
func printable(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (r *reader) thresholds(n *yaml.Node, line int) map[string]float64 {
	out := map[string]float64{}
	if n == nil || isNull(n) || n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		r.fail(line, "thresholds", "sets none, so nothing could be judged; valid keys: %s", strings.Join(thresholdKeys(), ", "))
		return out
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "thresholds", "must be a mapping of keys to numbers")
		return out
	}
	values := r.mapping(n, "thresholds.", append(thresholdKeys(), retired))
	if old := values[retired]; old != nil {
		r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: thresholds.%s has no effect: it compared the ceiling of the concurrency ramp with itself; remove it", r.file, old.Line, retired))
		delete(values, retired)
		if len(values) == 0 {
			r.fail(old.Line, "thresholds", "sets only %s, which is not judged any more; valid keys: %s", retired, strings.Join(thresholdKeys(), ", "))
		}
	}
	for _, key := range thresholdKeys() {
		if v := values[key]; v != nil {
			out[key] = r.number(v, "thresholds."+key)
		}
	}
	return out
}

func thresholdKeys() []string {
	keys := make([]string, 0, len(thresholds)+1)
	for _, t := range thresholds {
		keys = append(keys, t.key)
	}
	return keys
}

// weights replaces all weights by those of a non-empty mapping: a dimension it
// leaves out has none.
func (r *reader) weights(n *yaml.Node, into *map[string]float64) {
	if n == nil || isNull(n) || n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "weights", "must be a mapping of dimensions to numbers; valid keys: %s", strings.Join(dimensions, ", "))
		return
	}
	before := len(r.problems)
	out, sum := map[string]float64{}, 0.0
	values := r.mapping(n, "weights.", dimensions)
	for _, d := range dimensions {
		if v := values[d]; v != nil {
			out[d] = r.number(v, "weights."+d)
			sum += out[d]
		}
	}
	if sum == 0 && len(r.problems) == before {
		r.fail(n.Line, "weights", "are all zero; give at least one dimension a weight")
	}
	*into = out
}

// number reads a finite number that is not negative.
func (r *reader) number(n *yaml.Node, path string) float64 {
	var v float64
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float":
		r.fail(n.Line, path, "must be a number, got %s", shown(n))
	case n.Decode(&v) != nil || math.IsNaN(v) || math.IsInf(v, 0):
		r.fail(n.Line, path, "must be a finite number, got %s; leave the key out for no limit", shown(n))
	case v < 0:
		r.fail(n.Line, path, "must not be negative, got %s", shown(n))
	default:
		return v + 0 // no negative zero
	}
	return 0
}

func (r *reader) percent(n *yaml.Node, path string, into *float64) {
	if n == nil {
		return
	}
	before := len(r.problems)
	v := r.number(n, path)
	switch {
	case len(r.problems) > before:
	case v > 100:
		r.fail(n.Line, path, "must be between 0 and 100, got %s", shown(n))
	default:
		*into = v
	}
}

func (r *reader) text(n *yaml.Node, path string, into *string) {
	switch {
	case n == nil:
	case n.Kind != yaml.ScalarNode || isNull(n):
		r.fail(n.Line, path, "must be text, got %s", shown(n))
	default:
		*into = strings.TrimSpace(n.Value)
	}
}

func (r *reader) flag(n *yaml.Node, path string, into *bool) {
	if n != nil && (n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(into) != nil) {
		r.fail(n.Line, path, "must be true or false, got %s", shown(n))
	}
}

func (r *reader) mode(n *yaml.Node, into *Mode) {
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode && (n.Value == string(ByInterval) || n.Value == string(ByPoint)):
		*into = Mode(n.Value)
	default:
		r.fail(n.Line, "decision", "must be %s or %s, got %s", ByInterval, ByPoint, shown(n))
	}
}

// shown is a value as it can be quoted in a message.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("the text %.40q", n.Value)
	}
	return fmt.Sprintf("%.40s", n.Value)
}
