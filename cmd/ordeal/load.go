package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ordeal/cmd/internal/cli"
	"ordeal/controller"
	"ordeal/controller/report"
	"ordeal/controller/result"
)

func newLoadCmd(streams Streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load TARGET",
		Short: "Load alone: closed and open loop, stages, mixes, search for the knee",
		Long: `Load sends load to a target and measures what comes back.

  closed loop  --concurrency N callers that each wait for their answer
  open loop    --rate R arrivals per second, whatever the target does; latency
               counts from the moment a call was due, so a stall shows
  stages       --stages 30s:10,2m:200,30s:0 goes from level to level in straight
               lines (callers, or arrivals with 200/s); 30s:=50/s stays at one
  search       --find-knee: the highest arrival rate that meets the --slo

TARGET is a URL (MCP over Streamable HTTP; sse+https://… for the old SSE
transport), a quoted command (MCP over stdio), mock:PROFILE, openai:MODEL,
anthropic:MODEL, http-get:URL or http-post:URL. Only tools known to be read-only
are called unless --allow-mutating is given; --workload mixes several.

Load exits 0 once it has measured, and 1 when a --rate was not sustained. With
--slo or --find-knee it exits 1 when that was not met (or no rate met it) and 2
when that could not be told, because our own side was the limit or the evidence
does not carry an answer. A run that ends
early writes what it measured, marked partial: 1 after a stop condition, 2 after
a spent budget or time limit, 130 after a signal or ordeal runs halt.`,
		Example: `  ordeal load https://api.example.com/mcp --tool search --tool-args '{"query": "x"}' --concurrency 32 --duration 30s
  ordeal load http://localhost:3001/mcp --rate 200 --arrivals poisson --duration 1m --slo 'p95<500ms,error_rate<1%'
  ordeal load http://localhost:3001/mcp --stages 30s:10,2m:200,30s:0 --html load.html
  ordeal load http://localhost:3001/mcp --find-knee --slo 'p95<300ms,error_rate<1%'
  ordeal load openai:gpt-4o-mini --base-url http://localhost:8000/v1 --workload prompts.yaml --rate 5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runLoad(cmd, args, &f, streams)
		},
	}
	f.bind(cmd.Flags())
	return cmd
}

func runLoad(cmd *cobra.Command, args []string, f *loadFlags, streams Streams) error {
	s, err := f.fill(cmd, args)
	if err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	opt, err := f.options(s, cmd.Name(), invocation(cmd, s), streams)
	if err != nil {
		return err
	}
	doc, err := f.send(cmd, &opt, streams)
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
	if err = errors.Join(err, werr); err != nil {
		return err
	}
	if passed := doc.Verdict.Passed; s.Load.SLO != "" || passed != nil && !*passed {
		return gate(doc)
	}
	return nil
}

// send sends the load with the embedded fleet or the one of --nats.
func (f *loadFlags) send(cmd *cobra.Command, opt *controller.Options, streams Streams) (*result.Document, error) {
	leave, err := f.fleet.join(cmd.Context(), opt, streams)
	if err != nil {
		return nil, err
	}
	stop, err := f.fleet.serve(cmd.Context(), opt)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	end := f.watch(opt, streams)
	doc, err := controller.Run(cmd.Context(), *opt)
	end()
	return doc, errors.Join(ended(err), stop(), leave())
}

// print shows the result on stdout; a stream of lines ends with the document's
// verdict as one more.
func (f *loadFlags) print(doc *result.Document, streams Streams) error {
	if f.jsonLines && !f.json {
		return lastLine(streams.Out, doc)
	}
	return f.scanFlags.print(doc, streams)
}

// files are the outputs besides stdout.
func (f *loadFlags) files() (outputs, error) {
	if f.jsonLines && f.json {
		return nil, &cli.Exit{Code: cli.Unmeasured, Err: errors.New("--json and --json-lines both write to stdout: give one of them; --json-out writes the document to a file")}
	}
	var files outputs
	files.add(f.jsonOut, "result document", report.JSON)
	files.add(f.html, "page", report.LoadHTML)
	files.add(f.markdown, "report", report.Markdown)
	files.add(f.hdrLog, "histogram log", report.HDRLog)
	files.add(f.hgrm, "percentile distribution", report.HGRM)
	files.add(f.csv, "table of periods", report.PeriodsCSV)
	return files, files.check()
}
