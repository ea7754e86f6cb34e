package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ordeal/cmd/internal/cli"
	"ordeal/controller"
	"ordeal/controller/report"
	"ordeal/controller/result"
	"ordeal/controller/spec"
)

// scanOutputs are where a scan writes besides stdout.
type scanOutputs struct {
	output string // scorecard, report, agents-md, all
	report string
	agents string
	gate   bool
}

func newScanCmd(streams Streams) *cobra.Command {
	var f scanFlags
	var o scanOutputs
	cmd := &cobra.Command{
		Use:   "scan TARGET",
		Short: "Full reliability scan: baseline, chaos, behavior, verdict",
		Long: `Scan measures a target in three phases and judges it by a policy.

  baseline  latency, cost, concurrency ramp, contract (malformed calls)
  chaos     the same calls under injected faults, and recovery by retries
  behavior  analysis of the recovery's trajectories

TARGET is a URL (MCP over Streamable HTTP; sse+https://… for the old SSE
transport), a quoted command (MCP over stdio), mock:PROFILE, openai:MODEL or
anthropic:MODEL. Only tools known to be read-only are called unless
--allow-mutating is given.

A mock answers at once, on a virtual clock. A default scan of a real server
takes about a minute, because injected timeouts are really waited out;
--timeout 3s shortens it.

Scan exits 0 once it has measured, whatever the verdict; --gate makes a failed
verdict exit 1 and a missing one exit 2. A run that ends early writes what it
measured, marked partial, and exits 1 after a stop condition, 2 after a spent
budget or timeout, 130 after a signal or ordeal runs halt.`,
		Example: `  ordeal scan mock:degraded --requests 40 --concurrency 16 --fault-rate 0.3
  ordeal scan "npx -y @modelcontextprotocol/server-everything" --tool echo --tool-args '{"message": "hi"}'
  ordeal scan https://api.example.com/mcp --header 'Authorization: Bearer $TOKEN' --output all
  ordeal scan openai:gpt-4o-mini --base-url http://localhost:8000/v1 --price-in 0.15 --price-out 0.6`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runScan(cmd, args, &f, &o, streams)
		},
	}
	fs := cmd.Flags()
	f.bind(fs)
	fs.StringVar(&o.output, "output", "scorecard", "scorecard, report, agents-md or all")
	fs.StringVar(&o.report, "report-out", "REPORT.md", "file of --output report")
	fs.StringVar(&o.agents, "agents-md-out", "AGENTS.md", "file of --output agents-md")
	fs.BoolVar(&o.gate, "gate", false, "exit 1 on a failed verdict and 2 without one")
	return cmd
}

func runScan(cmd *cobra.Command, args []string, f *scanFlags, o *scanOutputs, streams Streams) error {
	s, err := f.fill(cmd, args)
	if err != nil {
		return err
	}
	files, err := o.files(f)
	if err != nil {
		return err
	}
	doc, err := f.measure(cmd, s, streams)
	if doc == nil {
		return f.unmeasured(err, streams)
	}
	written, werr := files.write(doc)
	werr = errors.Join(werr, f.print(doc, streams)) // what could not be saved can still be read
	if !f.quiet {
		for _, line := range written {
			fmt.Fprintln(streams.Err, line)
		}
	}
	switch {
	case err != nil:
		return errors.Join(err, werr)
	case werr != nil:
		return werr
	case o.gate:
		return gate(doc)
	}
	return nil
}

// files lists what is to be written, and fails now on what could not be.
func (o *scanOutputs) files(f *scanFlags) (outputs, error) {
	var files outputs
	files.add(f.jsonOut, "result document", report.JSON)
	md, agents := false, false
	switch o.output {
	case "scorecard":
	case "report":
		md = true
	case "agents-md":
		agents = true
	case "all":
		md, agents = true, true
	default:
		return nil, fmt.Errorf("--output is %q: want scorecard, report, agents-md or all", o.output)
	}
	if md {
		files.add(o.report, "report", report.Markdown)
	}
	if agents {
		files.addFixGuide(o.agents)
	}
	return files, files.check()
}

// print shows the result on stdout.
func (f *scanFlags) print(doc *result.Document, streams Streams) error {
	switch {
	case f.json:
		return report.JSON(streams.Out, doc)
	case f.quiet:
		_, err := fmt.Fprintln(streams.Out, report.Verdict(doc))
		return err
	}
	return report.Scorecard(streams.Out, doc, report.ScorecardOptions{Color: colored(streams.Out), Verbose: f.verbose})
}

// gate turns a verdict into an exit code.
func gate(doc *result.Document) error {
	switch passed := doc.Verdict.Passed; {
	case passed == nil:
		return &cli.Exit{Code: cli.Unmeasured}
	case !*passed:
		return &cli.Exit{Code: cli.Failed}
	}
	return nil
}

// measure runs the scan on the embedded fleet or on the one of --nats. The
// document may be there beside an error: partial, after an interrupt, a halt, a
// stop condition or a timeout.
func (f *scanFlags) measure(cmd *cobra.Command, s *spec.Spec, streams Streams) (*result.Document, error) {
	opt, err := f.options(s, cmd.Name(), invocation(cmd, s), streams)
	if err != nil {
		return nil, err
	}
	leave, err := f.fleet.join(cmd.Context(), &opt, streams)
	if err != nil {
		return nil, err
	}
	stop, err := f.fleet.serve(cmd.Context(), &opt)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	bar := newProgress(streams.Err, time.Now)
	opt.Observe = bar.observer()
	doc, err := controller.Run(cmd.Context(), opt)
	bar.done()
	return doc, errors.Join(ended(err), stop(), leave())
}
