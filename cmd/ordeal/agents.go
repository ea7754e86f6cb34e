package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/roster"
)

// agentsWait bounds the look at a fleet: registry and clocks.
const agentsWait = 10 * time.Second

func newAgentsCmd(streams Streams) *cobra.Command {
	var link cli.LinkFlags
	var selects []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents of a fleet: what they do, how far their clocks are off, who is refused and why",
		Long: `Agents lists the agents of a fleet. The clock column is the agent's clock minus
this machine's, measured now, with the bound within which it lies.

Exit codes: 0 listed, also when there is no agent; 2 no server.`,
		Example: `  ordeal agents --nats nats://127.0.0.1:4222
  ordeal agents --select zone=eu --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sel, err := roster.ParseSelector(selects)
			if err != nil {
				return fmt.Errorf("--select: %w", err)
			}
			all, err := lookAround(cmd.Context(), &link)
			if err != nil {
				return err
			}
			listed := matching(all, sel)
			if len(listed) == 0 {
				fmt.Fprintln(streams.Err, emptyHint(len(all), sel))
			}
			if asJSON {
				return printAgentsJSON(streams.Out, listed)
			}
			return printAgents(streams.Out, listed, time.Now())
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	link.Bind(fs, true)
	fs.StringArrayVar(&selects, "select", nil, "list only agents with this `label=value`, repeatable; zone=eu|us for either")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// seenAgent is a member, and why its clock could not be measured.
type seenAgent struct {
	roster.Member
	clockErr error
}

// lookAround connects, reads the registry and measures every clock.
func lookAround(ctx context.Context, link *cli.LinkFlags) ([]seenAgent, error) {
	b, err := link.Connect(ctx, "ordeal agents", "")
	if err != nil {
		return nil, err
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(ctx, agentsWait)
	defer cancel()
	r, err := roster.Open(ctx, b)
	if errors.Is(err, bus.ErrNoRegistry) { // a server that has never seen a fleet
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var ids []string
	for _, m := range r.All() {
		ids = append(ids, m.ID)
	}
	readings := r.Clock(ctx, ids)
	var all []seenAgent
	for _, m := range r.All() {
		all = append(all, seenAgent{m, readings[m.ID].Err})
	}
	return all, nil
}

func matching(all []seenAgent, sel roster.Selector) []seenAgent {
	var fit []seenAgent
	for _, a := range all {
		if sel.Matches(a.Labels) {
			fit = append(fit, a)
		}
	}
	return fit
}

// emptyHint says what to do about a list without agents.
func emptyHint(others int, sel roster.Selector) string {
	if others > 0 {
		return fmt.Sprintf("no agent has %s; %d others are there: see ordeal agents without --select", sel, others)
	}
	return "no agents here: start some with ordeal-agent and the same --nats"
}
