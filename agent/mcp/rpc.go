package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// message is one JSON-RPC message, its members as they were written. They alias
// the bytes it was parsed from.
type message struct {
	version, id, method, params, result, fault json.RawMessage
}

var (
	errNotJSON   = errors.New("not JSON")
	errNotObject = errors.New("JSON, but not an object")
	errBatch     = errors.New("a batch")
)

// parseMessage splits a message into its members. It validates the JSON, and
// copies and decodes nothing, since a reply may have many megabytes.
func parseMessage(data []byte) (message, error) {
	var m message
	if !json.Valid(data) {
		return m, errNotJSON
	}
	i := skipSpace(data, 0)
	if data[i] == '[' {
		return m, errBatch
	}
	if data[i] != '{' {
		return m, errNotObject
	}
	members(data, func(key string, value []byte) {
		switch key {
		case "jsonrpc":
			m.version = value
		case "id":
			m.id = value
		case "method":
			m.method = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.fault = value
		}
	})
	return m, nil
}

// members calls f for each member of the valid JSON object data.
func members(data []byte, f func(key string, value []byte)) {
	i := skipSpace(data, 0) + 1
	for {
		i = skipSpace(data, i)
		if data[i] == '}' {
			return
		}
		if data[i] == ',' {
			i = skipSpace(data, i+1)
		}
		end := skipValue(data, i)
		key := data[i:end]
		i = skipSpace(data, end) + 1 // the colon
		i = skipSpace(data, i)
		end = skipValue(data, i)
		f(unquote(key), data[i:end])
		i = end
	}
}

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // valid: checked as a part of the whole
	return s
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the valid JSON value that begins at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for {
		switch data[i] {
		case '"':
			i = skipString(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
			if depth == 0 {
				for i < len(data) && bytes.IndexByte([]byte(" \t\r\n,}]:"), data[i]) < 0 {
					i++
				}
			}
		}
		if depth == 0 {
			return i
		}
	}
}

func skipString(data []byte, i int) int {
	i++
	for {
		end := i + bytes.IndexByte(data[i:], '"')
		back := end
		for back > i && data[back-1] == '\\' {
			back--
		}
		if (end-back)%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
}

// rebase returns m with its members in a copy of the bytes it was parsed from.
func (m message) rebase(from, to []byte) message {
	for _, member := range []*json.RawMessage{&m.version, &m.id, &m.method, &m.params, &m.result, &m.fault} {
		if *member != nil {
			at := cap(from) - cap(*member) // members share the end of their array
			*member = to[at : at+len(*member) : at+len(*member)]
		}
	}
	return m
}

// parseBatch splits an array of messages. Elements that are no messages are
// left out.
func parseBatch(data []byte) []message {
	var raws []json.RawMessage
	if json.Unmarshal(data, &raws) != nil {
		return nil
	}
	var all []message
	for _, raw := range raws {
		if m, err := parseMessage(raw); err == nil {
			all = append(all, m)
		}
	}
	return all
}

func (m *message) isRequest() bool      { return m.method != nil && m.id != nil && !isNull(m.id) }
func (m *message) isNotification() bool { return m.method != nil && !m.isRequest() }

// foreign reports an object that is not of this protocol, such as a log line in
// JSON.
func (m *message) foreign() bool {
	bare := m.version == nil && m.id == nil
	return bare || m.id == nil && m.method == nil && m.result == nil && m.fault == nil
}

// name is the method, empty when it is none.
func (m *message) name() string {
	var s string
	if json.Unmarshal(m.method, &s) != nil {
		return ""
	}
	return s
}

func isNull(raw []byte) bool { return string(raw) == "null" }

// idFit tells how the id of a reply relates to that of a request.
type idFit int

const (
	idOther   idFit = iota // another id
	idSame                 // ours
	idRetyped              // ours by value, in another type
	idNone                 // null or missing
)

func (m *message) fit(id int64) idFit {
	if m.id == nil || isNull(m.id) {
		return idNone
	}
	n, exact, ok := numericID(m.id)
	switch {
	case !ok || n != id:
		return idOther
	case exact:
		return idSame
	}
	return idRetyped
}

// numericID reads an id that stands for an integer; exact means that it is
// written as one.
func numericID(raw []byte) (n int64, exact, ok bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true, true
	}
	text := string(bytes.Trim(raw, `"`))
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int64(f)) {
		return 0, false, false
	}
	return int64(f), false, true
}

// idType names the JSON type of an id for a message.
func idType(raw []byte) string {
	switch {
	case raw == nil:
		return "missing"
	case isNull(raw):
		return "null"
	case raw[0] == '"':
		return "string"
	case raw[0] == '{', raw[0] == '[', raw[0] == 't', raw[0] == 'f':
		return "foreign type"
	}
	return "number with a fraction"
}

func retyped(raw []byte) string {
	return fmt.Sprintf("reply id has type %s, request had integer", idType(raw))
}
