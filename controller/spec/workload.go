package spec

import (
	"encoding/json"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"ordeal/agent/wire"
	"ordeal/agent/workload"
)

// ParseWorkload reads a mix of calls from YAML. path is for messages; open reads
// the file of a feeder by the name it has in the YAML, which is meant relative to
// the folder of path.
//
//	seed: 42                  # else Seed stays empty, for the caller to fill
//	sessions: user            # user (default): one for each virtual user; call: one an operation
//	feeders:
//	  users: {file: users.csv, order: random}  # .csv with a header, .jsonl, .txt; else in order
//	  words: {values: [a, b, c]}               # of scalars, or of mappings with the same keys
//	scenarios:
//	  - name: search
//	    weight: 8             # share of the operations; default 1
//	    steps:
//	      - tool: search      # or prompt: (and max_tokens:) for a model, body: over plain HTTP
//	        args: {query: "${words}", limit: "${int(1,50)}"}
//	        extract: {first: /results/0/id}
//	        think: 200ms      # before the next step
//	      - name: open        # default: the tool
//	        tool: fetch
//	        args: {id: "${first}"}
//
// In place of scenarios, tools is a list of calls that are scenarios of one step
// (tool, prompt or body, with args, name and weight), and prompts a mapping with
// one for a language model:
//
//	prompts: {file: prompts.txt, order: random, lengths: {p50: 200, p95: 1500}, max_tokens: 100}
//
// where the file, or values, are the prompts and lengths their length in tokens:
// p50 and p95, or mean, sd, min and max. Without lengths a prompt is a row of the
// file, without a file it is synthetic text.
//
// Package agent/workload describes ${...} and extraction, and has the bounds. An
// unknown key is an error; the error joins a *WorkloadProblem for everything that
// is wrong, in the order of lines.
func ParseWorkload(path string, data []byte, open func(name string) ([]byte, error)) (*wire.Workload, error) {
	r := &workloadReader{file: path, open: open, feederLines: map[string]int{}, badScenarios: map[int]bool{}}
	w := &wire.Workload{}
	if root := r.root(data); root != nil {
		r.read(root, w)
		r.compile(w)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return w, nil
}

func (r *workloadReader) read(root *yaml.Node, w *wire.Workload) {
	top := r.mapping(root, "", "seed", "sessions", "feeders", "scenarios", "tools", "prompts")
	if n := top["seed"]; n != nil {
		w.Seed = r.text(n, "seed")
	}
	if n := top["sessions"]; n != nil {
		switch s := r.text(n, "sessions"); s {
		case "user", "call":
			w.PerCall = s == "call"
		default:
			r.fail(n.Line, "sessions", "is %.20q: want user, one session for each virtual user, or call, one for each operation", s)
		}
	}
	r.feeders(top["feeders"], w)
	forms := 0
	for _, form := range []struct {
		key  string
		read func(*yaml.Node, *wire.Workload)
	}{{"scenarios", r.scenarios}, {"tools", r.tools}, {"prompts", r.prompts}} {
		if n := top[form.key]; n != nil {
			forms++
			form.read(n, w)
		}
	}
	if forms != 1 {
		r.fail(root.Line, "", "give one of scenarios, tools and prompts: they all say what is called")
	}
}

func (r *workloadReader) scenarios(list *yaml.Node, w *wire.Workload) {
	for i, n := range r.items(list, "scenarios") {
		path := fmt.Sprintf("scenarios[%d]", i)
		r.begin(n)
		keys := r.mapping(n, path, "name", "weight", "steps")
		sc := wire.Scenario{Name: r.name(keys["name"], path), Weight: r.weight(keys["weight"], path)}
		if keys != nil && sc.Name == "" {
			r.fail(n.Line, path, "has no name")
		}
		if keys != nil && keys["steps"] == nil {
			r.fail(n.Line, path, "has no steps")
		}
		steps := r.items(keys["steps"], path+".steps")
		for j, s := range steps {
			sc.Steps = append(sc.Steps, r.step(s, fmt.Sprintf("%s.steps[%d]", path, j), j == len(steps)-1))
		}
		w.Scenarios = append(w.Scenarios, sc)
	}
}

// tools reads the short form.
func (r *workloadReader) tools(list *yaml.Node, w *wire.Workload) {
	for i, n := range r.items(list, "tools") {
		path := fmt.Sprintf("tools[%d]", i)
		r.begin(n)
		r.stepLine(n)
		keys := r.mapping(n, path, "name", "weight", "tool", "prompt", "max_tokens", "body", "args")
		st := r.call(n, keys, path)
		sc := wire.Scenario{Name: r.name(keys["name"], path), Weight: r.weight(keys["weight"], path), Steps: []wire.Step{st}}
		if sc.Name == "" {
			sc.Name = st.Name
		}
		w.Scenarios = append(w.Scenarios, sc)
	}
}

func (r *workloadReader) step(n *yaml.Node, path string, last bool) wire.Step {
	r.stepLine(n)
	keys := r.mapping(n, path, "name", "tool", "prompt", "max_tokens", "body", "args", "extract", "think")
	st := r.call(n, keys, path)
	if name := r.name(keys["name"], path); name != "" {
		st.Name = name
	}
	st.Extract = r.extract(keys["extract"], path+".extract")
	if think := keys["think"]; think != nil {
		st.Think = r.duration(think, path+".think")
		if last {
			r.fail(think.Line, path+".think", "has no step after it: callers think between operations by --think")
		}
	}
	return st
}

// call reads what a step calls: a tool with its arguments, a prompt, or a body.
func (r *workloadReader) call(n *yaml.Node, keys map[string]*yaml.Node, path string) wire.Step {
	var st wire.Step
	forms := 0
	if tool := keys["tool"]; tool != nil {
		forms++
		st.Tool = r.text(tool, path+".tool")
		st.Name = st.Tool
		if args := keys["args"]; args != nil {
			st.Args = r.object(args, path+".args")
		}
	} else if args := keys["args"]; args != nil {
		r.fail(args.Line, path+".args", "are those of a tool: a prompt and a body have none")
	}
	if prompt := keys["prompt"]; prompt != nil {
		forms++
		st.Name = "prompt"
		st.Args = promptArgs(jsonText(r.text(prompt, path+".prompt")), r.maxTokens(keys["max_tokens"], path+".max_tokens"))
	} else if most := keys["max_tokens"]; most != nil {
		r.fail(most.Line, path+".max_tokens", "goes with a prompt")
	}
	if body := keys["body"]; body != nil {
		forms++
		st.Name = "body"
		st.Args = r.json(body, path+".body")
	}
	if keys != nil && forms != 1 {
		r.fail(n.Line, path, "give one of tool, prompt and body: what is called")
	}
	return st
}

func promptArgs(prompt, maxTokens json.RawMessage) json.RawMessage {
	args := append([]byte(`{"prompt":`), prompt...)
	if maxTokens != nil {
		args = append(append(args, `,"max_tokens":`...), maxTokens...)
	}
	return append(args, '}')
}

// compile finds what is wrong with values and names. Scenarios that could not be
// read have been complained about, and a name can be unknown because its feeder
// could not be read.
func (r *workloadReader) compile(w *wire.Workload) {
	_, err := workload.Compile(w)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || r.badFeeder {
		return
	}
	wellRead := len(r.problems) == 0
	for _, e := range joined.Unwrap() {
		p, ok := e.(*workload.Problem)
		switch {
		case !ok:
			r.fail(0, "", "%v", e)
		case p.Step >= 0 && !r.badScenarios[p.Scenario]:
			r.fail(r.stepLines[p.Scenario][p.Step], "", "%v", p)
		case p.Scenario >= 0 && p.Step < 0 && !r.badScenarios[p.Scenario]:
			r.fail(r.scenarioLines[p.Scenario], "", "%v", p)
		case p.Feeder != "":
			r.fail(r.feederLines[p.Feeder], "", "%v", p)
		case wellRead && p.Scenario < 0:
			r.fail(0, "", "%s", p.Text)
		}
	}
}

func (r *workloadReader) weight(n *yaml.Node, path string) int64 {
	if n == nil {
		return 1
	}
	return r.whole(n, path+".weight")
}

func (r *workloadReader) extract(n *yaml.Node, path string) map[string]string {
	if n == nil {
		return nil
	}
	out := map[string]string{}
	for name, from := range r.mapping(n, path) {
		out[name] = r.text(from, path+"."+name)
	}
	return out
}

func (r *workloadReader) duration(n *yaml.Node, path string) time.Duration {
	d, err := time.ParseDuration(r.text(n, path))
	if err != nil {
		r.fail(n.Line, path, "is %.20q: want a time such as 200ms or 1.5s", n.Value)
	}
	return d
}
