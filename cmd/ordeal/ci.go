package main

import (
	"errors"

	"github.com/spf13/cobra"

	"ordeal/controller/report"
)

func newCICmd(streams Streams) *cobra.Command {
	var f scanFlags
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
			s, err := f.fill(cmd, args)
			if err != nil {
				return err
			}
			var files outputs
			files.add(f.jsonOut, "result document", report.JSON)
			if err := files.check(); err != nil {
				return err
			}
			doc, err := f.measure(cmd, s, streams)
			if doc == nil {
				return f.unmeasured(err, streams)
			}
			_, werr := files.write(doc)
			if err = errors.Join(err, werr, f.print(doc, streams)); err != nil {
				return err
			}
			return gate(doc)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}
