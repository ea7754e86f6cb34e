package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ordeal/agent/mcp"
	"ordeal/agent/wire"
)

// Open connects to a target. The connection itself may be made on first use. An
// error means that this target cannot be used as it is described; it is an
// *OpenError where the target is to blame.
func Open(ctx context.Context, t wire.Target) (Target, error) {
	opened, err := open(ctx, t)
	if err == nil {
		return opened, nil
	}
	if f, known := blame(err); known {
		return nil, &OpenError{Cause: f}
	}
	return nil, err
}

func open(ctx context.Context, t wire.Target) (Target, error) {
	switch t.Kind {
	case wire.Mock:
		return openMock(t)
	case wire.MCP:
		return openMCP(ctx, t)
	case wire.OpenAI, wire.Anthropic:
		return openLLM(t)
	case wire.HTTP:
		return openHTTP(t)
	}
	return nil, fmt.Errorf("target: unknown kind %q: want one of %s, %s, %s, %s, %s", t.Kind, wire.Mock, wire.MCP, wire.OpenAI, wire.Anthropic, wire.HTTP)
}

// Explain is what a result says about an error of this package: why a unit
// could not be worked, and whose failure that is.
func Explain(err error) *wire.Failure {
	f, known := blame(err)
	switch {
	case known:
	case errors.Is(err, context.Canceled):
		f = wire.Failure{Class: "cancelled", Message: "stopped before the target answered"}
	default:
		f = wire.Failure{Class: "harness", Message: err.Error()}
	}
	return &f
}

// blame finds the target's part in an error.
func blame(err error) (wire.Failure, bool) {
	if known, ok := errors.AsType[interface {
		error
		Failure() *wire.Failure
	}](err); ok {
		return *known.Failure(), true
	}
	if start, ok := errors.AsType[*mcp.StartError](err); ok {
		message := start.What
		if start.Exit != "" && !strings.Contains(message, start.Exit) {
			message += " (" + start.Exit + ")"
		}
		return wire.Failure{Class: string(start.Class), Message: message, Remedy: start.Remedy, Stderr: start.Stderr}, true
	}
	return wire.Failure{}, false
}
