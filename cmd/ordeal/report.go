package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ordeal/controller/report"
)

func newReportCmd(streams Streams) *cobra.Command {
	var format string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Render a stored result document in another format",
		Example: `  ordeal scan mock:degraded --json-out scan.json
  ordeal report scan.json --format markdown`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("read result: %w", err)
			}
			defer in.Close()
			doc, err := report.ParseJSON(in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			switch format {
			case "scorecard":
				return report.Scorecard(streams.Out, doc, report.ScorecardOptions{Color: colored(streams.Out), Verbose: verbose})
			case "report", "markdown":
				return report.Markdown(streams.Out, doc)
			case "agents-md":
				return report.AgentsMD(streams.Out, doc, nil, time.Now())
			case "json":
				return report.JSON(streams.Out, doc)
			}
			return fmt.Errorf("--format is %q: want scorecard, report, agents-md or json", format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "scorecard", "scorecard, report (Markdown), agents-md or json")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show every caveat")
	return cmd
}
