// Command ordeal puts an MCP server or an LLM endpoint through load, malformed
// calls and faults, and gives a verdict in which every number states its
// denominator.
package main

import (
	"context"
	"os"

	"ordeal/agent/mcp"
	"ordeal/cmd/internal/cli"
	"ordeal/cmd/internal/fleet"
)

// abandon leaves nothing behind when there is no time to close anything.
func abandon() {
	mcp.KillAll()
	fleet.Abandon()
}

func main() {
	streams := Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], streams) }, abandon))
}
