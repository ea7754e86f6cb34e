package probe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"ordeal/agent/schema"
	"ordeal/agent/wire"
)

// opIDMark in a string argument stands for the operation's id.
const opIDMark = "{op_id}"

// OpID is the id of an operation: "ordeal-" and the first 12 hex digits of
// SHA-256("salt:tool#operation"). It marks what the operation writes, so that an
// oracle can count it.
func OpID(salt, tool string, op uint64) string {
	sum := sha256.Sum256([]byte(salt + ":" + tool + "#" + strconv.FormatUint(op, 10)))
	return "ordeal-" + hex.EncodeToString(sum[:6])
}

// toolbox is the prepared calls of a unit; safe for concurrent use.
type toolbox struct {
	salt  string
	tools []prepared
}

// prepared is one tool with its arguments cut at the places of the id.
type prepared struct {
	name   string
	pieces [][]byte // one piece: the same arguments for every operation
	print  string   // fingerprint of a call with them; empty when it depends on the operation
	output *schema.Schema
}

// newToolbox prepares the calls of a unit. A target without tools (an LLM
// endpoint) gets a single call without name or arguments.
func newToolbox(spec *wire.CallSpec, checkOutput bool) *toolbox {
	box := &toolbox{salt: spec.OpIDSalt}
	calls := spec.Tools
	if len(calls) == 0 {
		calls = []wire.ToolCall{{}}
	}
	for _, c := range calls {
		p := prepared{name: c.Name, pieces: [][]byte{c.Args}}
		if box.salt != "" {
			p.pieces = cutAtOpID(c.Args)
		}
		if len(p.pieces) == 1 {
			p.print = fingerprint(c.Name, c.Args)
		}
		if checkOutput && len(c.OutputSchema) > 0 {
			// One that does not compile is an issue of the survey; the calls can
			// be measured all the same.
			p.output, _ = schema.Compile(c.OutputSchema)
		}
		box.tools = append(box.tools, p)
	}
	return box
}

// of is the tool an operation calls: round robin by index.
func (b *toolbox) of(op uint64) *prepared { return &b.tools[op%uint64(len(b.tools))] }

// args are the arguments of an operation.
func (p *prepared) args(salt string, op uint64) []byte {
	if len(p.pieces) == 1 {
		return p.pieces[0]
	}
	return bytes.Join(p.pieces, []byte(OpID(salt, p.name, op)))
}

// fingerprint of an operation: calls of one fingerprint are the same call.
func (p *prepared) fingerprint(args []byte) string {
	if p.print != "" {
		return p.print
	}
	return fingerprint(p.name, args)
}

// fingerprint is "tool:" and 12 hex digits of SHA-256("tool:" arguments with
// sorted keys).
func fingerprint(tool string, args []byte) string {
	canonical := args
	var v any
	if dec := json.NewDecoder(bytes.NewReader(args)); len(args) > 0 {
		dec.UseNumber() // 9007199254740993 must not become ...992
		if dec.Decode(&v) == nil {
			canonical, _ = json.Marshal(v) // what was just decoded encodes
		}
	}
	sum := sha256.Sum256(append([]byte(tool+":"), canonical...))
	return tool + ":" + hex.EncodeToString(sum[:6])
}

// cutAtOpID cuts JSON at every mark inside a string value. A mark in a key
// stays: the id goes into arguments, not into their names.
func cutAtOpID(args []byte) [][]byte {
	var pieces [][]byte
	from := 0
	for i := 0; i < len(args); i++ {
		if args[i] != '"' {
			continue
		}
		end := stringEnd(args, i)
		if !isKey(args, end) {
			for at := bytes.Index(args[i:end], []byte(opIDMark)); at >= 0; at = bytes.Index(args[i:end], []byte(opIDMark)) {
				pieces = append(pieces, args[from:i+at])
				i += at + len(opIDMark)
				from = i
			}
		}
		i = end - 1
	}
	return append(pieces, args[from:])
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

func isKey(doc []byte, end int) bool {
	rest := bytes.TrimLeft(doc[min(end, len(doc)):], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}
