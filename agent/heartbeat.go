package agent

import (
	"context"
	"time"

	"ordeal/agent/wire"
)

// heartbeat renews the agent's entry in the registry. A missed beat is not an
// error: the next one may get through, and the registry notices by itself.
func (a *Agent) heartbeat(ctx context.Context) {
	tick := time.NewTicker(wire.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = a.announce(ctx)
		}
	}
}
