package spec

import (
	"errors"
	"strings"
)

// words splits a command line the way a POSIX shell splits words: blanks
// separate, single quotes keep everything, double quotes keep all but the
// escapes \" \\ \$ \`, a backslash keeps the next character. Nothing is
// expanded: no variables, no globs, no substitutions.
func words(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	started := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n', '\r':
			if started {
				out = append(out, word.String())
				word.Reset()
				started = false
			}
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("unclosed single quote")
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
			started = true
		case '"':
			n, err := quoted(line[i+1:], &word)
			if err != nil {
				return nil, err
			}
			i += n
			started = true
		case '\\':
			if i+1 == len(line) {
				return nil, errors.New("trailing backslash")
			}
			i++
			word.WriteByte(line[i])
			started = true
		default:
			word.WriteByte(c)
			started = true
		}
	}
	if started {
		out = append(out, word.String())
	}
	return out, nil
}

// quoted copies the inside of a double-quoted part and returns how many bytes
// it took, the closing quote included.
func quoted(rest string, word *strings.Builder) (int, error) {
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '"':
			return i + 1, nil
		case rest[i] == '\\' && i+1 < len(rest) && strings.IndexByte("\"\\$`", rest[i+1]) >= 0:
			i++
			word.WriteByte(rest[i])
		default:
			word.WriteByte(rest[i])
		}
	}
	return 0, errors.New("unclosed double quote")
}
