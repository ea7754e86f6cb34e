package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ordeal/agent/wire"
	"ordeal/controller/spec"
)

// scanFlags are the flags of scan and ci, bound straight to a Spec. What a flag
// cannot hold as it stands is kept as text and parsed by fill.
type scanFlags struct {
	spec       spec.Spec
	file       string
	probes     string
	phases     string
	toolArgs   string
	verifyArgs string
	headers    []string
	env        []string
	fleet      fleetFlags
	jsonOut    string
	json       bool
	quiet      bool
	verbose    bool
}

// bind defines the flags. The file flag and the target are not in a scan.yaml's
// own vocabulary; everything else is.
func (f *scanFlags) bind(fs *pflag.FlagSet) {
	fs.SortFlags = false // help lists them in this order: what, how much, faults, reach, output
	f.spec = spec.Default()
	s := &f.spec
	f.bindTool(fs, "scan.yaml")
	fs.StringVar(&f.probes, "probes", "all", "comma list of "+strings.Join(spec.AllProbes, ", "))
	fs.StringVar(&f.phases, "phases", "all", "comma list of "+strings.Join(spec.AllPhases, ", "))
	fs.IntVar(&s.Requests, "requests", 0, "requests per probe and per level (default 100; 5 for LLM targets)")
	fs.IntVar(&s.Concurrency, "concurrency", s.Concurrency, "ceiling of the concurrency ramp")
	fs.Float64Var(&s.Rate, "rate", 0, "open loop: arrivals per second for the latency probe (0 = closed loop)")
	fs.IntVar(&s.MaxInFlight, "max-in-flight", s.MaxInFlight, "open loop: arrivals beyond this many calls in flight are dropped and counted")
	durationVar(fs, &s.LevelDuration, "level-duration", "how long latency, each concurrency level and the degradation pass last, in place of --requests (0 = by count)")
	fs.IntVar(&s.Warmup, "warmup", s.Warmup, "unmeasured requests before each measurement")
	durationVar(fs, &s.Timeout, "timeout", "limit of one call")
	durationVar(fs, &s.ScanTimeout, "scan-timeout", "limit of the whole scan (default: the larger of 1m and timeout x requests x 4, plus 16 x level-duration)")
	durationVar(fs, &s.Target.StartTimeout, "start-timeout", "limit of starting a server and shaking hands")
	fs.Float64Var(&s.FaultRate, "fault-rate", s.FaultRate, "total probability that a call is faulted, 0 to below 1")
	fs.IntVar(&s.MaxRetries, "max-retries", s.MaxRetries, "retries of a disrupted operation")
	durationVar(fs, &s.BackoffMax, "backoff-max", "longest wait before a rate-limited retry (0 = never wait)")
	durationVar(fs, &s.BackoffBudget, "backoff-budget", "total of such waits per probe, and per level of the ramp")
	fs.StringVar(&s.Seed, "seed", s.Seed, "seed of all draws")
	fs.BoolVar(&s.AllowMutating, "allow-mutating", false, "second key: call tools that change state, and inject lost responses")
	fs.StringVar(&s.VerifyTool, "verify-tool", "", "read-only tool that shows the state a mutating tool writes")
	fs.StringVar(&f.verifyArgs, "verify-args", "", "its arguments, a JSON object (default {})")
	fs.StringVar(&s.VerifyCount, "verify-count", "", "dotted path to the list of entries in its answer (default: the only list)")
	fs.IntVar(&s.ContractTools, "contract-tools", s.ContractTools, "how many tools get malformed calls")
	fs.IntVar(&s.ContractCases, "contract-cases", s.ContractCases, "malformed calls per tool at most")
	f.bindReach(fs)
	fs.StringVar(&s.Policy, "policy", "", "policy file (default: built in; see ordeal policy)")
	f.bindFleet(fs)
	f.bindOutput(fs)
}

// bindTool defines what to call.
func (f *scanFlags) bindTool(fs *pflag.FlagSet, file string) {
	fs.StringVarP(&f.file, "file", "f", "", "read settings from a "+file+"; flags win")
	fs.StringVar(&f.spec.Tool, "tool", "", "tool to call (default: the first known to be read-only)")
	fs.StringVar(&f.toolArgs, "tool-args", "", "its arguments, a JSON object (default: synthesized from its schema)")
}

// bindReach defines how to reach the target, and what it costs.
func (f *scanFlags) bindReach(fs *pflag.FlagSet) {
	s := &f.spec
	fs.StringArrayVar(&f.headers, "header", nil, "HTTP header 'Name: value', repeatable; $VAR and ${env:VAR} are resolved by the agent")
	fs.StringArrayVar(&f.env, "env", nil, "environment NAME=value of a stdio server, repeatable")
	fs.StringVar(&s.Target.Endpoint, "base-url", "", "endpoint of an openai: or anthropic: compatible server")
	fs.StringVar(&s.Target.APIKey, "api-key", "", "the key, or better a reference to it, such as '${env:MY_KEY}' (default: the provider's own variable)")
	fs.StringVar(&s.Target.Prompt, "prompt", "", "prompt for an LLM target")
	fs.StringVar(&s.Target.Body, "body", "", "body of an http-post: target, JSON or text; {op_id} in it is the operation's own")
	fs.StringVar(&s.Target.Protocol, "protocol", "", "pin the MCP revision, such as 2025-11-25 or 2026-07-28 (default: negotiate)")
	fs.Float64Var(&s.PriceIn, "price-in", 0, "USD per million input tokens")
	fs.Float64Var(&s.PriceOut, "price-out", 0, "USD per million output tokens")
	fs.StringVar(&s.PriceFile, "price-file", "", "YAML or JSON file of prices by model")
}

func (f *scanFlags) bindFleet(fs *pflag.FlagSet) {
	fs.IntVar(&f.spec.Agents, "agents", f.spec.Agents, "in-process agents")
	f.fleet.bind(fs)
}

func (f *scanFlags) bindOutput(fs *pflag.FlagSet) {
	fs.StringVar(&f.jsonOut, "json-out", "", "write the result document to this file")
	fs.BoolVar(&f.json, "json", false, "print the result document on stdout instead of the scorecard")
	fs.BoolVar(&f.quiet, "quiet", false, "print the verdict line only")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show every caveat")
}

// fill merges scan.yaml under the flags and returns the validated spec.
func (f *scanFlags) fill(cmd *cobra.Command, args []string) (*spec.Spec, error) {
	if err := f.gather(cmd, args); err != nil {
		return nil, err
	}
	s := &f.spec
	s.Probes, s.Phases = list(f.probes, spec.AllProbes), list(f.phases, spec.AllPhases)
	if f.verifyArgs != "" {
		s.VerifyArgs = json.RawMessage(f.verifyArgs)
	}
	if cmd.Flags().Changed("requests") && s.Requests == 0 {
		return nil, errors.New("--requests is 0: want at least 1")
	}
	return s, errors.Join(f.reach(), s.Validate())
}

// gather takes in the target and the settings of a file.
func (f *scanFlags) gather(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		f.spec.TargetText = args[0]
	}
	if f.file != "" {
		if err := f.readFile(cmd.Flags()); err != nil {
			return err
		}
	}
	if f.spec.TargetText == "" {
		return fmt.Errorf("no target: write %s TARGET (a URL, a quoted command, mock:PROFILE, openai:MODEL, anthropic:MODEL)", cmd.CommandPath())
	}
	if f.toolArgs != "" {
		f.spec.ToolArgs = json.RawMessage(f.toolArgs)
	}
	return nil
}

// readFile sets every flag that the command line left alone.
func (f *scanFlags) readFile(fs *pflag.FlagSet) error {
	data, err := os.ReadFile(f.file)
	if err != nil {
		return fmt.Errorf("read --file: %w", err)
	}
	known := []string{"target"}
	fs.VisitAll(func(fl *pflag.Flag) {
		if fl.Name != "file" && fl.Name != "help" {
			known = append(known, fl.Name)
		}
	})
	settings, err := spec.File(f.file, data, known)
	if err != nil {
		return err
	}
	var problems []error
	for _, set := range settings {
		if err := f.apply(fs, set); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %s: %w", f.file, set.Line, set.Key, err))
		}
	}
	return errors.Join(problems...)
}

func (f *scanFlags) apply(fs *pflag.FlagSet, set spec.Setting) error {
	if set.Key == "target" {
		if f.spec.TargetText == "" {
			f.spec.TargetText = strings.Join(set.Values, " ")
		}
		return nil
	}
	fl := fs.Lookup(set.Key)
	if fl.Changed {
		return nil
	}
	if set.Key == "probes" || set.Key == "phases" {
		set.Values = []string{strings.Join(set.Values, ",")}
	}
	for _, v := range set.Values {
		if err := fs.Set(set.Key, v); err != nil {
			return err
		}
	}
	return nil
}

// reach parses headers and environment. Their values never appear in an error.
func (f *scanFlags) reach() error {
	var problems []error
	t := &f.spec.Target
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" || strings.ContainsAny(name, " \t\r\n") {
			problems = append(problems, errors.New("--header wants 'Name: value', for example 'Authorization: Bearer $TOKEN'"))
			continue
		}
		t.Headers = append(t.Headers, wire.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	for _, e := range f.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			problems = append(problems, errors.New("--env wants NAME=value, for example LOG_LEVEL=debug or TOKEN=${env:TOKEN}"))
			continue
		}
		t.Env = append(t.Env, wire.EnvVar{Name: name, Value: value})
	}
	return errors.Join(problems...)
}

// list splits a comma list; all means every name, in the order they run.
func list(text string, all []string) []string {
	if text == "all" {
		return all
	}
	var out []string
	for _, w := range strings.Split(text, ",") {
		if w = strings.TrimSpace(w); w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
