// Package secret resolves references to secrets and keeps their values out of
// everything that is written down.
//
// In go references as the user wrote them (${env:NAME}, $NAME, ${NAME},
// ${file:/path}) and texts from anywhere; out come resolved values, for the
// wire alone, and texts in which no known secret is left: raw, URL-encoded,
// JSON-escaped or in base64. What never happens here: a secret in an error
// message, or a reference that silently resolves to nothing.
package secret

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxFile bounds a secret read from a file.
const maxFile = 64 << 10

// Resolve replaces every reference in text: ${env:NAME}, ${NAME} and $NAME by
// the environment variable, ${file:/path} by the file's content without its
// last line end, $$ by one dollar sign. A dollar sign before anything else
// stays. A variable that is not set, a file that cannot be read and an unclosed
// brace are errors that name the reference, never a value.
func Resolve(text string) (string, error) {
	value, _, err := expand(text)
	return value, err
}

// HasReference reports whether Resolve would replace something in text.
func HasReference(text string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "$")
		if !found {
			return false
		}
		if after != "" && (after[0] == '{' || after[0] == '$' || nameLen(after) > 0) {
			return true
		}
		rest = after
	}
}

// expand also returns the values it put in.
func expand(text string) (string, []string, error) {
	var out strings.Builder
	var values []string
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			return out.String(), values, nil
		}
		ref, tail, err := cutReference(after)
		if err != nil {
			return "", nil, err
		}
		rest = tail
		if ref == "" { // "$$", or a dollar sign that begins no reference
			out.WriteByte('$')
			continue
		}
		value, err := lookUp(ref)
		if err != nil {
			return "", nil, err
		}
		values = append(values, value)
		out.WriteString(value)
	}
}

// cutReference splits what follows a dollar sign into reference and rest.
func cutReference(s string) (ref, rest string, err error) {
	switch {
	case strings.HasPrefix(s, "$"):
		return "", s[1:], nil
	case strings.HasPrefix(s, "{"):
		inner, tail, ok := strings.Cut(s[1:], "}")
		if !ok || inner == "" {
			return "", "", fmt.Errorf("secret reference is not closed or empty: write ${env:NAME}, or $$ for a dollar sign")
		}
		return inner, tail, nil
	}
	n := nameLen(s)
	return s[:n], s[n:], nil
}

// nameLen is the length of the variable name s begins with, 0 for none.
func nameLen(s string) int {
	for i, c := range []byte(s) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

func lookUp(ref string) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		return readFile(path)
	}
	name := strings.TrimPrefix(ref, "env:")
	if name == "" || nameLen(name) != len(name) {
		return "", fmt.Errorf("secret reference ${%s}: not a variable name; write ${env:NAME} or ${file:/path}, or $$ for a dollar sign", ref)
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("secret reference ${env:%s}: not set in the environment of the process that resolves it (with --nats: the agent's); set it there, or write $$ for a dollar sign", name)
	}
	return value, nil
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("secret reference ${file:%s}: %w", path, err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("secret reference ${file:%s}: %w", path, err)
	}
	if len(body) > maxFile {
		return "", fmt.Errorf("secret reference ${file:%s}: larger than %d bytes; is it the right file?", path, maxFile)
	}
	return strings.TrimRight(string(body), "\r\n"), nil
}
