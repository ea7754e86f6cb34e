package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// bodies holds the encoded parts of a request; only their choice differs from
// call to call.
type bodies struct {
	head     []byte   // {"model":…,"stream":true
	tools    []byte   // ,"tools":… or nothing
	limit    int      // tokens
	messages [][]byte // [{…}]
}

func encodeBodies(cfg Config) bodies {
	b := bodies{limit: cfg.MaxTokens}
	b.head = append([]byte(`{"model":`), quote(cfg.Model)...)
	b.head = append(b.head, `,"stream":true`...)
	if cfg.Tools != nil {
		b.tools = append([]byte(`,"tools":`), cfg.Tools...)
	}
	for _, p := range cfg.Prompts {
		b.messages = append(b.messages, userMessage(p))
	}
	return b
}

func userMessage(text string) []byte {
	m := append([]byte(`[{"role":"user","content":`), quote(text)...)
	return append(m, "}]"...)
}

// body builds the request of an operation, see Ask.
func (c *Client) body(op uint64, args []byte) ([]byte, error) {
	b := &c.bodies
	messages, limit := b.messages[op%uint64(len(b.messages))], b.limit
	if len(args) > 0 {
		own, err := parseAsk(args)
		if err != nil {
			return nil, fmt.Errorf("arguments of the call: %w", err)
		}
		if own.messages != nil {
			messages = own.messages
		}
		if own.limit > 0 {
			limit = own.limit
		}
	}
	body := make([]byte, 0, len(b.head)+len(b.tools)+len(messages)+112)
	body = append(body, b.head...)
	body = append(body, `,"`+c.limitName()+`":`...)
	body = strconv.AppendInt(body, int64(limit), 10)
	if c.asksUsage() {
		body = append(body, `,"stream_options":{"include_usage":true}`...)
	}
	body = append(body, b.tools...)
	body = append(body, `,"messages":`...)
	body = append(body, messages...)
	return append(body, '}'), nil
}

// ask is what the arguments of a call replace.
type ask struct {
	messages []byte // nil: nothing
	limit    int    // 0: nothing
}

var errAsk = errors.New(`want an object with "prompt" (a string) or "messages" (an array), and "max_tokens" (above 0)`)

// parseAsk reads the arguments of a call. What it does not know is an error: a
// prompt under a misspelled key would load the target with another one.
func parseAsk(args []byte) (ask, error) {
	var in struct {
		Prompt    *string           `json:"prompt"`
		Messages  []json.RawMessage `json:"messages"`
		MaxTokens *int              `json:"max_tokens"`
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return ask{}, fmt.Errorf("%w: %v", errAsk, err)
	}
	var a ask
	switch {
	case in.Prompt != nil && in.Messages != nil:
		return a, fmt.Errorf("%w: both prompt and messages", errAsk)
	case in.MaxTokens != nil && *in.MaxTokens <= 0:
		return a, fmt.Errorf("%w: max_tokens is %d", errAsk, *in.MaxTokens)
	case in.Messages != nil && len(in.Messages) == 0:
		return a, fmt.Errorf("%w: no message", errAsk)
	case in.Prompt != nil:
		a.messages = userMessage(*in.Prompt)
	case in.Messages != nil:
		a.messages = append([]byte{'['}, bytes.Join(asBytes(in.Messages), []byte{','})...)
		a.messages = append(a.messages, ']')
	}
	if in.MaxTokens != nil {
		a.limit = *in.MaxTokens
	}
	return a, nil
}

func asBytes(raw []json.RawMessage) [][]byte {
	all := make([][]byte, len(raw))
	for i, r := range raw {
		all[i] = r
	}
	return all
}
