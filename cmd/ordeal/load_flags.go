package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ordeal/controller/spec"
)

// loadInFlight bounds the open calls of an open loop unless told otherwise.
const loadInFlight = 1000

// loadFlags are the flags of load. What a load shares with a scan is bound as
// there.
type loadFlags struct {
	scanFlags
	load     *spec.Load
	arrivals string
	workload string
	findKnee bool
	knee     spec.Knee

	jsonLines bool
	html      string
	markdown  string
	hdrLog    string
	hgrm      string
	csv       string
}

func (f *loadFlags) bind(fs *pflag.FlagSet) {
	fs.SortFlags = false // help lists them in this order: what, how much, until when, reach, output
	f.spec, f.load, f.knee = spec.Default(), spec.DefaultLoad(), spec.DefaultKnee()
	s, l := &f.spec, f.load
	s.MaxInFlight, s.BackoffMax, s.BackoffBudget = loadInFlight, 0, 0
	f.bindTool(fs, "load.yaml")
	fs.StringVar(&f.workload, "workload", "", "YAML `file` with a mix of tools, arguments and scripts, in place of --tool; see docs/workload.md")
	fs.IntVar(&l.Concurrency, "concurrency", 0, "closed loop: callers that wait for their answers (default 1)")
	fs.Float64Var(&l.Rate, "rate", 0, "open loop: arrivals per second")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "open loop: constant, or poisson for gaps by chance")
	fs.StringVar(&l.Stages, "stages", "", "course of the load, DURATION:LEVEL,…: callers, or arrivals with /s; := stays at a level")
	durationVar(fs, &l.Duration, "duration", "how long the load lasts, warm-up included, or each level of a search (default 10s)")
	fs.Int64Var(&l.Requests, "requests", 0, "how many operations, in place of --duration")
	fs.Var(warmupTime{seconds{&l.WarmupTime}}, "warmup-time", "cut off the start (default a tenth of --duration, at most 10s; 0 with --stages)")
	fs.IntVar(&s.Warmup, "warmup", s.Warmup, "unmeasured calls before the load, of each agent")
	durationVar(fs, &l.Think, "think", "closed loop: how long a caller rests after an answer")
	fs.IntVar(&s.MaxInFlight, "max-in-flight", s.MaxInFlight, "open loop: arrivals beyond this many calls in flight are dropped and counted")
	fs.StringVar(&l.SLO, "slo", "", "what has to be met: p95<500ms,ttft_p95<1s,error_rate<1%")
	fs.BoolVar(&f.findKnee, "find-knee", false, "search for the highest arrival rate that meets the --slo")
	fs.Float64Var(&f.knee.From, "knee-from", f.knee.From, "arrival rate to begin the search with")
	fs.Float64Var(&f.knee.To, "knee-to", f.knee.To, "arrival rate to end it at")
	fs.Float64Var(&f.knee.Precision, "knee-precision", f.knee.Precision, "width of the interval to end it at, over the rate")
	fs.IntVar(&f.knee.Confirmations, "confirmations", f.knee.Confirmations, "runs of twice the duration that have to confirm the rate found")
	durationVar(fs, &s.Timeout, "timeout", "limit of one call")
	durationVar(fs, &s.ScanTimeout, "time-limit", "limit of the whole run (default: what it lasts by plan, with room)")
	durationVar(fs, &s.Target.StartTimeout, "start-timeout", "limit of starting a server and shaking hands")
	durationVar(fs, &s.BackoffMax, "backoff-max", "longest pause when the target reports a quota (default 0: the load goes on)")
	durationVar(fs, &s.BackoffBudget, "backoff-budget", "total of such pauses")
	fs.IntVar(&l.Processes, "processes", l.Processes, "servers to start of a stdio target; the callers are spread over them")
	fs.BoolVar(&l.CheckOutput, "check-output", false, "hold every answer against the tool's outputSchema, which costs more than a call")
	fs.StringVar(&s.Seed, "seed", s.Seed, "seed of all draws")
	fs.BoolVar(&s.AllowMutating, "allow-mutating", false, "second key: call tools that change state")
	f.bindReach(fs)
	f.bindFleet(fs)
	fs.BoolVar(&f.jsonLines, "json-lines", false, "print a line of JSON every second while the load goes on, and the verdict at its end")
	fs.StringVar(&f.html, "html", "", "write a page with charts to this file")
	fs.StringVar(&f.markdown, "report-out", "", "write the report as Markdown to this file")
	fs.StringVar(&f.hdrLog, "hdr-log", "", "write the latencies of each period to this file, an HdrHistogram V2 log")
	fs.StringVar(&f.hgrm, "hgrm", "", "write the percentile distribution to this file, as HdrHistogram's plotter reads it")
	fs.StringVar(&f.csv, "csv", "", "write a row for each period to this file")
	f.bindOutput(fs)
}

// warmupTime is a duration of which 0 differs from not given.
type warmupTime struct{ seconds }

func (w warmupTime) String() string { return "" }

// fill merges the file under the flags and returns the validated spec.
func (f *loadFlags) fill(cmd *cobra.Command, args []string) (*spec.Spec, error) {
	if err := f.gather(cmd, args); err != nil {
		return nil, err
	}
	fs := cmd.Flags()
	var problems []error
	for _, zero := range []string{"concurrency", "rate", "requests", "duration"} {
		if fl := fs.Lookup(zero); fl.Changed && (fl.Value.String() == "0" || fl.Value.String() == "0s") {
			problems = append(problems, fmt.Errorf("--%s is 0: want more", zero))
		}
	}
	for _, name := range []string{"slo", "stages", "workload"} {
		if fl := fs.Lookup(name); fl.Changed && strings.TrimSpace(fl.Value.String()) == "" {
			problems = append(problems, fmt.Errorf("--%s is empty: leave it out, or say what is wanted", name))
		}
	}
	if fs.Changed("max-in-flight") && f.load.Rate == 0 && !f.findKnee && !strings.Contains(f.load.Stages, "/s") {
		problems = append(problems, errors.New("--max-in-flight bounds the calls of an open loop: give --rate, or --stages with /s"))
	}
	if fs.Changed("warmup-time") && f.load.WarmupTime < 0 {
		problems = append(problems, fmt.Errorf("--warmup-time is %v: want 0 or more", f.load.WarmupTime))
	}
	switch f.arrivals {
	case "constant":
	case "poisson":
		f.load.Poisson = true
	default:
		problems = append(problems, fmt.Errorf("--arrivals is %q: want constant or poisson", f.arrivals))
	}
	for _, name := range []string{"knee-from", "knee-to", "knee-precision", "confirmations"} {
		if fs.Changed(name) && !f.findKnee {
			problems = append(problems, fmt.Errorf("--%s is for --find-knee", name))
		}
	}
	if f.findKnee {
		f.load.Knee = &f.knee
	}
	f.spec.Load = f.load
	problems = append(problems, f.readWorkload())
	return &f.spec, errors.Join(errors.Join(problems...), f.reach(), f.spec.Validate())
}

// readWorkload reads the file of --workload; the files it names lie beside it.
func (f *loadFlags) readWorkload() error {
	switch {
	case f.workload == "":
		return nil
	case f.spec.Tool != "" || f.toolArgs != "":
		return errors.New("--workload says what is called: leave out --tool and --tool-args")
	case f.load.CheckOutput:
		return errors.New("--check-output is for --tool: the steps of a workload are not checked")
	}
	data, err := os.ReadFile(f.workload)
	if err != nil {
		return fmt.Errorf("read --workload: %w", err)
	}
	open := func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(f.workload), name)
		}
		return os.ReadFile(name)
	}
	f.load.Workload, err = spec.ParseWorkload(f.workload, data, open)
	if err == nil && f.load.Workload.Seed == "" {
		f.load.Workload.Seed = f.spec.Seed
	}
	return err
}
