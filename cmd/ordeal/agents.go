package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/roster"
	"ordeal/faultproxy/schedule"
)

const (
	// setUpWait bounds the set-up of a fleet, and readWait reading its registry: the
	// server does not answer what a user may not do. Together they stay below 5 s.
	setUpWait = 2 * time.Second
	readWait  = 2500 * time.Millisecond
	// firstWait is how long the agents of a fleet that has just been set up may take
	// to appear: they try every second or so.
	firstWait = 3 * time.Second
	// clocksWait bounds the measurement of all clocks.
	clocksWait = 10 * time.Second
)

// errMayNotRead tells a login that the server does not answer.
var errMayNotRead = errors.New("this user may not read the fleet registry: log in as the controller")

func newAgentsCmd(streams Streams) *cobra.Command {
	var link cli.LinkFlags
	var selects []string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents of a fleet",
		Long: `Agents lists the agents of a fleet: what they do, who is refused and why. Load
is the cores in use of those there are; clock is the agent's clock minus this
machine's, measured now, with the bound within which it lies; seen is how long
ago the agent was heard of.

Log in as the controller: agents of a new fleet wait for one to set it up, which
this does.

Exit codes: 0 listed, also when there is no agent; 2 no server, or not allowed.`,
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
			return printAgents(streams.Out, listed, time.Now(), verbose)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	link.Bind(fs, true)
	fs.StringArrayVar(&selects, "select", nil, "list only agents with this `label=value`, repeatable; zone=eu|us for either")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	fs.BoolVarP(&verbose, "verbose", "v", false, "show versions and the units in hand too")
	return cmd
}

// seenAgent is a member, and why its clock could not be measured.
type seenAgent struct {
	roster.Member
	clockErr error
}

// lookAround connects, sets the fleet up if it is not, reads the registry and
// measures every clock.
func lookAround(ctx context.Context, link *cli.LinkFlags) ([]seenAgent, error) {
	b, err := link.Connect(ctx, "ordeal agents", "")
	if err != nil {
		return nil, err
	}
	defer b.Close()
	setUp(ctx, b)
	r, err := openRegistry(ctx, b)
	switch {
	case errors.Is(err, bus.ErrNoRegistry): // nor may this user set one up
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer r.Close()
	if len(r.All()) == 0 {
		_, _ = r.Wait(ctx, wire.DefaultPool, roster.Selector{}, 1, firstWait) // whoever is there is listed
	}
	ctx, cancel := context.WithTimeout(ctx, clocksWait)
	defer cancel()
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

// setUp does what the first scan would: agents that may not themselves wait for a
// controller to do it. A user who may only look is refused, and looks.
func setUp(ctx context.Context, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, setUpWait)
	defer cancel()
	if b.Setup(ctx, bus.Files) == nil {
		_ = b.OpenQueue(ctx, wire.QueueName(wire.DefaultPool, schedule.Digest()))
	}
}

func openRegistry(ctx context.Context, b *bus.Bus) (*roster.Roster, error) {
	limited, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	r, err := roster.Open(limited, b)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, errMayNotRead
	}
	return r, err
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
