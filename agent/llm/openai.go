package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

type openaiChunk struct {
	Model   string          `json:"model"`
	Choices []openaiChoice  `json:"choices"`
	Usage   *openaiUsage    `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type openaiChoice struct {
	Index        int            `json:"index"`
	Delta        openaiMessage  `json:"delta"`
	Message      *openaiMessage `json:"message"`
	FinishReason string         `json:"finish_reason"`
}

type openaiMessage struct {
	Content   string       `json:"content"`
	Reasoning string       `json:"reasoning_content"` // of compatible servers
	Thinking  string       `json:"reasoning"`         // of others
	Refusal   string       `json:"refusal"`
	ToolCalls []openaiTool `json:"tool_calls"`
}

type openaiTool struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiUsage struct {
	In      int64 `json:"prompt_tokens"`
	Out     int64 `json:"completion_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

var done = []byte("[DONE]")

// openai takes one chunk. A chunk without choices carries usage, or nothing.
func (a *completion) openai(data []byte) (token bool, err error) {
	if bytes.Equal(bytes.TrimSpace(data), done) {
		a.marked = true
		return false, nil
	}
	var chunk openaiChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, fmt.Errorf("%w: %v", errNotJSON, err)
	}
	if len(chunk.Error) > 0 && !bytes.Equal(chunk.Error, []byte("null")) {
		bad, _ := parseError(data)
		return false, bad
	}
	a.openaiHead(chunk)
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index != 0 {
			continue // we ask for one
		}
		said, err := a.openaiDelta(&choice.Delta)
		if err != nil {
			return token, err
		}
		token = token || said
		if choice.FinishReason != "" {
			a.stop = choice.FinishReason
		}
	}
	return token, nil
}

func (a *completion) openaiHead(chunk openaiChunk) {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u != nil {
		a.usage = usage{seen: true, in: max(u.In, 0), out: max(u.Out, 0), cached: max(u.Details.Cached, 0)}
	}
}

// openaiDelta reports whether the delta carried something generated.
func (a *completion) openaiDelta(d *openaiMessage) (bool, error) {
	a.text.WriteString(d.Content)
	a.refusal.WriteString(d.Refusal)
	for i := range d.ToolCalls {
		if err := a.openaiToolPart(&d.ToolCalls[i]); err != nil {
			return true, err
		}
	}
	return d.Content != "" || d.Reasoning != "" || d.Thinking != "" || d.Refusal != "" || len(d.ToolCalls) > 0, nil
}

// openaiToolPart adds a piece to the call it belongs to. Servers that leave out
// the index send each call in one piece, with an id of its own.
func (a *completion) openaiToolPart(part *openaiTool) error {
	index := len(a.blocks)
	switch {
	case part.Index != nil:
		index = *part.Index
	case part.ID == "" && len(a.blocks) > 0:
		index = a.blocks[len(a.blocks)-1].index
	}
	b := a.block(index)
	if b == nil {
		var err error
		if b, err = a.addBlock(index); err != nil {
			return err
		}
		b.tool = true
	}
	if part.ID != "" {
		b.id = part.ID
	}
	if part.Function.Name != "" {
		b.name = part.Function.Name
	}
	b.args.WriteString(part.Function.Arguments)
	return nil
}

func (a *completion) openaiDocument(data []byte) error {
	var whole openaiChunk
	if err := json.Unmarshal(data, &whole); err != nil {
		return fmt.Errorf("%w: %v", errNoMessage, err)
	}
	if len(whole.Choices) == 0 || whole.Choices[0].Message == nil || whole.Choices[0].FinishReason == "" {
		return fmt.Errorf("%w: it lacks a choice with message and finish_reason", errNoMessage)
	}
	a.openaiHead(whole)
	a.stop = whole.Choices[0].FinishReason
	_, err := a.openaiDelta(whole.Choices[0].Message)
	return err
}
