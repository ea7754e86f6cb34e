package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/spec"
)

// runsCmd is what the verbs of ordeal runs share.
type runsCmd struct {
	streams Streams
	link    cli.LinkFlags
	asJSON  bool
}

func newRunsCmd(streams Streams) *cobra.Command {
	c := &runsCmd{streams: streams}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, report, halt and resume the runs of a fleet",
		Long: `Runs looks after the runs of a fleet, whose records and reports are kept for a
week on its NATS servers. RUN is an id, the beginning of one, or last.

A run that is led lives as long as its controller, the process of ordeal scan.
When that is gone, agents stop within the lease, and ordeal runs resume goes on
where it stood: what has been measured is not measured again.`,
		Example: `  ordeal runs list --nats nats://127.0.0.1:4222
  ordeal runs report last --format markdown
  ordeal runs halt 20261201-1015 --reason "database is down"
  ordeal runs resume last`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownVerb(cmd, args[0])
	}
	c.link.Messages = func(text string) { fmt.Fprintln(streams.Err, text) }
	c.link.Bind(cmd.PersistentFlags(), true)
	cmd.PersistentFlags().SortFlags = false
	cmd.AddCommand(c.newList(), c.newShow(), c.newReport(), c.newHalt(), c.newResume())
	return cmd
}

func unknownVerb(cmd *cobra.Command, word string) error {
	var verbs []string
	for _, c := range cmd.Commands() {
		verbs = append(verbs, c.Name())
	}
	hint := ""
	if near := spec.Nearest(word, verbs); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Errorf("unknown verb %q%s: see %s --help", word, hint, cmd.CommandPath())
}

// oneRun wants exactly one RUN.
func oneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s wants one RUN, got %d: an id, the beginning of one, or last; see ordeal runs list", cmd.CommandPath(), len(args))
}

// connect joins the servers of the fleet.
func (c *runsCmd) connect(ctx context.Context, cmd *cobra.Command) (*bus.Bus, error) {
	return c.link.Connect(ctx, cmd.CommandPath(), "")
}

// withRun connects, finds the run that the user means, and works on it.
func (c *runsCmd) withRun(cmd *cobra.Command, word string, work func(*bus.Bus, *wire.Run) error) error {
	b, err := c.connect(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := findRun(cmd.Context(), b, word)
	if err != nil {
		return err
	}
	return work(b, r)
}
