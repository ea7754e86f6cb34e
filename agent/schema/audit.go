package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Rule names one static issue; reports keep the text.
type Rule string

const (
	missingDescription Rule = "missing_description"
	noSchema           Rule = "no_schema"
	unreadableSchema   Rule = "unreadable_schema"
	topNotObject       Rule = "top_type_not_object"
	requiredUndeclared Rule = "required_not_in_properties"
	propertyBoolean    Rule = "property_is_boolean_schema"
	propertyNotObject  Rule = "property_not_object"
	propertyUntyped    Rule = "property_without_type"
)

// An Issue is something about a tool's declaration that makes it harder to call correctly.
type Issue struct {
	Tool    string
	Rule    Rule
	Path    string // JSON pointer inside the input schema, "" for the tool or the schema as a whole
	Message string // one line
}

// describing keywords say what a property may be.
var describing = []string{"type", "enum", "anyOf", "oneOf", "allOf", "$ref", "const"}

// Audit reads a tool's declaration without calling it. Issues come in a fixed
// order. It says nothing about whether the schema compiles; see [Compile].
func Audit(name, description string, inputSchema json.RawMessage) []Issue {
	a := auditor{tool: name}
	if strings.TrimSpace(description) == "" {
		a.report(missingDescription, "", "the tool has no description")
	}
	doc, err := readSchema(inputSchema)
	obj, ok := doc.(map[string]any)
	switch {
	case errors.Is(err, ErrNoSchema):
		a.report(noSchema, "", "the tool has no input schema")
		return a.issues
	case err != nil:
		a.report(unreadableSchema, "", oneLine("the input schema cannot be read: "+err.Error()))
		return a.issues
	case !ok && doc == true:
		a.report(topNotObject, "", "the input schema is the boolean true: legal, but it declares nothing")
		return a.issues
	case !ok:
		a.report(topNotObject, "", "the input schema is the boolean false: no arguments can satisfy it")
		return a.issues
	}
	a.top(obj)
	a.properties(obj)
	return a.issues
}

type auditor struct {
	tool   string
	issues []Issue
}

func (a *auditor) report(rule Rule, path, message string) {
	a.issues = append(a.issues, Issue{Tool: a.tool, Rule: rule, Path: path, Message: message})
}

func (a *auditor) top(schema map[string]any) {
	if t, ok := schema["type"]; ok && t != "object" {
		a.report(topNotObject, "/type", oneLine("the top type is "+string(encode(t))+"; arguments are always an object"))
	}
	declared := map[string]bool{}
	n := nameReader{doc: schema, left: maxTypeVisits}
	n.read(schema, declared)
	for i, name := range required(schema) {
		if !declared[name] && !n.open {
			a.report(requiredUndeclared, "/required/"+itoa(i), oneLine("required field "+name+" is not among the properties"))
		}
	}
}

func required(schema map[string]any) []string {
	var out []string
	list, _ := schema["required"].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			out = append(out, name)
		}
	}
	return out
}

func (a *auditor) properties(schema map[string]any) {
	props, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		path := pointer([]string{"properties", name})
		switch p := props[name].(type) {
		case bool:
			a.report(propertyBoolean, path, oneLine("property "+name+" is the boolean schema "+string(encode(p))+": legal, but it tells a caller nothing"))
		case map[string]any:
			if !slices.ContainsFunc(describing, func(k string) bool { _, ok := p[k]; return ok }) {
				a.report(propertyUntyped, path, oneLine("property "+name+" has none of "+strings.Join(describing, ", ")))
			}
		default:
			a.report(propertyNotObject, path, oneLine("property "+name+" is "+string(encode(p))+", not a schema"))
		}
	}
}

// nameReader gathers the declared names of a schema through local references and combined schemas.
type nameReader struct {
	doc  map[string]any
	open bool // some part cannot be read or covers names by pattern, so that no name is sure to be undeclared
	left int
}

func (n *nameReader) read(schema any, names map[string]bool) {
	obj, ok := schema.(map[string]any)
	if n.left--; !ok || n.left < 0 {
		n.open = n.open || n.left < 0
		return
	}
	props, _ := obj["properties"].(map[string]any)
	for name := range props {
		names[name] = true
	}
	if _, ok := obj["patternProperties"]; ok {
		n.open = true
	}
	if ref, ok := obj["$ref"].(string); ok {
		local, found := strings.CutPrefix(ref, "#/")
		target := at(n.doc, unescaped(local))
		n.open = n.open || !found || target == nil
		if found {
			n.read(target, names)
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := obj[k].([]any)
		for _, c := range list {
			n.read(c, names)
		}
	}
}

func unescaped(pointer string) []string {
	tokens := strings.Split(pointer, "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}
