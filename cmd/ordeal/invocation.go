package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ordeal/controller/spec"
)

// literal stands for a secret that was written out on the command line.
const literal = "LITERAL_SECRET"

// invocation is what runs the same command again: the target and every flag that
// was set, by hand or by a scan.yaml. Secrets stay only where they are
// references.
func invocation(cmd *cobra.Command, s *spec.Spec) []string {
	words := []string{cmd.Name(), s.TargetText}
	add := func(name string, values ...string) {
		for _, v := range values {
			words = append(words, "--"+name, v)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed:
		case slices.Contains(notRepeated, f.Name):
		case f.Name == "header":
			add(f.Name, masked(f, ": ")...)
		case f.Name == "env":
			add(f.Name, masked(f, "=")...)
		case f.Name == "select" || f.Name == "stop-when":
			add(f.Name, f.Value.(pflag.SliceValue).GetSlice()...)
		case f.Name == "token":
			add(f.Name, loginRef(f.Value.String()))
		case f.Name == "user":
			name, password, _ := strings.Cut(f.Value.String(), ":")
			add(f.Name, name+":"+loginRef(password))
		case f.Name == "api-key":
			add(f.Name, reference(f.Value.String()))
		case f.Name == "base-url":
			add(f.Name, spec.Display(f.Value.String()))
		case f.Name == "nats":
			add(f.Name, displayEach(f.Value.String()))
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			add(f.Name, f.Value.String())
		}
	})
	return words
}

// notRepeated are flags that say where settings came from and where results go.
var notRepeated = []string{"file", "json-out", "html", "report-out", "hdr-log", "hgrm", "csv", "json-lines", "metrics-addr"}

// masked keeps the names of repeatable NAME sep VALUE flags, and the values that
// are references.
func masked(f *pflag.Flag, sep string) []string {
	var out []string
	for _, v := range f.Value.(pflag.SliceValue).GetSlice() {
		name, value, _ := strings.Cut(v, strings.TrimSpace(sep))
		out = append(out, name+sep+reference(strings.TrimSpace(value)))
	}
	return out
}

// loginRef keeps a value that is one reference and nothing else: in a login a dollar
// sign elsewhere is part of the secret.
func loginRef(value string) string {
	if loginReference.MatchString(value) {
		return value
	}
	return literal
}

var loginReference = regexp.MustCompile(`^\$\{(env|file):[^}]+\}$`)

func reference(value string) string {
	if strings.Contains(value, "$") {
		return value
	}
	return literal
}

// displayEach hides the credentials of a comma list of URLs.
func displayEach(list string) string {
	urls := strings.Split(list, ",")
	for i, u := range urls {
		urls[i] = spec.Display(u)
	}
	return strings.Join(urls, ",")
}
