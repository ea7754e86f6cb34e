// Command ordeal-agent joins a fleet and works the units it is given, until
// SIGINT or SIGTERM: then it stops what it has in hand, publishes what was
// measured, closes every session and process, and leaves.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ordeal/agent"
	"ordeal/agent/mcp"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/faultproxy/schedule"
)

func main() {
	os.Exit(cli.Main(func(ctx context.Context) error { return newCmd().ExecuteContext(ctx) }, mcp.KillAll))
}

func newCmd() *cobra.Command {
	var opt agent.Options
	var link cli.LinkFlags
	cmd := &cobra.Command{
		Use:           "ordeal-agent",
		Short:         "Join a fleet and work",
		Example:       "  ordeal-agent --nats nats://127.0.0.1:4222 --label zone=eu",
		Version:       cli.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := link.Connect(cmd.Context(), "ordeal-agent "+opt.ID, opt.ID)
			if err != nil {
				return err
			}
			defer b.Close()
			if err := b.Setup(cmd.Context(), bus.Files); err != nil {
				return err // whoever comes first creates the streams
			}
			opt.Version, opt.Digest = cli.Version, schedule.Digest()
			opt.Ready = func(err error) {
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "agent %s ready\n", opt.ID)
				}
			}
			return agent.Run(cmd.Context(), b, opt)
		},
	}
	fs := cmd.Flags()
	link.Bind(fs, true)
	fs.StringVar(&opt.ID, "name", defaultName(), "name, unique in the fleet")
	fs.StringToStringVar(&opt.Labels, "label", nil, "label key=value, repeatable")
	fs.StringSliceVar(&opt.Pools, "pool", nil, "pools to serve (default: default)")
	return cmd
}

// defaultName is the host's name, with what no agent name may hold replaced,
// and the process.
func defaultName() string {
	host, _ := os.Hostname()
	return agentName(host, os.Getpid())
}

func agentName(host string, pid int) string {
	fit := strings.Map(func(r rune) rune {
		if wire.CheckName("", string(r)) != nil {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%s-%d", cmp.Or(fit, "agent"), pid)
}
