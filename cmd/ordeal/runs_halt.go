package main

import (
	"cmp"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/lead"
)

func (c *runsCmd) newHalt() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "halt RUN",
		Short: "Stop a run: all agents that can be reached within a second, the others by their lease",
		Long: `Halt stops a run through its controller, which collects what was measured until
then and reports it as partial. When there is no controller, or it does not
answer, halt tells the agents itself; ordeal runs resume goes on with such a run.

Exit codes: 0 halted; 2 no such run, no server, or the run is over.`,
		Example: `  ordeal runs halt last --nats nats://127.0.0.1:4222
  ordeal runs halt 20261201-1015 --reason "database is down"`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRun(cmd, args[0], func(b *bus.Bus, r *wire.Run) error {
				holder, err := lead.Halt(cmd.Context(), b, r.ID, cmp.Or(reason, orderedBy()))
				switch {
				case err != nil:
					return err
				case holder == "":
					fmt.Fprintf(c.streams.Out, "run %s halted: its controller does not answer, so its agents were told; ordeal runs resume %s goes on with it\n", r.ID, r.ID)
				default:
					fmt.Fprintf(c.streams.Out, "run %s halted: its controller, %s, reports what was measured\n", r.ID, printable(holder))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the report (default: who and where from)")
	return cmd
}

// orderedBy names who halts, for the record.
func orderedBy() string {
	name, host := "someone", "somewhere"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return "ordered by " + name + " on " + host
}
