package llm

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The events of a stream are nearly all alike: a piece of text and what it belongs
// to. They are read here without allocating, by a reader of JSON that gives up
// (false) at whatever is not just that: other members, errors, tool calls, usage,
// anything malformed. What it gives up on, encoding/json reads; nothing has been
// taken over by then. A test holds the two against each other.

// scanner goes over one JSON text.
type scanner struct {
	b []byte
	i int
}

// maxDepth of values that are skipped.
const maxDepth = 16

func (s *scanner) blanks() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// next takes c, with blanks before it.
func (s *scanner) next(c byte) bool {
	s.blanks()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	s.blanks()
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

// text is the inside of a string as it stands; escaped says that it holds escapes.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	if !s.next('"') {
		return nil, false, false
	}
	from, foreign := s.i, false
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			raw = s.b[from:s.i]
			s.i++
			return raw, escaped, !foreign || utf8.Valid(raw)
		case c == '\\':
			n := escapeLen(s.b[s.i:])
			if n == 0 {
				return nil, false, false
			}
			escaped = true
			s.i += n - 1
		case c < ' ':
			return nil, false, false
		case c >= utf8.RuneSelf:
			foreign = true
		}
	}
	return nil, false, false
}

// escapeLen is the length of the escape b begins with; 0: it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, b[1]) < 0 {
			return 0
		}
		return 2
	}
	if _, ok := hex4(b[2:]); !ok {
		return 0
	}
	return 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape appends what the inside of a valid string means.
func unescape(to *strings.Builder, raw []byte) {
	for len(raw) > 0 {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			to.Write(raw)
			return
		}
		to.Write(raw[:at])
		raw = raw[at:]
		if raw[1] != 'u' {
			to.WriteByte("\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, raw[1])])
			raw = raw[2:]
			continue
		}
		r, _ := hex4(raw[2:])
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				low, _ := hex4(raw[2:])
				pair = utf16.DecodeRune(r, low)
			}
			if r = pair; pair != utf8.RuneError {
				raw = raw[6:]
			}
		}
		to.WriteRune(r)
	}
}

// key is the name of the next member. Names with capitals, escapes or foreign
// letters are given up on: encoding/json would match them to fields in its own way.
func (s *scanner) key() (name []byte, ok bool) {
	name, escaped, ok := s.text()
	if !ok || escaped || !s.next(':') {
		return nil, false
	}
	for _, c := range name {
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return nil, false
		}
	}
	return name, true
}

// members calls member for each of an object, which has to take its value.
func (s *scanner) members(member func(name []byte) bool) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		name, ok := s.key()
		if !ok || !member(name) {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// skip takes a value of any kind.
func (s *scanner) skip(depth int) bool {
	s.blanks()
	if s.i == len(s.b) || depth > maxDepth {
		return false
	}
	switch c := s.b[s.i]; {
	case c == '"':
		_, _, ok := s.text()
		return ok
	case c == '{':
		return s.members(func([]byte) bool { return s.skip(depth + 1) })
	case c == '[':
		return s.elements(func() bool { return s.skip(depth + 1) })
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return s.word("null") || s.word("true") || s.word("false")
}

func (s *scanner) elements(element func() bool) bool {
	if !s.next('[') {
		return false
	}
	if s.next(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) is(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// number takes one by the grammar of JSON.
func (s *scanner) number() bool {
	if s.is('-') {
		s.i++
	}
	if s.is('0') {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.is('.') {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.is('e') || s.is('E') {
		s.i++
		if s.is('+') || s.is('-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

// small takes an integer from 0 to 9999; larger ones are given up on.
func (s *scanner) small() (n int, ok bool) {
	s.blanks()
	from := s.i
	if !s.digits() || s.i-from > 4 || s.b[from] == '0' && s.i-from > 1 || s.is('.') || s.is('e') || s.is('E') {
		return 0, false
	}
	for _, c := range s.b[from:s.i] {
		n = n*10 + int(c-'0')
	}
	return n, true
}

func (s *scanner) end() bool {
	s.blanks()
	return s.i == len(s.b)
}
