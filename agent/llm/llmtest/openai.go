package llmtest

// created is the fixed moment of every completion, so that answers repeat.
const created = 1_760_000_000

func (x *exchange) openaiID() string { return "chatcmpl-" + x.requestID() }

// openaiFrames is a chat completion as a stream: role, content, tool calls,
// the finish reason, usage in a chunk without choices, [DONE].
func (x *exchange) openaiFrames() []frame {
	text, stop := x.plannedText()
	frames := []frame{x.chunk(object{"role": "assistant", "content": ""}, nil, false)}
	for _, t := range x.answer.Thinking {
		frames = append(frames, x.chunk(object{"reasoning_content": t}, nil, true))
	}
	field := "content"
	if stop == StopRefusal {
		field = "refusal"
	}
	for _, t := range text {
		frames = append(frames, x.chunk(object{field: t}, nil, true))
	}
	for _, delta := range x.toolDeltas() {
		frames = append(frames, x.chunk(object{"tool_calls": []object{delta}}, nil, true))
	}
	frames = append(frames, x.chunk(object{}, x.finishReason(stop), false))
	if x.entry.Usage && !x.answer.NoUsage {
		frames = append(frames, frame{data: string(mustJSON(x.chunkObject([]object{}, x.openaiUsage())))})
	}
	return append(frames, frame{data: "[DONE]"})
}

func (x *exchange) chunk(delta object, finish any, token bool) frame {
	choice := object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}
	return frame{data: string(mustJSON(x.chunkObject([]object{choice}, nil))), token: token, stop: finish != nil}
}

func (x *exchange) chunkObject(choices []object, usage any) object {
	return object{"id": x.openaiID(), "object": "chat.completion.chunk", "created": created,
		"model": x.entry.Model, "choices": choices, "usage": usage}
}

// toolDeltas interleaves the pieces of all calls: first the heads in order,
// then one piece of each call in turn.
func (x *exchange) toolDeltas() []object {
	var deltas []object
	parts := make([][]string, len(x.answer.Tools))
	for i, call := range x.answer.Tools {
		parts[i] = pieces(call.Arguments, call.Parts)
		deltas = append(deltas, object{"index": i, "id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": ""}})
	}
	for more := true; more; {
		more = false
		for i := range parts {
			if len(parts[i]) == 0 {
				continue
			}
			deltas = append(deltas, object{"index": i, "function": object{"arguments": parts[i][0]}})
			parts[i], more = parts[i][1:], true
		}
	}
	return deltas
}

func (x *exchange) finishReason(stop Stop) string {
	switch {
	case stop == StopLength:
		return "length"
	case stop == StopFilter:
		return "content_filter"
	case len(x.answer.Tools) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (x *exchange) openaiUsage() object {
	in, out := x.inputTokens(), x.outputTokens()
	return object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details": object{"cached_tokens": x.answer.Cached}}
}

// openaiCompletion is the same answer in one piece.
func (x *exchange) openaiCompletion() object {
	text, stop := x.plannedText()
	message := object{"role": "assistant", "content": orNull(join(text)), "refusal": nil}
	if stop == StopRefusal {
		message["content"], message["refusal"] = nil, join(text)
	}
	var calls []object
	for _, call := range x.answer.Tools {
		calls = append(calls, object{"id": call.ID, "type": "function",
			"function": object{"name": call.Name, "arguments": call.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	whole := object{"id": x.openaiID(), "object": "chat.completion", "created": created, "model": x.entry.Model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": x.finishReason(stop)}}}
	if !x.answer.NoUsage {
		whole["usage"] = x.openaiUsage()
	}
	return whole
}
