package target

import (
	"context"
	"fmt"

	"ordeal/agent/wire"
)

// Open connects to a target. The connection itself may be made on first use; an
// error means that this target can never be reached as it is described.
func Open(ctx context.Context, t wire.Target) (Target, error) {
	switch t.Kind {
	case wire.Mock:
		return openMock(t)
	}
	return nil, fmt.Errorf("target: unknown kind %q: want one of %s, %s, %s, %s", t.Kind, wire.Mock, wire.MCP, wire.OpenAI, wire.Anthropic)
}
