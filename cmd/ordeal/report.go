package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ordeal/controller/report"
	"ordeal/controller/result"
)

// loadFormats are those that a load can be shown in besides.
var loadFormats = map[string]func(io.Writer, *result.Document) error{
	"html": report.LoadHTML, "hdr-log": report.HDRLog, "hgrm": report.HGRM, "csv": report.PeriodsCSV,
}

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
			if render, known := loadFormats[format]; known {
				if doc.Load == nil {
					return fmt.Errorf("--format %s is for a load: %s is of ordeal %s", format, args[0], doc.Command)
				}
				return render(streams.Out, doc)
			}
			return fmt.Errorf("--format is %q: want scorecard, report, agents-md or json; of a load html, hdr-log, hgrm or csv as well", format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "scorecard", "scorecard, report (Markdown), agents-md or json; of a load also html, hdr-log, hgrm or csv")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show every caveat")
	return cmd
}
