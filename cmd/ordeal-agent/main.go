// Command ordeal-agent joins a fleet and works the units it is given, until
// SIGINT or SIGTERM: then it lets what it has in hand come to an end, publishes
// what was measured, closes every session and process, and leaves.
package main

import (
	"context"
	"os"

	"ordeal/agent/mcp"
	"ordeal/cmd/internal/agentcmd"
	"ordeal/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(func(ctx context.Context) error { return agentcmd.New("ordeal-agent").ExecuteContext(ctx) }, mcp.KillAll))
}
