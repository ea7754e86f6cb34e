package spec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// WorkloadProblem is one mistake in a workload file.
type WorkloadProblem struct {
	File string
	Line int    // 1-based; 0 when the file as a whole is meant
	Path string // e.g. scenarios[0].steps[1].think
	Text string
}

func (p *WorkloadProblem) Error() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Path != "" {
		at += ": " + p.Path
	}
	return at + ": " + p.Text
}

// workloadReader collects problems on its way through the nodes, which have a
// line for every value, and remembers the lines of what Compile may complain about.
type workloadReader struct {
	file     string
	open     func(name string) ([]byte, error)
	problems []*WorkloadProblem

	scenarioLines []int
	stepLines     [][]int // by scenario
	feederLines   map[string]int
	badScenarios  map[int]bool // complained about already
	badFeeder     bool
	inFeeders     bool
	size          int // of the JSON so far
}

func (r *workloadReader) fail(line int, path, format string, args ...any) {
	r.problems = append(r.problems, &WorkloadProblem{File: r.file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
	if r.inFeeders {
		r.badFeeder = true
	} else if n := len(r.scenarioLines); n > 0 {
		r.badScenarios[n-1] = true
	}
}

// begin says that what follows is about the next scenario.
func (r *workloadReader) begin(n *yaml.Node) {
	r.scenarioLines = append(r.scenarioLines, n.Line)
	r.stepLines = append(r.stepLines, nil)
}

func (r *workloadReader) stepLine(n *yaml.Node) {
	last := len(r.stepLines) - 1
	r.stepLines[last] = append(r.stepLines[last], n.Line)
}

func (r *workloadReader) err() error {
	slices.SortStableFunc(r.problems, func(a, b *WorkloadProblem) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(r.problems))
	for i, p := range r.problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// maxWorkloadFile bounds the YAML; what comes out of it is bounded more tightly.
const maxWorkloadFile = 2 << 20

// root is the mapping of the one document, nil after a failure.
func (r *workloadReader) root(data []byte) *yaml.Node {
	if len(data) > maxWorkloadFile {
		r.fail(0, "", "is %d KiB: want at most %d KiB, put values into files of feeders", len(data)>>10, maxWorkloadFile>>10)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.fail(0, "", "is empty: want scenarios, tools or prompts")
		return nil
	case err != nil:
		r.fail(0, "", "is not valid YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		r.fail(second.Line, "", "a second document begins: a workload is one")
	case !errors.Is(err, io.EOF):
		r.fail(0, "", "is not valid YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	case doc.Content[0].Kind != yaml.MappingNode:
		r.fail(doc.Content[0].Line, "", "want a mapping with scenarios, tools or prompts")
	default:
		return doc.Content[0]
	}
	return nil
}

// mapping is the values of a mapping by key, nil when it is none; without valid
// keys any will do.
func (r *workloadReader) mapping(n *yaml.Node, path string, valid ...string) map[string]*yaml.Node {
	if n = deref(n); n.Kind != yaml.MappingNode {
		r.fail(n.Line, path, "is %s: want a mapping of %s", kindOf(n), cmp.Or(strings.Join(valid, ", "), "names"))
		return nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			r.fail(key.Line, path, "a key must be a word")
		case valid != nil && !slices.Contains(valid, key.Value):
			r.fail(key.Line, path, "%v", oneOf("key", key.Value, valid))
		case out[key.Value] != nil:
			r.fail(key.Line, path, "key %.60q is given twice, first in line %d", key.Value, out[key.Value].Line)
		default:
			at := *deref(n.Content[i+1])
			at.Line = n.Content[i+1].Line // the place of an alias, not of its anchor
			out[key.Value] = &at
		}
	}
	return out
}

// items is the entries of a list with at least one; nil stands for no list.
func (r *workloadReader) items(n *yaml.Node, path string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n = deref(n); n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.fail(n.Line, path, "is %s: want a list with at least one entry", kindOf(n))
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		at := *deref(item)
		at.Line = item.Line
		out[i] = &at
	}
	return out
}

// text is a scalar as it is written.
func (r *workloadReader) text(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n.Line, path, "is %s: want a text", kindOf(n))
		return ""
	}
	return n.Value
}

// name is that of a scenario or step, empty without one.
func (r *workloadReader) name(n *yaml.Node, path string) string {
	if n == nil {
		return ""
	}
	name := r.text(n, path+".name")
	if name == "" || len(name) > maxName {
		r.fail(n.Line, path+".name", "has %d characters: want 1 to %d", len(name), maxName)
	}
	return name
}

// maxName is how long the name of a scenario or step may be, in bytes.
const maxName = 100

func (r *workloadReader) whole(n *yaml.Node, path string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		r.fail(n.Line, path, "is %s: want a whole number", kindOf(n))
		return 1
	}
	return v
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kindOf says what a node is.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	}
	return fmt.Sprintf("%.40q", n.Value)
}
