package llm

import (
	"encoding/json"
	"fmt"
)

type anthropicEvent struct {
	Type    string            `json:"type"`
	Index   int               `json:"index"`
	Message *anthropicMessage `json:"message"`
	Block   anthropicBlock    `json:"content_block"`
	Delta   anthropicDelta    `json:"delta"`
	Usage   *anthropicUsage   `json:"usage"`
}

type anthropicMessage struct {
	Type       string           `json:"type"`
	Model      string           `json:"model"`
	Content    []anthropicBlock `json:"content"`
	StopReason string           `json:"stop_reason"`
	Usage      *anthropicUsage  `json:"usage"`
}

type anthropicBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Text  string          `json:"text"`
	Input json.RawMessage `json:"input"`
}

type anthropicDelta struct {
	Text       string `json:"text"`
	Partial    string `json:"partial_json"`
	Thinking   string `json:"thinking"`
	StopReason string `json:"stop_reason"`
}

// anthropicUsage counts cached and cache-writing tokens apart from the input.
// Fields that message_delta leaves out keep what message_start said.
type anthropicUsage struct {
	In      *int64 `json:"input_tokens"`
	Out     *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
}

// anthropic takes one event. Unknown kinds are skipped, as the API asks for.
func (a *completion) anthropic(kind string, data []byte) (token bool, err error) {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("%w: %v", errNotJSON, err)
	}
	if e.Type == "" {
		e.Type = kind
	}
	switch e.Type {
	case "error":
		bad, _ := parseError(data)
		return false, bad
	case "message_start":
		if e.Message != nil {
			a.model = e.Message.Model
			a.count(e.Message.Usage)
		}
	case "content_block_start":
		return a.startBlock(&e)
	case "content_block_delta":
		return a.blockDelta(&e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		a.marked = true
	}
	return false, nil
}

func (a *completion) startBlock(e *anthropicEvent) (bool, error) {
	if a.block(e.Index) != nil {
		return false, fmt.Errorf("content block %d started twice", e.Index)
	}
	b, err := a.addBlock(e.Index)
	if err != nil {
		return false, err
	}
	b.tool, b.id, b.name = e.Block.Type == "tool_use", e.Block.ID, e.Block.Name
	a.text.WriteString(e.Block.Text)
	return e.Block.Text != "", nil
}

func (a *completion) blockDelta(e *anthropicEvent) (bool, error) {
	b := a.block(e.Index)
	if b == nil {
		return false, fmt.Errorf("a piece of content block %d, which never started", e.Index)
	}
	a.text.WriteString(e.Delta.Text)
	b.args.WriteString(e.Delta.Partial)
	return e.Delta.Text != "" || e.Delta.Partial != "" || e.Delta.Thinking != "", nil
}

// count takes a usage report over what earlier ones said, field by field.
func (a *completion) count(u *anthropicUsage) {
	if u == nil {
		return
	}
	a.usage.seen = true
	for _, field := range []struct {
		to   *int64
		from *int64
	}{{&a.fresh, u.In}, {&a.usage.cached, u.Read}, {&a.written, u.Written}, {&a.usage.out, u.Out}} {
		if field.from != nil {
			*field.to = max(*field.from, 0)
		}
	}
	a.usage.in = a.fresh + a.usage.cached + a.written
}

func (a *completion) anthropicDocument(data []byte) error {
	var whole anthropicMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return fmt.Errorf("%w: %v", errNoMessage, err)
	}
	if whole.Type != "message" || whole.StopReason == "" {
		return fmt.Errorf("%w: it lacks type message and stop_reason", errNoMessage)
	}
	a.model, a.stop = whole.Model, whole.StopReason
	a.count(whole.Usage)
	for i, part := range whole.Content {
		b, err := a.addBlock(i)
		if err != nil {
			return err
		}
		b.tool, b.id, b.name = part.Type == "tool_use", part.ID, part.Name
		b.args.Write(part.Input)
		a.text.WriteString(part.Text)
	}
	return nil
}
