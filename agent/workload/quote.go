package workload

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendEscaped appends a text as the inside of a JSON string. What is not UTF-8
// becomes U+FFFD, as encoding/json does it; nothing is escaped that need not be.
func appendEscaped(buf []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			buf = appendControl(append(buf, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			buf = append(append(buf, s[from:i]...), "\uFFFD"...)
			i++
			from = i
			continue
		}
		i += size
	}
	return append(buf, s[from:]...)
}

func appendControl(buf []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\n':
		return append(buf, '\\', 'n')
	case '\r':
		return append(buf, '\\', 'r')
	case '\t':
		return append(buf, '\\', 't')
	}
	return append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// quoted is a text as a JSON string.
func quoted(s string) []byte {
	return append(appendEscaped(append(make([]byte, 0, len(s)+2), '"'), s), '"')
}

// appendInside appends a JSON value as part of a longer string: a string's inside
// as it is escaped already, a number or word as it stands, anything else as JSON.
func appendInside(buf, value []byte) []byte {
	switch value[0] {
	case '"':
		return append(buf, value[1:len(value)-1]...)
	case '{', '[':
		return appendEscaped(buf, string(value))
	}
	return append(buf, value...)
}

// stringEnd is the index after the closing quote of the string opened at i.
func stringEnd(doc []byte, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}
