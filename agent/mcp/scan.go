package mcp

import "encoding/binary"

// A strict scanner of JSON. Each function takes the place of a value and returns
// that behind it, or -1 where the text is no JSON by the rules of encoding/json.

// maxScanDepth of nesting is followed; deeper texts are left to encoding/json.
const maxScanDepth = 128

// scanValue skips any value.
func scanValue(data []byte, i, depth int) int {
	if i >= len(data) || depth > maxScanDepth {
		return -1
	}
	switch c := data[i]; {
	case c == '"':
		return scanString(data, i+1)
	case c == '{':
		return scanObject(data, i, depth)
	case c == '[':
		return scanArray(data, i, depth)
	case c == '-' || '0' <= c && c <= '9':
		return scanNumber(data, i)
	case c == 't':
		return scanWord(data, i, "true")
	case c == 'f':
		return scanWord(data, i, "false")
	case c == 'n':
		return scanWord(data, i, "null")
	}
	return -1
}

func scanWord(data []byte, i int, word string) int {
	if end := i + len(word); end <= len(data) && string(data[i:end]) == word {
		return end
	}
	return -1
}

func scanObject(data []byte, i, depth int) int {
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(data) || data[i] != '"' {
			return -1
		}
		if i = scanString(data, i+1); i < 0 {
			return -1
		}
		if i = scanColon(data, i); i < 0 {
			return -1
		}
		if i = scanValue(data, i, depth+1); i < 0 {
			return -1
		}
		more := false
		if i, more = scanNext(data, i, '}'); i < 0 || !more {
			return i
		}
	}
}

func scanArray(data []byte, i, depth int) int {
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return i + 1
	}
	for {
		if i = scanValue(data, i, depth+1); i < 0 {
			return -1
		}
		more := false
		if i, more = scanNext(data, i, ']'); i < 0 || !more {
			return i
		}
	}
}

// scanColon goes from behind a name to its value.
func scanColon(data []byte, i int) int {
	i = skipSpace(data, i)
	if i >= len(data) || data[i] != ':' {
		return -1
	}
	return skipSpace(data, i+1)
}

// scanNext goes from behind a value to the next one, or behind the bracket that
// ends the list.
func scanNext(data []byte, i int, end byte) (next int, more bool) {
	i = skipSpace(data, i)
	if i >= len(data) {
		return -1, false
	}
	switch data[i] {
	case ',':
		return skipSpace(data, i+1), true
	case end:
		return i + 1, false
	}
	return -1, false
}

const (
	eachByte = 0x0101010101010101
	eachTop  = 0x8080808080808080
)

// scanString goes from behind the opening quote behind the closing one. Eight
// bytes at a time are looked at for a quote, a backslash or a control character.
func scanString(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, back := x^('"'*eachByte), x^('\\'*eachByte)
			if ((quote-eachByte)&^quote|(back-eachByte)&^back|(x-' '*eachByte)&^x)&eachTop != 0 {
				break
			}
			i += 8
		}
		for {
			if i >= len(data) {
				return -1
			}
			c := data[i]
			i++
			if c == '"' {
				return i
			}
			if c < ' ' {
				return -1
			}
			if c == '\\' {
				if i = scanEscape(data, i); i < 0 {
					return -1
				}
				break // back to long steps
			}
			if i&7 == 0 {
				break
			}
		}
	}
}

func scanEscape(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(data) {
			return -1
		}
		for _, c := range data[i+1 : i+5] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

func scanNumber(data []byte, i int) int {
	if data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && data[i] == '0':
		i++
	default:
		if i = scanDigits(data, i); i < 0 {
			return -1
		}
	}
	if i < len(data) && data[i] == '.' {
		if i = scanDigits(data, i+1); i < 0 {
			return -1
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return scanDigits(data, i)
	}
	return i
}

// scanDigits skips at least one.
func scanDigits(data []byte, i int) int {
	from := i
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
