package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller"
	"ordeal/controller/result"
	"ordeal/controller/spec"
)

// resumeFlags are the outputs of the command that began the run, and its gauges.
type resumeFlags struct {
	scan scanFlags
	out  scanOutputs
}

func (c *runsCmd) newResume() *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Carry on a run whose controller is gone",
		Long: `Resume leads a run on from where its controller vanished: stages whose results
are stored are not measured again. It is refused while the controller lives; one
that does not answer is replaced once its lease is over. Whatever was ordered at
the start (target, probes, policy, budget) stays; outputs are given anew.

Exit codes: those of the command that began the run; 2 as well when it is led,
over or not known.`,
		Example: `  ordeal runs resume last --nats nats://127.0.0.1:4222
  ordeal runs resume 20261201-1015 --json-out result.json`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := f.out.files(&f.scan)
			if err != nil {
				return err
			}
			return c.withRun(cmd, args[0], func(b *bus.Bus, r *wire.Run) error {
				f.out.gate = f.out.gate || r.Command == "ci"
				f.scan.spec.Target = targetOf(r)
				doc, err := f.resume(cmd, b, r, c.streams)
				if doc == nil {
					return f.scan.unmeasured(err, c.streams)
				}
				return f.finish(doc, err, files, c.streams)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.scan.jsonOut, "json-out", "", "write the result document to this file")
	fs.BoolVar(&f.scan.json, "json", false, "print the result document on stdout instead of the scorecard")
	fs.BoolVar(&f.scan.quiet, "quiet", false, "print the verdict line only")
	fs.BoolVarP(&f.scan.verbose, "verbose", "v", false, "show every caveat")
	fs.StringVar(&f.out.output, "output", "scorecard", "scorecard, report, agents-md or all")
	fs.StringVar(&f.out.report, "report-out", "REPORT.md", "file of --output report")
	fs.StringVar(&f.out.agents, "agents-md-out", "AGENTS.md", "file of --output agents-md")
	fs.BoolVar(&f.out.gate, "gate", false, "exit 1 on a failed verdict and 2 without one, as a run of ordeal ci does anyway")
	fs.StringVar(&f.scan.fleet.metrics, "metrics-addr", "", "serve /metrics, /healthz and /readyz at this `address`, such as :9090, during the run")
	return cmd
}

// targetOf is the target of a run as far as its record tells, for refusals.
func targetOf(r *wire.Run) wire.Target {
	if t, err := spec.ParseTarget(r.Target); err == nil {
		return t
	}
	return wire.Target{URI: r.Target}
}

// resume leads the run to its end.
func (f *resumeFlags) resume(cmd *cobra.Command, b *bus.Bus, r *wire.Run, streams Streams) (*result.Document, error) {
	opt := controller.Options{Bus: b}
	stop, err := f.scan.fleet.serve(cmd.Context(), &opt)
	if err != nil {
		return nil, err
	}
	bar := newProgress(streams.Err, time.Now)
	doc, err := controller.Resume(cmd.Context(), controller.ResumeOptions{Bus: b, Run: r.ID, Version: cli.Version, Meter: opt.Meter, Observe: bar.observer(),
		Warnings: func(text string) { fmt.Fprintln(streams.Err, "warning: "+text) }})
	bar.done()
	return doc, errors.Join(ended(err), stop())
}

// finish writes and prints a document as scan does, and gives the exit code.
func (f *resumeFlags) finish(doc *result.Document, err error, files outputs, streams Streams) error {
	written, werr := files.write(doc)
	werr = errors.Join(werr, f.scan.print(doc, streams)) // what could not be saved can still be read
	if !f.scan.quiet {
		for _, line := range written {
			fmt.Fprintln(streams.Err, line)
		}
	}
	if err = errors.Join(err, werr); err != nil {
		return err
	}
	if passed := doc.Verdict.Passed; f.out.gate || doc.Load != nil && (doc.Load.SLO != "" || passed != nil && !*passed) {
		return gate(doc)
	}
	return nil
}
