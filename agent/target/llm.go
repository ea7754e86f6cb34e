package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"ordeal/agent/llm"
	"ordeal/agent/secret"
	"ordeal/agent/wire"
	"ordeal/metrics"
)

// Chat is the one operation of a language-model endpoint.
const Chat = "chat"

// modelDefaults apply where the target names no model.
var modelDefaults = map[wire.TargetKind]string{wire.OpenAI: "gpt-4o-mini", wire.Anthropic: "claude-opus-5"}

// keyVariables hold the API key where the target gives no reference to one, and
// the provider's own address is used.
var keyVariables = map[wire.TargetKind]string{wire.OpenAI: "OPENAI_API_KEY", wire.Anthropic: "ANTHROPIC_API_KEY"}

// llmTarget is a model behind an OpenAI or Anthropic wire. All virtual users
// share its pool of connections: the wire has no sessions.
type llmTarget struct {
	client *llm.Client
	survey wire.Survey
}

// openLLM prepares the client; it sends nothing. The prompt of the target is one
// prompt, or a JSON array of several, of which an operation takes the one its
// index points to: with a single constant prompt nobody can tell which part of
// the input is a fixed prefix.
func openLLM(t wire.Target) (Target, error) {
	redact := new(secret.Redactor)
	cfg := llm.Config{
		Wire: llm.Wire(t.Kind), Model: t.Model, Header: http.Header{}, Prompts: prompts(t.Prompt),
		MaxTokens: t.MaxTokens, Timeout: t.Timeout, MaxAnswer: t.MaxMessage, Insecure: t.Insecure, Redact: redact,
	}
	if cfg.Model == "" {
		cfg.Model = modelDefaults[t.Kind]
	}
	var problems []error
	resolve := func(what, text string) string {
		value, err := redact.Resolve(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("target: %s: %w", what, err))
		}
		return value
	}
	if cfg.Base = t.Endpoint; secret.HasReference(t.Endpoint) {
		cfg.Base = resolve("base URL", t.Endpoint)
	}
	redact.AddURL(cfg.Base)
	for _, h := range t.Headers {
		cfg.Header.Add(h.Name, resolve("header "+h.Name, h.Value))
	}
	if t.APIKey != "" {
		cfg.Key = resolve("API key", t.APIKey)
	} else {
		cfg.Key = os.Getenv(keyVariables[t.Kind])
	}
	if cfg.Key == "" && cfg.Base == "" && !authorizes(cfg.Header) {
		problems = append(problems, fmt.Errorf("target: no API key for %s: set %s, or name a reference to the key", t.Kind, keyVariables[t.Kind]))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	client, err := llm.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return &llmTarget{client: client, survey: wire.Survey{Name: string(t.Kind) + ":" + cfg.Model, Version: cfg.Model, ReportsUsage: true}}, nil
}

// prompts reads one prompt, or a JSON array of them.
func prompts(text string) []string {
	if text == "" {
		return nil
	}
	var several []string
	if json.Unmarshal([]byte(text), &several) == nil && len(several) > 0 {
		return several
	}
	return []string{text}
}

func authorizes(h http.Header) bool {
	return h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" || h.Get("Api-Key") != ""
}

// Survey names the model. It offers no tools; whether usage is really reported
// shows in the answers.
func (t *llmTarget) Survey(context.Context) (*wire.Survey, error) {
	survey := t.survey
	return &survey, nil
}

// Session returns a user of the shared client.
func (t *llmTarget) Session(context.Context, int) (Session, error) { return llmSession{t.client}, nil }

// Alive asks for the list of models. A server without one answers 404, and
// lives. Nothing is ever restarted.
func (t *llmTarget) Alive(ctx context.Context) (alive, restarted bool, exit string) {
	return t.client.Alive(ctx), false, ""
}

// Virtual is false: the time is spent.
func (t *llmTarget) Virtual() bool { return false }

// Close drops the idle connections.
func (t *llmTarget) Close(context.Context) error {
	t.client.Close()
	return nil
}

type llmSession struct{ client *llm.Client }

// Call sends the prompt that the arguments hold (prompt or messages, max_tokens), or
// else the operation's. The tool is of no meaning here.
func (s llmSession) Call(ctx context.Context, c Call) metrics.Exchange {
	x := s.client.Ask(ctx, c.Op, c.Args).Exchange
	if !c.Keep {
		x.Text = ""
	}
	return x
}
