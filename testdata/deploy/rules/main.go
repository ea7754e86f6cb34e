// Command rules reads rendered manifests on standard input and holds them to what
// a schema cannot say: every pod fits Pod Security "restricted" and the chart's own
// promises, no secret stands in the clear, and every selector selects something.
// It prints how many objects of each kind it read, which a caller can compare, and
// exits with 1 when a rule is broken.
//
//	helm template … | go run ./testdata/deploy/rules
//
// With -flags CONTAINER it prints instead the names of the flags which the
// containers of that name are given.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// object is a manifest, or a part of one.
type object = map[string]any

func main() {
	container := flag.String("flags", "", "print the flags of the containers of this name")
	flag.Parse()
	objects, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(2)
	}
	if *container != "" {
		fmt.Println(strings.Join(flags(*container, objects), "\n"))
		return
	}
	broken := check(objects)
	for _, b := range broken {
		fmt.Fprintln(os.Stderr, "rules:", b)
	}
	fmt.Println(census(objects))
	if len(broken) > 0 {
		os.Exit(1)
	}
}

func read(r io.Reader) ([]object, error) {
	var out []object
	for d := yaml.NewDecoder(r); ; {
		var o object
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(o) > 0:
			out = append(out, o)
		}
	}
}

// check returns what is broken, as "Kind/name: what".
func check(objects []object) []string {
	var out []string
	for _, o := range objects {
		for _, problem := range slices.Concat(podProblems(o), secretProblems(o), selectorProblems(o, objects)) {
			out = append(out, fmt.Sprintf("%s/%s: %s", text(o, "kind"), text(o, "metadata", "name"), problem))
		}
	}
	out = append(out, unguarded(objects)...)
	slices.Sort(out)
	return out
}

// census is "ConfigMap 2, Deployment 1, …".
func census(objects []object) string {
	n := map[string]int{}
	for _, o := range objects {
		n[text(o, "kind")]++
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprintf("%s %d", kind, n[kind]))
	}
	return strings.Join(out, ", ")
}

// flags are the names of the flags in the arguments of a container, without values.
func flags(container string, objects []object) []string {
	names := map[string]bool{}
	for _, o := range objects {
		for _, c := range list(at(podTemplate(o), "spec"), "containers") {
			for _, arg := range list(c, "args") {
				name, _, _ := strings.Cut(fmt.Sprint(arg), "=")
				if text(c, "name") == container && strings.HasPrefix(name, "--") {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// at walks into maps; nil where there is nothing.
func at(o any, path ...string) any {
	for _, key := range path {
		m, ok := o.(object)
		if !ok {
			return nil
		}
		o = m[key]
	}
	return o
}

func text(o any, path ...string) string { s, _ := at(o, path...).(string); return s }

func list(o any, path ...string) []any { l, _ := at(o, path...).([]any); return l }
