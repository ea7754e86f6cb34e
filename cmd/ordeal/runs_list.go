package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/lead"
)

func (c *runsCmd) newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs of a fleet, the youngest first",
		Long: `List shows the runs of a fleet, the youngest first. A running one whose
controller does not answer is shown as silent: it may be paused or cut off; one
whose controller is gone as orphaned: ordeal runs resume goes on with it.`,
		Example: `  ordeal runs list --nats nats://127.0.0.1:4222
  ordeal runs list --json | jq -r '.runs[] | select(.controller == "gone").id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := c.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer b.Close()
			all, err := allRuns(cmd.Context(), b)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				fmt.Fprintln(c.streams.Err, "no runs here: start one with ordeal scan and the same --nats")
			}
			seen := lookAtRuns(cmd.Context(), b, all)
			if c.asJSON {
				return printRunsJSON(c.streams.Out, seen)
			}
			return printRuns(c.streams.Out, seen)
		},
	}
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print JSON")
	return cmd
}

// seenRun is a record, and what shows of its controller.
type seenRun struct {
	*wire.Run
	controller lead.Sign // empty for a run that is over
}

// looksAtOnce bounds how many controllers are asked at the same time.
const looksAtOnce = 64

// lookAtRuns asks for the controllers of the runs that have one.
func lookAtRuns(ctx context.Context, b *bus.Bus, all []*wire.Run) []seenRun {
	seen := make([]seenRun, len(all))
	room := make(chan struct{}, looksAtOnce)
	var looks sync.WaitGroup
	for i, r := range all {
		seen[i].Run = r
		if r.State != wire.Running {
			continue
		}
		room <- struct{}{}
		looks.Go(func() {
			seen[i].controller, _ = lead.Look(ctx, b, r.ID)
			<-room
		})
	}
	looks.Wait()
	return seen
}

// state is that of the run, as far as its controller allows.
func (r *seenRun) state() string {
	switch r.controller {
	case lead.Gone:
		return "orphaned"
	case lead.Silent:
		return "silent"
	}
	return string(r.State)
}

func printRuns(w io.Writer, runs []seenRun) error {
	if len(runs) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tSTATE\tCOMMAND\tTARGET\tSTARTED\tSTAGE\tUNITS\tHOLDER\tVERDICT")
	for i := range runs {
		r := &runs[i]
		holder := ""
		if r.State == wire.Running {
			holder = r.Holder
		}
		cells := []string{r.ID, r.state(), r.Command, r.Target, clock(r.Started), r.Stage, r.units(), holder, short(cmp.Or(r.Verdict, r.Reason))}
		for i, cell := range cells {
			cells[i] = printable(cmp.Or(cell, "-"))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// verdictWidth is how much of a verdict or a reason a list shows.
const verdictWidth = 60

// short is the beginning of a text.
func short(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > verdictWidth {
		return string(r[:verdictWidth-1]) + "…"
	}
	return text
}

func (r *seenRun) units() string {
	if r.Units == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Done, r.Units)
}
