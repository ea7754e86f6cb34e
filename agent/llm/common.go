package llm

import "strings"

// commonEvent is what one of the events says that make up most of a stream.
type commonEvent struct {
	scanner
	seen    uint // members met, by bit: one that comes twice is given up on
	model   []byte
	kind    []byte // Anthropic: type of the event
	index   int    // Anthropic: of the block
	text    []byte // as it stands in JSON
	escaped bool
	args    []byte // Anthropic: a piece of a tool's arguments, as it stands
	argsEsc bool
	other   bool   // something generated that is not kept: reasoning
	stop    []byte // OpenAI: finish_reason
}

// once reports that a member has not been met before.
func (e *commonEvent) once(bit uint) bool {
	first := e.seen&(1<<bit) == 0
	e.seen |= 1 << bit
	return first
}

// plain takes a string without escapes.
func (e *commonEvent) plain() ([]byte, bool) {
	raw, escaped, ok := e.scanner.text()
	return raw, ok && !escaped
}

// piece takes null or a string. The seen bits tell what was met.
func (e *commonEvent) piece(to *[]byte, escaped *bool) bool {
	if e.word("null") {
		return true
	}
	var ok bool
	*to, *escaped, ok = e.scanner.text()
	return ok
}

// reasoning takes null or a string of which only counts that it is there.
func (e *commonEvent) reasoning() bool {
	var raw []byte
	var escaped bool
	ok := e.piece(&raw, &escaped)
	e.other = e.other || len(raw) > 0
	return ok
}

// openai reads a chunk that holds one piece of text, or none, of one choice.
func (e *commonEvent) openai() bool {
	return e.members(e.openaiMember) && e.end()
}

func (e *commonEvent) openaiMember(name []byte) (ok bool) {
	switch string(name) {
	case "model":
		e.model, ok = e.plain()
		return ok && e.once(0)
	case "choices":
		return e.once(1) && e.elements(e.openaiChoice)
	case "usage", "error":
		return e.word("null")
	}
	return e.skip(0)
}

func (e *commonEvent) openaiChoice() bool {
	return e.once(2) && e.members(e.openaiChoiceMember) // the one choice asked for
}

func (e *commonEvent) openaiChoiceMember(name []byte) (ok bool) {
	switch string(name) {
	case "index":
		n, ok := e.small()
		return ok && n == 0 && e.once(3)
	case "delta":
		return e.once(4) && e.members(e.openaiDeltaMember)
	case "finish_reason":
		if e.word("null") {
			return e.once(5)
		}
		e.stop, ok = e.plain()
		return ok && e.once(5)
	case "message":
		return false
	}
	return e.skip(0)
}

func (e *commonEvent) openaiDeltaMember(name []byte) bool {
	switch string(name) {
	case "content":
		return e.once(6) && e.piece(&e.text, &e.escaped)
	case "reasoning_content":
		return e.once(7) && e.reasoning()
	case "reasoning":
		return e.once(8) && e.reasoning()
	case "refusal", "tool_calls":
		return e.word("null")
	}
	return e.skip(0)
}

// anthropic reads a piece of a content block.
func (e *commonEvent) anthropic() bool {
	return e.members(e.anthropicMember) && e.end() && string(e.kind) == "content_block_delta"
}

func (e *commonEvent) anthropicMember(name []byte) (ok bool) {
	switch string(name) {
	case "type":
		e.kind, ok = e.plain()
		return ok && e.once(0)
	case "index":
		e.index, ok = e.small()
		return ok && e.once(1)
	case "delta":
		return e.once(2) && e.members(e.anthropicDeltaMember)
	case "message", "content_block", "usage", "error":
		return false
	}
	return e.skip(0)
}

func (e *commonEvent) anthropicDeltaMember(name []byte) bool {
	switch string(name) {
	case "text":
		return e.once(3) && e.piece(&e.text, &e.escaped)
	case "partial_json":
		return e.once(4) && e.piece(&e.args, &e.argsEsc)
	case "thinking":
		return e.once(5) && e.reasoning()
	case "stop_reason":
		return false
	}
	return e.skip(0)
}

// common takes an event of the usual kind. handled false: it is none, and nothing
// has been taken.
func (a *completion) common(w Wire, data []byte) (token, handled bool) {
	e := &a.scan
	*e = commonEvent{scanner: scanner{b: data}}
	if w == Anthropic {
		b := (*block)(nil)
		if e.anthropic() {
			b = a.block(e.index)
		}
		if b == nil {
			return false, false
		}
		write(&a.text, e.text, e.escaped)
		write(&b.args, e.args, e.argsEsc)
		return len(e.text) > 0 || len(e.args) > 0 || e.other, true
	}
	if !e.openai() {
		return false, false
	}
	if len(e.model) > 0 && string(e.model) != a.model {
		a.model = string(e.model)
	}
	if len(e.stop) > 0 {
		a.stop = string(e.stop)
	}
	write(&a.text, e.text, e.escaped)
	return len(e.text) > 0 || e.other, true
}

func write(to *strings.Builder, raw []byte, escaped bool) {
	if escaped {
		unescape(to, raw)
		return
	}
	to.Write(raw)
}
