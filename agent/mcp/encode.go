package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// appendRequest writes a request, or with id 0 a notification. params is an
// object or nil; meta, when not empty, is the inside of its _meta.
func appendRequest(buf []byte, id int64, method string, params []byte, meta string) []byte {
	buf = append(buf, `{"jsonrpc":"2.0",`...)
	if id != 0 {
		buf = append(buf, `"id":`...)
		buf = strconv.AppendInt(buf, id, 10)
		buf = append(buf, ',')
	}
	buf = append(buf, `"method":`...)
	buf = appendString(buf, method)
	if params != nil || meta != "" {
		buf = append(buf, `,"params":`...)
		buf = appendParams(buf, params, meta)
	}
	return append(buf, '}')
}

// appendParams puts meta in as the last member. Params that are no object, or
// bring a _meta of their own, go out as they are: somebody means it.
func appendParams(buf, params []byte, meta string) []byte {
	params = bytes.TrimSpace(params)
	if len(params) == 0 {
		params = []byte("{}")
	}
	if meta == "" || params[0] != '{' || params[len(params)-1] != '}' || hasMeta(params) {
		return append(buf, params...)
	}
	buf = append(buf, params[:len(params)-1]...)
	if len(bytes.TrimSpace(params[1:len(params)-1])) > 0 {
		buf = append(buf, ',')
	}
	buf = append(buf, `"_meta":{`...)
	buf = append(buf, meta...)
	return append(buf, "}}"...)
}

func hasMeta(params []byte) bool {
	if !bytes.Contains(params, []byte(`"_meta"`)) || !json.Valid(params) {
		return false
	}
	found := false
	members(params, func(key string, _ []byte) { found = found || key == "_meta" })
	return found
}

func appendString(buf []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(buf, quoted...)
		}
	}
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// toolParams is the params object of a tools/call.
func toolParams(buf []byte, tool string, args []byte) []byte {
	buf = append(buf, `{"name":`...)
	buf = appendString(buf, tool)
	buf = append(buf, `,"arguments":`...)
	if len(args) == 0 {
		args = []byte("{}")
	}
	buf = append(buf, args...)
	return append(buf, '}')
}

// oneLine replaces line ends, which inside valid JSON are white space only.
func oneLine(body []byte) []byte {
	for i, c := range body {
		if c == '\n' || c == '\r' {
			body[i] = ' '
		}
	}
	return body
}
