package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ordeal/metrics"
)

// maxTools bounds the calls of one answer: their index comes from the wire.
const maxTools = 1024

var (
	errNotJSON   = errors.New("an event is not JSON of the expected shape")
	errNoMessage = errors.New("the JSON document is no completion")
)

// completion collects what one answer says, whatever wire it comes by.
type completion struct {
	text    strings.Builder
	refusal strings.Builder
	blocks  []*block
	stop    string // finish_reason, stop_reason
	marked  bool   // the end marker of the stream has come
	model   string
	usage   usage
	fresh   int64 // input tokens that Anthropic neither read from the cache nor wrote to it
	written int64 // input tokens it wrote to the cache
	scan    commonEvent
}

// block is a tool call being put together, or on the Anthropic wire any block
// of content, known by its index.
type block struct {
	index    int
	tool     bool
	id, name string
	args     strings.Builder
}

type usage struct {
	seen            bool
	in, out, cached int64
}

// event takes one event of a stream. token reports generated content. An
// apiError comes back when the event is an error object.
func (a *completion) event(w Wire, kind string, data []byte) (token bool, err error) {
	if token, handled := a.common(w, data); handled {
		return token, nil
	}
	if w == Anthropic {
		return a.anthropic(kind, data)
	}
	return a.openai(data)
}

// document takes an answer that came in one piece.
func (a *completion) document(w Wire, data []byte) error {
	if w == Anthropic {
		return a.anthropicDocument(data)
	}
	return a.openaiDocument(data)
}

func (a *completion) block(index int) *block {
	for _, b := range a.blocks {
		if b.index == index {
			return b
		}
	}
	return nil
}

func (a *completion) addBlock(index int) (*block, error) {
	if len(a.blocks) >= maxTools {
		return nil, fmt.Errorf("more than %d tool calls or blocks in one answer", maxTools)
	}
	b := &block{index: index}
	a.blocks = append(a.blocks, b)
	return b, nil
}

func (a *completion) calls() []ToolCall {
	var all []ToolCall
	for _, b := range a.blocks {
		if b.tool {
			all = append(all, ToolCall{ID: b.id, Name: b.name, Arguments: b.arguments()})
		}
	}
	return all
}

// arguments of a call without any are an empty object.
func (b *block) arguments() string {
	if strings.TrimSpace(b.args.String()) == "" {
		return "{}"
	}
	return b.args.String()
}

// limited reports that the answer stopped at a limit instead of at its end.
func (a *completion) limited() bool {
	switch a.stop {
	case "length", "max_tokens", "model_context_window_exceeded":
		return true
	}
	return false
}

// verdict decides about an answer whose end marker has come.
func (a *completion) verdict() (metrics.Outcome, string) {
	switch {
	case a.stop == "content_filter":
		return metrics.InvalidResponse, "stopped by the content filter"
	case a.stop == "refusal", a.refusal.Len() > 0:
		return metrics.InvalidResponse, strings.TrimSuffix("refused: "+a.refusal.String(), ": ")
	case a.stop == "error":
		return metrics.ServerError, "the model stopped with an error"
	case a.limited():
		return metrics.OK, ""
	}
	tools := false
	for _, b := range a.blocks {
		if !b.tool {
			continue
		}
		tools = true
		if b.name == "" {
			return metrics.InvalidResponse, fmt.Sprintf("tool call %d has no name", b.index)
		}
		if !json.Valid([]byte(b.arguments())) {
			return metrics.InvalidResponse, fmt.Sprintf("arguments of tool call %d (%s) are not JSON", b.index, b.name)
		}
	}
	if !tools && a.text.Len() == 0 {
		return metrics.InvalidResponse, "a complete answer without any content"
	}
	return metrics.OK, ""
}
