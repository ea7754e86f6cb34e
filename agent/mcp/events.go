package mcp

import "bytes"

// eventScan finds the first event with data in a body that is still growing. It
// knows the plain form of a stream; anything else is odd, and left to package sse.
type eventScan struct {
	line, seen int // where the line under way begins; up to where it has no end
	from, to   int // of the data
	has        bool
}

type eventState uint8

const (
	eventOpen  eventState = iota // more is to come
	eventWhole                   // the data is body[from:to], the rest begins at line
	eventOdd
)

// next goes on with what has come since.
func (e *eventScan) next(body []byte) eventState {
	for {
		n := bytes.IndexByte(body[e.seen:], '\n')
		if n < 0 {
			e.seen = len(body)
			return eventOpen
		}
		from, end := e.line, e.seen+n
		e.line, e.seen = end+1, end+1
		if end > from && body[end-1] == '\r' {
			end--
		}
		if end == from {
			if e.has && e.to > e.from {
				return eventWhole
			}
			e.has = false // a priming event
			continue
		}
		if bytes.IndexByte(body[from:end], '\r') >= 0 || !e.field(body, from, end) {
			return eventOdd
		}
	}
}

// field takes one line; it is false for what needs a closer look.
func (e *eventScan) field(body []byte, from, end int) bool {
	line := body[from:end]
	switch {
	case line[0] == ':', bytes.HasPrefix(line, []byte("event:")), bytes.HasPrefix(line, []byte("id:")), bytes.HasPrefix(line, []byte("retry:")):
		return true
	case !e.has && bytes.HasPrefix(line, []byte("data:")):
		e.has, e.from, e.to = true, from+len("data:"), end
		if e.from < end && body[e.from] == ' ' {
			e.from++
		}
		return true
	}
	return false
}

// onlyEnds reports whether nothing but line ends is left.
func onlyEnds(rest []byte) bool {
	for _, c := range rest {
		if c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}
