package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

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
whose controller is gone as orphaned: ordeal runs resume goes on with it. Times are
UTC; a column without anything in it is left out, and a terminal shows what fits
its width: ordeal runs show has the whole of a run, with why it ended.`,
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
	rows := [][]string{{"RUN", "STATE", "STARTED", "VERDICT", "TARGET", "STAGE", "UNITS", "HOLDER"}}
	for i := range runs {
		r := &runs[i]
		holder := ""
		if r.State == wire.Running {
			holder = r.Holder
		}
		rows = append(rows, []string{r.ID, r.state(), r.Started.UTC().Format("01-02 15:04"), shortVerdict(r.Verdict), r.Target, r.Stage, r.units(), holder})
	}
	_, err := w.Write(cutLines(tableText(rows), width(w)))
	return err
}

// verdictParts are the words of report.Verdict that a list shows.
var verdictParts = regexp.MustCompile(`^(PASS|FAIL|NO VERDICT|NO SCORE)(?:(?: \(unproven: [^)]*\))?: score ([0-9]+(?:\.[0-9]+)?))?`)

// shortVerdict is a verdict in its word and its score; empty for what is none.
func shortVerdict(text string) string {
	parts := verdictParts.FindStringSubmatch(text)
	if parts == nil {
		return ""
	}
	return strings.TrimSpace(parts[1] + " " + parts[2])
}

// units are those of the stage that a run is in.
func (r *seenRun) units() string {
	if r.Units == 0 || r.State != wire.Running {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Done, r.Units)
}
