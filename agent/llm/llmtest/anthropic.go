package llmtest

import (
	"encoding/json"
	"strings"
)

// anthropicFrames is a message as a stream of named events: message_start, the
// content blocks one after the other, message_delta, message_stop.
func (x *exchange) anthropicFrames() []frame {
	text, stop := x.plannedText()
	start := x.message([]object{}, nil)
	if !x.answer.NoUsage {
		start["usage"] = x.anthropicUsage(1)
	}
	frames := []frame{event("message_start", object{"message": start})}
	index := 0
	block := func(head object, deltas []object) {
		frames = append(frames, blockFrames(index, head, deltas)...)
		index++
	}
	if len(x.answer.Thinking) > 0 {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, deltasOf("thinking_delta", "thinking", x.answer.Thinking))
	}
	if len(text) > 0 {
		block(object{"type": "text", "text": ""}, deltasOf("text_delta", "text", text))
	}
	frames = append(frames, event("ping", object{}))
	for _, call := range x.answer.Tools {
		block(object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}},
			deltasOf("input_json_delta", "partial_json", pieces(call.Arguments, call.Parts)))
	}
	end := object{"delta": object{"stop_reason": x.stopReason(stop), "stop_sequence": nil}}
	if !x.answer.NoUsage {
		end["usage"] = object{"output_tokens": x.outputTokens()}
	}
	last := event("message_delta", end)
	last.stop = true
	return append(frames, last, event("message_stop", object{}))
}

func blockFrames(index int, head object, deltas []object) []frame {
	frames := []frame{event("content_block_start", object{"index": index, "content_block": head})}
	for _, d := range deltas {
		f := event("content_block_delta", object{"index": index, "delta": d})
		f.token = true
		frames = append(frames, f)
	}
	return append(frames, event("content_block_stop", object{"index": index}))
}

func deltasOf(kind, field string, parts []string) []object {
	var all []object
	for _, p := range parts {
		all = append(all, object{"type": kind, field: p})
	}
	return all
}

func event(kind string, data object) frame {
	data["type"] = kind
	return frame{event: kind, data: string(mustJSON(data))}
}

func (x *exchange) message(content []object, stop any) object {
	return object{"id": "msg_" + x.requestID(), "type": "message", "role": "assistant", "model": x.entry.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil}
}

// anthropicUsage counts as the API does: input_tokens leaves out what came from
// the cache.
func (x *exchange) anthropicUsage(out int64) object {
	return object{"input_tokens": x.inputTokens() - x.answer.Cached, "cache_read_input_tokens": x.answer.Cached,
		"cache_creation_input_tokens": 0, "output_tokens": out}
}

func (x *exchange) stopReason(stop Stop) string {
	switch {
	case stop == StopLength:
		return "max_tokens"
	case stop == StopFilter, stop == StopRefusal:
		return "refusal"
	case len(x.answer.Tools) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// anthropicMessage is the same answer in one piece.
func (x *exchange) anthropicMessage() object {
	text, stop := x.plannedText()
	content := []object{}
	if len(text) > 0 {
		content = append(content, object{"type": "text", "text": join(text)})
	}
	for _, call := range x.answer.Tools {
		content = append(content, object{"type": "tool_use", "id": call.ID, "name": call.Name,
			"input": json.RawMessage(call.Arguments)})
	}
	whole := x.message(content, x.stopReason(stop))
	if !x.answer.NoUsage {
		whole["usage"] = x.anthropicUsage(x.outputTokens())
	}
	return whole
}

func join(parts []string) string { return strings.Join(parts, "") }
