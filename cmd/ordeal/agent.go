package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/cmd/internal/agentcmd"
	"ordeal/cmd/internal/cli"
	"ordeal/faultproxy/schedule"
)

// newAgentCmd is ordeal-agent as a verb, for those who have one binary.
func newAgentCmd(streams Streams) *cobra.Command {
	cmd := agentcmd.New("ordeal agent")
	cmd.AddCommand(newPermissionsCmd(streams))
	return cmd
}

func newPermissionsCmd(streams Streams) *cobra.Command {
	var name string
	var pools []string
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "Print the least an agent's NATS user must be allowed",
		Long: `Permissions prints the block for an agent's user in a nats.conf: with it, the
agent can take the units of its pools, answer for them and be spoken to. It
cannot read results or runs, hand out units, control a run or speak as another
agent. deploy/nats/nats.conf shows where it goes.

A pool's queue has the digest of the fault schedule in its name: print the
block anew for a release that draws other faults. '*' as name or pool allows
any.`,
		Example: `  ordeal agent permissions --name eu-1 --pool default
  ordeal agent permissions --name '*' --pool '*'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			queues, err := agentQueues(name, pools)
			if err != nil {
				return err
			}
			return printPermissions(streams.Out, name, pools, queues)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the agent, as in its --name")
	cmd.Flags().StringSliceVar(&pools, "pool", []string{wire.DefaultPool}, "`pools` it serves, repeatable (default: "+wire.DefaultPool+")")
	cmd.Flags().Lookup("pool").DefValue = "[]" // help has it in words
	return cmd
}

// agentQueues checks the names and returns the queues of the pools.
func agentQueues(name string, pools []string) (queues []string, err error) {
	if name == "" {
		return nil, errors.New("no agent: give its --name, or '*' for any")
	}
	if name != "*" {
		if err := wire.CheckName("--name", name); err != nil {
			return nil, err
		}
	}
	for _, pool := range pools {
		if pool == "*" {
			queues = append(queues, pool)
			continue
		}
		if err := wire.CheckName("--pool", pool); err != nil {
			return nil, err
		}
		queues = append(queues, wire.QueueName(pool, schedule.Digest()))
	}
	return queues, nil
}

func printPermissions(w io.Writer, name string, pools, queues []string) error {
	publish, subscribe := wire.Permissions(name, queues)
	var b strings.Builder
	fmt.Fprintf(&b, "# agent %s of pool %s, ordeal %s\npermissions {\n", name, strings.Join(pools, ", "), cli.Version)
	for _, list := range []struct {
		verb     string
		subjects []string
	}{{"publish", publish}, {"subscribe", subscribe}} {
		fmt.Fprintf(&b, "  %s { allow: [\n", list.verb)
		for _, s := range list.subjects {
			fmt.Fprintf(&b, "    %q\n", s)
		}
		b.WriteString("  ] }\n")
	}
	b.WriteString("  allow_responses { max: 1, expires: \"2m\" }\n}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
