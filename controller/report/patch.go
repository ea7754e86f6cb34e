package report

import (
	"embed"
	"strconv"
	"strings"
	"text/template"
)

//go:embed patch/*.tmpl
var patchFiles embed.FS

var patches = template.Must(template.ParseFS(patchFiles, "patch/*.tmpl"))

// patchFor returns the code that fixes a topic in a language, "" when there is
// none: an unknown language, or a topic that no code fixes. Only names made
// of letters, digits and underscores get into it, and quoted fields.
func patchFor(topic, language, tool string, fields []string) string {
	t := patches.Lookup(topic + "." + language + ".tmpl")
	if t == nil {
		return ""
	}
	var b strings.Builder
	err := t.Execute(&b, struct{ Func, Fields string }{identifier(tool), fieldList(fields)})
	if err != nil {
		return ""
	}
	return b.String()
}

// patchLanguage maps what a target calls its language to the patches we have;
// "" for any other.
func patchLanguage(language string) string {
	switch strings.ToLower(language) {
	case "python":
		return "python"
	case "typescript", "javascript", "node":
		return "typescript"
	case "go", "golang":
		return "go"
	}
	return ""
}

// identifier makes a name of a tool that each of the languages accepts.
func identifier(tool string) string {
	var b strings.Builder
	for _, r := range tool {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('_')
		}
		if b.Len() == 40 {
			break
		}
	}
	if name := strings.Trim(b.String(), "_"); name != "" {
		return name
	}
	return "handle_call"
}

// maxFields bounds the fields a patch names.
const maxFields = 4

func fieldList(fields []string) string {
	var parts []string
	for i, f := range fields {
		if i == maxFields {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, strconv.QuoteToASCII(fit(clean(f), 40)))
	}
	return strings.Join(parts, ", ")
}
