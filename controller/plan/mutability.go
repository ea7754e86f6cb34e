package plan

import (
	"strings"
	"unicode"

	"ordeal/agent/wire"
)

// Mutability of a tool: whether calling it may change state.
type Mutability string

const (
	ReadOnly Mutability = "read-only"
	Mutating Mutability = "mutating"
	Unknown  Mutability = "unknown"
)

// Words that tell what a tool does by its name. A mutating word decides first:
// "get_and_delete" deletes.
var (
	mutatingWords = set(`create delete write update add remove set insert drop move rename execute run send push put
		patch post clear reset upload commit apply install uninstall kill stop start restart modify edit append
		truncate purge revoke grant publish deploy merge`)
	readWords = set(`get list read search find query describe show fetch status diff log head count exists check
		view inspect summarize summarise resolve lookup stat`)
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Classify decides by the server's own readOnlyHint where there is one, else by
// the words of the name. why says which.
func Classify(t *wire.Tool) (m Mutability, why string) {
	if t.ReadOnly != nil {
		if *t.ReadOnly {
			return ReadOnly, "it declares readOnlyHint=true"
		}
		return Mutating, "it declares readOnlyHint=false"
	}
	read := ""
	for _, w := range nameWords(t.Name) {
		if mutatingWords[w] {
			return Mutating, "its name says " + w
		}
		if read == "" && readWords[w] {
			read = w
		}
	}
	if read != "" {
		return ReadOnly, "its name says " + read
	}
	return Unknown, "neither an annotation nor its name tells"
}

// nameWords splits a tool name at everything that is not a letter or digit and
// where camelCase changes.
func nameWords(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}
