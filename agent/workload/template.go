package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// template is JSON with values to be put in. Without pieces it is constant.
type template struct {
	pieces []piece
	tail   []byte // after the last value
}

// piece is a value with the JSON before it.
type piece struct {
	before []byte
	value  value
	lone   bool // all there is of a string: keeps its type
}

// template compiles the arguments of a step.
func (c *compiler) template(args json.RawMessage) template {
	c.lane, c.member = uint32(laneWhole), ""
	var doc bytes.Buffer
	if err := json.Compact(&doc, args); err != nil {
		c.fail("args are not JSON: %v", err)
		return template{}
	}
	var t template
	raw := doc.Bytes()
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			t.tail = append(t.tail, raw[i])
			i++
			continue
		}
		end := stringEnd(raw, i)
		c.text(&t, raw[i:end], end < len(raw) && raw[end] == ':')
		i = end
	}
	return t
}

// text compiles one string of a JSON document, quotes included.
func (c *compiler) text(t *template, raw []byte, name bool) {
	if name {
		_ = json.Unmarshal(raw, &c.member) // part of a document that was just compacted
	}
	if !bytes.ContainsAny(raw, "{\\") { // a brace may be written \u007b
		t.tail = append(t.tail, raw...)
		return
	}
	var text string
	_ = json.Unmarshal(raw, &text)
	if name {
		if strings.Contains(text, "${") {
			c.failArg(errors.New("a name cannot hold ${...}, only a value"))
		}
		t.tail = append(t.tail, raw...)
		return
	}
	parts, err := split(text)
	if err != nil {
		c.failArg(err)
		return
	}
	c.parts(t, parts)
}

// parts appends what a string was split into.
func (c *compiler) parts(t *template, parts []part) {
	lone := len(parts) == 1 && parts[0].expr
	if !lone {
		t.tail = append(t.tail, '"')
	}
	for _, p := range parts {
		if !p.expr {
			t.tail = appendEscaped(t.tail, p.text)
			continue
		}
		v, err := c.value(p.text)
		if err != nil {
			c.failArg(fmt.Errorf("${%.60s}: %w", p.text, err))
		}
		v.lane, c.lane = c.lane, c.lane+2
		t.pieces = append(t.pieces, piece{before: t.tail, value: v, lone: lone})
		t.tail = nil
	}
	if !lone {
		t.tail = append(t.tail, '"')
	}
}

// part of a string: text, or the inside of ${...}.
type part struct {
	text string
	expr bool
}

var errUnclosed = errors.New("${ is not closed: write } after it, or $${ for the characters themselves")

// split cuts a text at its ${...}.
func split(text string) ([]part, error) {
	var parts []part
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			parts = append(parts, part{text: plain.String()})
			plain.Reset()
		}
	}
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			plain.WriteString(text)
			flush()
			return parts, nil
		}
		if at > 0 && text[at-1] == '$' {
			plain.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		plain.WriteString(text[:at])
		text = text[at+2:]
		end := closing(text)
		if end < 0 {
			return nil, errUnclosed
		}
		flush()
		parts = append(parts, part{text: strings.TrimSpace(text[:end]), expr: true})
		text = text[end+1:]
	}
}

// closing is the index of the first } outside of double quotes, -1 without one.
func closing(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}
