package mcp

import "bytes"

// classify recognises, in one pass and without allocation, a reply to a tools/call
// that is beyond doubt a success without a finding, and returns its id. It judges
// nothing else: what it does not recognise goes to parseMessage and judge, which
// alone decide about failures and oddities.
//
// Recognised are the members of the specification, each at most once and written
// without escapes. encoding/json takes the last of two members, and names in any
// case; both are left to it.
func classify(data []byte, modern bool) (id int64, ok bool) {
	const version, ident, result = 1, 2, 4
	seen := 0
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return 0, false
	}
	i = skipSpace(data, i+1)
	for more := true; more; {
		from, to := scanName(data, i)
		if from < 0 {
			return 0, false
		}
		if i = scanColon(data, to+1); i < 0 {
			return 0, false
		}
		bit := 0
		switch string(data[from:to]) {
		case "jsonrpc":
			bit = version
			i = scanWord(data, i, `"2.0"`)
		case "id":
			bit = ident
			id, i = scanID(data, i)
		case "result":
			bit = result
			i = classifyResult(data, i, modern)
		}
		if bit == 0 || seen&bit != 0 || i < 0 {
			return 0, false
		}
		seen |= bit
		if i, more = scanNext(data, i, '}'); i < 0 {
			return 0, false
		}
	}
	return id, seen == version|ident|result && skipSpace(data, i) == len(data)
}

// maxName bounds the names looked for.
const maxName = 64

// scanName finds a member's name without escapes; from is -1 for any other. The
// closing quote is at to.
func scanName(data []byte, i int) (from, to int) {
	if i >= len(data) || data[i] != '"' {
		return -1, -1
	}
	i++
	for to = i; to < len(data) && to-i < maxName; to++ {
		switch c := data[to]; {
		case c == '"':
			return i, to
		case c < ' ' || c == '\\' || c >= 0x80:
			return -1, -1
		}
	}
	return -1, -1
}

// scanID reads an id as we send them: a positive integer.
func scanID(data []byte, i int) (int64, int) {
	var n int64
	from := i
	for ; i < len(data) && '0' <= data[i] && data[i] <= '9'; i++ {
		n = n*10 + int64(data[i]-'0')
	}
	if i == from || i-from > 18 || data[from] == '0' {
		return 0, -1
	}
	return n, i
}

// classifyResult recognises the result of a tool that did its work.
func classifyResult(data []byte, i int, modern bool) int {
	const content, isError, structured, meta, kind = 1, 2, 4, 8, 16
	seen := 0
	if i >= len(data) || data[i] != '{' {
		return -1
	}
	i = skipSpace(data, i+1)
	for more := true; more; {
		from, to := scanName(data, i)
		if from < 0 {
			return -1
		}
		if i = scanColon(data, to+1); i < 0 {
			return -1
		}
		bit := 0
		switch string(data[from:to]) {
		case "content":
			bit = content
			i = classifyContent(data, i)
		case "isError":
			bit = isError
			i = scanWord(data, i, "false")
		case "structuredContent":
			bit = structured
			i = scanValue(data, i, 2)
		case "_meta":
			bit = meta
			i = scanValue(data, i, 2)
		case "resultType":
			bit = kind
			i = scanWord(data, i, `"complete"`)
		}
		if bit == 0 || seen&bit != 0 || i < 0 {
			return -1
		}
		seen |= bit
		if i, more = scanNext(data, i, '}'); i < 0 {
			return -1
		}
	}
	if seen&content == 0 || modern && seen&kind == 0 {
		return -1
	}
	return i
}

// classifyContent recognises a list of content blocks whose text holds no error
// object (see errorPayload).
func classifyContent(data []byte, i int) int {
	if i >= len(data) || data[i] != '[' {
		return -1
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return i + 1
	}
	var said texts
	for more := true; more; {
		var text []byte
		if text, i = classifyBlock(data, i); i < 0 || !said.add(text) {
			return -1
		}
		if i, more = scanNext(data, i, ']'); i < 0 {
			return -1
		}
	}
	return i
}

// classifyBlock recognises a content block, and returns the text of one of type
// text as it is written, with its quotes.
func classifyBlock(data []byte, i int) (text []byte, end int) {
	if i >= len(data) || data[i] != '{' {
		return nil, -1
	}
	i = skipSpace(data, i+1)
	var kind []byte
	for more := true; more; {
		from, to := scanName(data, i)
		if from < 0 {
			return nil, -1
		}
		if i = scanColon(data, to+1); i < 0 {
			return nil, -1
		}
		begin := i
		if i = scanValue(data, i, 3); i < 0 {
			return nil, -1
		}
		switch name := data[from:to]; {
		case string(name) == "type":
			if kind != nil || data[begin] != '"' {
				return nil, -1
			}
			kind = data[begin:i]
		case string(name) == "text":
			if text != nil || data[begin] != '"' {
				return nil, -1
			}
			text = data[begin:i]
		case len(name) == 4 && (bytes.EqualFold(name, []byte("type")) || bytes.EqualFold(name, []byte("text"))):
			return nil, -1
		}
		if i, more = scanNext(data, i, '}'); i < 0 {
			return nil, -1
		}
	}
	switch {
	case kind == nil || bytes.IndexByte(kind, '\\') >= 0:
		return nil, -1
	case string(kind) != `"text"`:
		return nil, i
	case text == nil: // an empty text, by the rules of encoding/json
		return nil, -1
	}
	return text, i
}

// texts looks at the texts of a result as they come. Joined they may be an error
// object only if they begin like JSON.
type texts struct{ innocent, begun bool }

// add reports whether the result is still beyond doubt.
func (t *texts) add(quoted []byte) bool {
	if quoted == nil || t.innocent {
		return true
	}
	if !t.begun && innocent(quoted[1]) {
		t.innocent = true
		return true
	}
	t.begun = true
	return !bytes.Contains(quoted, []byte("error")) && !bytes.Contains(quoted, []byte(`\u`))
}

// innocent reports a first byte, as it is written, that neither begins a JSON
// object or list nor may be white space before one. The four high ones begin the
// spaces of Unicode.
func innocent(c byte) bool {
	switch c {
	case '"', '\\', '{', '[', 0xc2, 0xe1, 0xe2, 0xe3:
		return false
	}
	return c > ' '
}
