package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ordeal/controller/report"
	"ordeal/controller/result"
)

func newCICmd(streams Streams) *cobra.Command {
	var f scanFlags
	var quiet, json bool
	cmd := &cobra.Command{
		Use:   "ci TARGET",
		Short: "The same scan as a gate: exit 0 passed, 1 failed, 2 no verdict",
		Long: `Ci scans like ordeal scan and gates on the verdict: exit 0 when it passed, 1
when it failed, 2 when nothing could be measured or the evidence carries no
verdict. It writes no file but --json-out and never prompts.`,
		Example: `  ordeal ci mock:healthy
  ordeal ci "python -m my_server" --policy production.yaml --requests 120 --json-out scan.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files outputs
			files.add(f.jsonOut, "result document", report.JSON)
			if err := files.check(); err != nil {
				return err
			}
			doc, err := f.measure(cmd, args, "ci", streams)
			if doc == nil {
				return f.unmeasured(err, json, streams)
			}
			_, werr := files.write(doc)
			if err = errors.Join(err, werr, printGate(doc, quiet, json, f.verbose, streams)); err != nil {
				return err
			}
			return gate(doc)
		},
	}
	fs := cmd.Flags()
	f.bind(fs)
	fs.BoolVar(&quiet, "quiet", false, "print the verdict line only")
	fs.BoolVar(&json, "json", false, "print the result document on stdout instead of the scorecard")
	return cmd
}

func printGate(doc *result.Document, quiet, json, verbose bool, streams Streams) error {
	switch {
	case json:
		return report.JSON(streams.Out, doc)
	case quiet:
		_, err := fmt.Fprintln(streams.Out, report.Verdict(doc))
		return err
	}
	return report.Scorecard(streams.Out, doc, report.ScorecardOptions{Color: terminal(streams.Out), Verbose: verbose})
}
