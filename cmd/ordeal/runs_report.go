package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/controller/report"
	"ordeal/controller/result"
)

// documentWait bounds reading a document.
const documentWait = 30 * time.Second

// reportFormats are those in which a document can be rendered.
var reportFormats = []string{"scorecard", "report", "markdown", "agents-md", "json"}

func (c *runsCmd) newReport() *cobra.Command {
	var format string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Render the stored report of a run",
		Example: `  ordeal runs report last --nats nats://127.0.0.1:4222
  ordeal runs report 20261201-1015 --format json > result.json`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(reportFormats, format) {
				return fmt.Errorf("--format is %q: want scorecard, report, agents-md or json", format)
			}
			return c.withRun(cmd, args[0], func(b *bus.Bus, r *wire.Run) error {
				doc, err := storedDocument(cmd.Context(), b, r)
				if err != nil {
					return err
				}
				return render(c.streams, doc, format, verbose)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "scorecard", "scorecard, report (Markdown), agents-md or json")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show every caveat")
	return cmd
}

// storedDocument reads the document of a run.
func storedDocument(ctx context.Context, b *bus.Bus, r *wire.Run) (*result.Document, error) {
	if r.Document == "" {
		return nil, fmt.Errorf("run %s has no report: it is %s%s; see ordeal runs show %s", r.ID, r.State, because(r.Reason), r.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, documentWait)
	defer cancel()
	data, err := b.Document(ctx, r.Document)
	if err != nil {
		return nil, fmt.Errorf("report of run %s: %w", r.ID, err)
	}
	doc, err := report.ParseJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("report of run %s: %w", r.ID, err)
	}
	return doc, nil
}

// because puts a reason on the line of what it is the reason for.
func because(reason string) string {
	first, _, _ := strings.Cut(reason, "\n")
	if first == "" {
		return ""
	}
	return " (" + printable(first) + ")"
}

// render prints a document in one of reportFormats.
func render(streams Streams, doc *result.Document, format string, verbose bool) error {
	switch format {
	case "report", "markdown":
		return report.Markdown(streams.Out, doc)
	case "agents-md":
		return report.AgentsMD(streams.Out, doc, nil, time.Now())
	case "json":
		return report.JSON(streams.Out, doc)
	}
	return report.Scorecard(streams.Out, doc, report.ScorecardOptions{Color: colored(streams.Out), Verbose: verbose})
}
