package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901): its tokens, unescaped.
type pointer []string

func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, errors.New("want a JSON pointer such as /results/0/id, or text: and a regular expression")
	}
	tokens := strings.Split(text[1:], "/")
	for i, t := range tokens {
		for rest := t; ; {
			at := strings.IndexByte(rest, '~')
			if at < 0 {
				break
			}
			if at+1 == len(rest) || rest[at+1] != '0' && rest[at+1] != '1' {
				return nil, errors.New("~ in a JSON pointer is written ~0, and / in a name ~1")
			}
			rest = rest[at+2:]
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// find is the value that the pointer names in a valid JSON text, nil when there
// is none. Of members of one name the last one counts, as in encoding/json.
func (p pointer) find(doc []byte) []byte {
	value := bytes.TrimSpace(doc)
	for _, token := range p {
		switch {
		case value == nil:
			return nil
		case value[0] == '{':
			value = member(value, token)
		case value[0] == '[':
			value = element(value, token)
		default:
			return nil
		}
	}
	return value
}

// member is the value of a name in an object.
func member(doc []byte, name string) (found []byte) {
	for i := skipBlank(doc, 1); doc[i] == '"'; {
		end := stringEnd(doc, i)
		here := isName(doc[i:end], name)
		i = skipBlank(doc, skipBlank(doc, end)+1) // over the colon
		end = valueEnd(doc, i)
		if here {
			found = doc[i:end]
		}
		if i = skipBlank(doc, end); doc[i] == ',' {
			i = skipBlank(doc, i+1)
		}
	}
	return found
}

// element is the value at an index of a list.
func element(doc []byte, token string) []byte {
	index, err := strconv.Atoi(token)
	if err != nil || index < 0 || token != strconv.Itoa(index) {
		return nil
	}
	for i := skipBlank(doc, 1); doc[i] != ']'; index-- {
		end := valueEnd(doc, i)
		if index == 0 {
			return doc[i:end]
		}
		if i = skipBlank(doc, end); doc[i] == ',' {
			i = skipBlank(doc, i+1)
		}
	}
	return nil
}

// isName compares a JSON string with a name.
func isName(raw []byte, name string) bool {
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1:len(raw)-1]) == name
	}
	var s string
	return json.Unmarshal(raw, &s) == nil && s == name
}

func skipBlank(doc []byte, i int) int {
	for doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r' {
		i++
	}
	return i
}

// valueEnd is the index after the value that begins at i.
func valueEnd(doc []byte, i int) int {
	for depth := 0; i < len(doc); {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			i++
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
