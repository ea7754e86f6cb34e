package main

import (
	"fmt"
	"regexp"
)

// secretName is what an environment variable with a secret is called.
var secretName = regexp.MustCompile(`(?i)password|secret|token|credential|api_?key`)

// clear are the shapes of a secret in the clear. A reference begins with $.
var clear = map[string]*regexp.Regexp{
	"a private key":        regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`),
	"an nkey seed":         regexp.MustCompile(`\bS[UANOCX][A-Z2-7]{56}\b`),
	"credentials in a URL": regexp.MustCompile(`[a-z]+://[^/\s:@$]+:[^/\s@$]+@`),
	"a bearer token":       regexp.MustCompile(`(?i)\b(bearer|basic) [^$\s"']`),
	"a password":           regexp.MustCompile(`(?im)\b(password|passwd|pwd|token|api[-_]?key)["']?\s*[:=]\s*["']?[^$\s"'{]`),
	"a login":              regexp.MustCompile(`^--(user=[^:]*:|token=)[^$]`),
}

// secretProblems are secrets outside Secret objects, and Secret objects: the chart
// refers to those of its user and makes none.
func secretProblems(o object) []string {
	var out []string
	if text(o, "kind") == "Secret" {
		out = append(out, "is a Secret, and the chart only refers to Secrets")
	}
	walk(o, "", func(path string, value any) {
		if env, ok := value.(object); ok && secretName.MatchString(text(env, "name")) && env["value"] != nil {
			out = append(out, fmt.Sprintf("%s: %s has a value, not a secretKeyRef", path, text(env, "name")))
		}
		s, ok := value.(string)
		if !ok {
			return
		}
		for what, shape := range clear {
			if shape.MatchString(s) {
				out = append(out, path+": looks like "+what+" in the clear")
			}
		}
	})
	return out
}

// walk visits every value below o with its path.
func walk(o any, path string, visit func(path string, value any)) {
	visit(path, o)
	switch o := o.(type) {
	case object:
		for key, value := range o {
			walk(value, path+"."+key, visit)
		}
	case []any:
		for i, value := range o {
			walk(value, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}
