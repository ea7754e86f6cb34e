package price

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFile bounds a price file; a real one has a few kilobytes.
const maxFile = 1 << 20

// Load reads a price file.
func Load(path string) (*Table, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("price file: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("price file %s: %d bytes, more than the %d allowed", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("price file: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("price file %s: %w", path, err)
	}
	t.Source = path
	return t, nil
}

// Parse reads the content of a price file. It reports every mistake it finds.
func Parse(data []byte) (*Table, error) {
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("not readable as YAML or JSON: %w", err)
	}
	if decoder.Decode(new(yaml.Node)) == nil {
		return nil, errors.New("a second document: want one")
	}
	p := parser{table: &Table{rates: map[string]Rate{}}}
	p.file(root.Content[0])
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return p.table, nil
}

type parser struct {
	table    *Table
	problems []error
}

func (p *parser) problem(n *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...)))
}

func (p *parser) file(n *yaml.Node) {
	var models *yaml.Node
	p.fields(n, "the file", "as_of, models", func(key string, value *yaml.Node) bool {
		switch key {
		case "as_of":
			p.table.AsOf = value.Value
			if value.Kind != yaml.ScalarNode {
				p.problem(value, "as_of: want a date")
			}
		case "models":
			models = value
		default:
			return false
		}
		return true
	})
	switch {
	case models == nil:
		p.problem(n, "models: missing")
	case len(models.Content) == 0:
		p.problem(models, "models: empty, want model ids with input and output")
	default:
		p.fields(models, "models", "", func(name string, value *yaml.Node) bool {
			p.model(name, value)
			return true
		})
	}
}

func (p *parser) model(name string, n *yaml.Node) {
	id := strings.ToLower(strings.TrimSpace(name))
	if id == "" {
		p.problem(n, "models: empty model id")
		return
	}
	if _, twice := p.table.rates[id]; twice {
		p.problem(n, "models.%s: given twice", name)
		return
	}
	var in, out, cached *float64
	where := "models." + name
	before := len(p.problems)
	p.fields(n, where, "input, output, cached_input", func(key string, value *yaml.Node) bool {
		target := map[string]**float64{"input": &in, "output": &out, "cached_input": &cached}[key]
		if target == nil {
			return false
		}
		*target = p.price(where+"."+key, value)
		return true
	})
	if len(p.problems) > before {
		return
	}
	if in == nil || out == nil {
		p.problem(n, "%s: input and output are both required", where)
		return
	}
	if cached == nil {
		cached = in
	}
	p.table.rates[id] = Rate{Input: *in, Output: *out, CachedInput: *cached}
}

// price reads one number of 0 or more.
func (p *parser) price(where string, n *yaml.Node) *float64 {
	var usd float64
	if n.Kind != yaml.ScalarNode || (n.Tag != "!!int" && n.Tag != "!!float") || n.Decode(&usd) != nil {
		p.problem(n, "%s: want a number, US dollars per 10^6 tokens", where)
	} else if math.IsNaN(usd) || math.IsInf(usd, 0) || usd < 0 {
		p.problem(n, "%s: %s is not a price, want 0 or more", where, n.Value)
	}
	return &usd
}

// fields walks a mapping; visit returns false for a key it does not know.
func (p *parser) fields(n *yaml.Node, where, known string, visit func(key string, value *yaml.Node) bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		p.problem(n, "%s: want a mapping", where)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case seen[key.Value]:
			p.problem(key, "%s: key %q given twice", where, key.Value)
		case !visit(key.Value, n.Content[i+1]):
			p.problem(key, "%s: unknown key %q: want one of %s", where, key.Value, known)
		}
		seen[key.Value] = true
	}
}
