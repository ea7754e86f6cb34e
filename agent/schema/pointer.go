package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapeToken(token string) string { return escaper.Replace(token) }

// pointer writes a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(escapeToken(token))
	}
	return b.String()
}

// put returns doc with the value at path replaced or added. Only the containers
// along the path are copied; doc itself stays as it is.
func put(doc any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	switch d := doc.(type) {
	case map[string]any:
		d = maps.Clone(d)
		d[path[0]] = put(d[path[0]], path[1:], v)
		return d
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(d) {
			return doc
		}
		d = slices.Clone(d)
		d[i] = put(d[i], path[1:], v)
		return d
	}
	return doc
}

// drop returns doc without the members called names of the object at path.
func drop(doc any, path []string, names ...string) any {
	obj, ok := at(doc, path).(map[string]any)
	if !ok {
		return doc
	}
	obj = maps.Clone(obj)
	for _, name := range names {
		delete(obj, name)
	}
	return put(doc, path, obj)
}

// at looks up the value at path, nil when there is none.
func at(doc any, path []string) any {
	for _, token := range path {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(d) {
				return nil
			}
			doc = d[i]
		default:
			return nil
		}
	}
	return doc
}

// absent stands for a member that is not there, which null is not.
type absent struct{}

// differences writes down where is differs from was: nothing for equal
// documents, the same for two documents exactly if they are equal. It costs less
// than writing down all of is.
func differences(out []byte, was, is any, path string) []byte {
	w, ok := was.(map[string]any)
	m, both := is.(map[string]any)
	if ok && both {
		for _, k := range changed(w, m) {
			place := path + "/" + escapeToken(k)
			old, had := w[k]
			if !had {
				old = absent{}
			}
			if v, there := m[k]; there {
				out = differences(out, old, v, place)
			} else {
				out = append(append(out, '-'), encode(place)...)
			}
		}
		return out
	}
	if _, missing := was.(absent); !missing && same(was, is) {
		return out
	}
	out = append(append(out, '+'), encode(path)...)
	return append(out, encode(is)...)
}

// changed lists the names whose members differ, sorted.
func changed(was, is map[string]any) []string {
	var out []string
	for k, v := range is {
		if w, had := was[k]; !had || !same(w, v) {
			out = append(out, k)
		}
	}
	for k := range was {
		if _, there := is[k]; !there {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// child extends a path without sharing its memory.
func child(path []string, token string) []string {
	return append(slices.Clip(path), token)
}

// carries reports whether any scalar or empty container of was still sits unchanged at its place in is.
func carries(was, is any) bool {
	switch w := was.(type) {
	case map[string]any:
		m, ok := is.(map[string]any)
		if !ok || len(w) == 0 {
			return ok && len(m) == 0
		}
		for k, v := range w {
			if n, has := m[k]; has && carries(v, n) {
				return true
			}
		}
		return false
	case []any:
		l, ok := is.([]any)
		if !ok || len(w) == 0 {
			return ok && len(l) == 0
		}
		for i := range min(len(w), len(l)) {
			if carries(w[i], l[i]) {
				return true
			}
		}
		return false
	}
	return same(was, is)
}
