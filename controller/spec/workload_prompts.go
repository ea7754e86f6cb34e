package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"ordeal/agent/wire"
)

// promptFeeder is the name of the feeder that the short form makes.
const promptFeeder = "prompts"

// prompts reads the short form for language models: a scenario of one step.
func (r *workloadReader) prompts(n *yaml.Node, w *wire.Workload) {
	r.begin(n)
	r.stepLine(n)
	keys := r.mapping(n, "prompts", "file", "values", "order", "lengths", "max_tokens")
	maxTokens := r.maxTokens(keys["max_tokens"], "prompts.max_tokens")
	column := ""
	if keys["file"] != nil || keys["values"] != nil {
		f := wire.Feeder{Name: promptFeeder}
		r.feeder(&f, n, keys, "prompts")
		column = r.promptColumn(&f, n.Line)
		if maxTokens == nil && slices.Contains(f.Columns, "max_tokens") {
			maxTokens = jsonText("${" + promptFeeder + ".max_tokens}")
		}
		w.Feeders = append(w.Feeders, f)
		r.feederLines[promptFeeder] = n.Line
	} else if keys != nil && keys["lengths"] == nil {
		r.fail(n.Line, "prompts", "give a file, values, or lengths for synthetic text")
	}
	expr := column
	if lengths := keys["lengths"]; lengths != nil {
		expr = r.lengths(lengths, column)
	}
	w.Scenarios = append(w.Scenarios, wire.Scenario{Name: "prompt", Weight: 1, Steps: []wire.Step{
		{Name: "prompt", Args: promptArgs(jsonText("${"+expr+"}"), maxTokens)}}})
}

// promptColumn is the column of the prompts: the only one, or the one called prompt.
func (r *workloadReader) promptColumn(f *wire.Feeder, line int) string {
	if len(f.Columns) != 1 && !slices.Contains(f.Columns, "prompt") && len(f.Rows) > 0 {
		r.fail(line, "prompts", "have the columns %s: want one, or one called prompt", strings.Join(f.Columns, ", "))
	}
	if len(f.Columns) == 1 {
		return promptFeeder
	}
	return promptFeeder + ".prompt"
}

// lengths is the generator of a distribution of lengths.
func (r *workloadReader) lengths(n *yaml.Node, column string) string {
	keys := r.mapping(n, "prompts.lengths", "p50", "p95", "mean", "sd", "min", "max")
	generator, names := "text", []string{"p50", "p95"}
	if keys["p50"] == nil {
		generator, names = "tokens", []string{"mean", "sd", "min", "max"}
	}
	var args []string
	for _, name := range names {
		if keys[name] != nil {
			args = append(args, r.text(keys[name], "prompts.lengths."+name))
		}
	}
	if len(args) != len(names) || len(keys) != len(names) {
		r.fail(n.Line, "prompts.lengths", "give p50 and p95, or mean, sd, min and max, all in tokens")
	}
	if column != "" {
		args = append(args, column)
	}
	return fmt.Sprintf("%s(%s)", generator, strings.Join(args, ","))
}

// maxTokens is a number, or a template of one; nil without.
func (r *workloadReader) maxTokens(n *yaml.Node, path string) json.RawMessage {
	switch {
	case n == nil:
		return nil
	case strings.HasPrefix(n.Value, "${"):
		return jsonText(n.Value)
	case r.whole(n, path) < 1:
		r.fail(n.Line, path, "is %.20q: want a whole number from 1", n.Value)
	}
	return json.RawMessage(n.Value)
}
