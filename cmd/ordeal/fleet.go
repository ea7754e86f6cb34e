package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/cmd/internal/fleet"
	"ordeal/controller"
	"ordeal/controller/guard"
	"ordeal/controller/lead"
	"ordeal/controller/roster"
	"ordeal/metrics/prom"
)

// fleetFlags say which agents work for a run, and what ends it early.
type fleetFlags struct {
	flags      *pflag.FlagSet // they are among these
	link       cli.LinkFlags
	pool       string
	selects    []string
	minAgents  int
	waitAgents time.Duration
	by         string
	leaseTTL   time.Duration
	stopWhen   []string
	maxCalls   int64
	maxCost    float64
	metrics    string
}

func (f *fleetFlags) bind(fs *pflag.FlagSet) {
	f.link.Bind(fs, false)
	f.flags = fs
	fs.StringVar(&f.pool, "pool", wire.DefaultPool, "pool of agents to use (default: "+wire.DefaultPool+")")
	fs.Lookup("pool").DefValue = "" // help has it in words
	fs.StringArrayVar(&f.selects, "select", nil, "use only agents with this `label=value`, repeatable; zone=eu|us for either")
	fs.IntVar(&f.minAgents, "min-agents", 1, "agents to wait for before the run begins")
	durationVar(fs, &f.waitAgents, "wait-agents", "how long to wait for them (default 5s)")
	fs.StringVar(&f.by, "by", "", "break the results down by this label of the agents, such as zone")
	durationVar(fs, &f.leaseTTL, "lease-ttl", "agents stop that long after they last heard of their controller (default 10s)")
	fs.StringArrayVar(&f.stopWhen, "stop-when", nil, "end the run when this holds: 'error_rate>0.5/10s', 'p95>2s/30s'; repeatable")
	fs.Int64Var(&f.maxCalls, "max-calls", 0, "budget of calls of the whole fleet (0 = none)")
	fs.Float64Var(&f.maxCost, "max-cost", 0, "budget in USD, for LLM targets (0 = none); the calls in flight may overshoot it")
	fs.StringVar(&f.metrics, "metrics-addr", "", "serve /metrics, /healthz, /readyz at this `address`, such as :9090")
}

// maxLease bounds how long agents may work on without their controller.
const maxLease = time.Hour

// options puts the flags into the options of a run.
func (f *fleetFlags) options(opt *controller.Options) error {
	var problems []error
	var err error
	if opt.Select, err = roster.ParseSelector(f.selects); err != nil {
		problems = append(problems, fmt.Errorf("--select: %w", err))
	}
	for _, text := range f.stopWhen {
		c, err := guard.ParseCondition(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("--stop-when: %w", err))
			continue
		}
		opt.StopWhen = append(opt.StopWhen, c)
	}
	switch {
	case f.minAgents < 1:
		problems = append(problems, fmt.Errorf("--min-agents is %d: want at least 1", f.minAgents))
	case f.leaseTTL != 0 && (f.leaseTTL < lead.MinTTL || f.leaseTTL > maxLease):
		problems = append(problems, fmt.Errorf("--lease-ttl is %v: want %v to %v", f.leaseTTL, lead.MinTTL, maxLease))
	case f.waitAgents < 0:
		problems = append(problems, fmt.Errorf("--wait-agents is %v: want 0 (default 5s) or more", f.waitAgents))
	case f.maxCalls < 0:
		problems = append(problems, fmt.Errorf("--max-calls is %d: want 1 or more, or 0 for no budget", f.maxCalls))
	case !(f.maxCost >= 0) || math.IsInf(f.maxCost, 0):
		problems = append(problems, fmt.Errorf("--max-cost is %v: want more than 0, or 0 for no budget", f.maxCost))
	case !f.link.Given() && len(f.selects) > 0:
		problems = append(problems, errors.New("--select chooses among the agents of a fleet: give --nats too"))
	case !f.link.Given() && f.minAgents > 1:
		problems = append(problems, errors.New("--min-agents waits for the agents of a fleet: give --nats too, or --agents for in-process ones"))
	case !f.link.Given() && f.by != "":
		problems = append(problems, errors.New("--by divides the agents of a fleet: give --nats too"))
	case f.link.Given() && f.flags.Changed("agents"):
		problems = append(problems, errors.New("--agents starts in-process agents: with --nats use --min-agents"))
	}
	if err := wire.CheckName("--pool", f.pool); err != nil {
		problems = append(problems, err)
	}
	if f.by != "" {
		if err := wire.CheckLabel(f.by, "x"); err != nil {
			problems = append(problems, fmt.Errorf("--by: %w", err))
		}
	}
	opt.Pool, opt.MinAgents, opt.WaitAgents, opt.By, opt.LeaseTTL = f.pool, f.minAgents, f.waitAgents, f.by, f.leaseTTL
	opt.MaxCalls, opt.MaxCost = f.maxCalls, f.maxCost
	return errors.Join(problems...)
}

// join connects to the fleet: an embedded one of n agents, or the one of --nats.
// Literal secrets do not travel to a remote fleet.
func (f *fleetFlags) join(ctx context.Context, opt *controller.Options, streams Streams) (stop func() error, err error) {
	if !f.link.Given() {
		opt.Pool = wire.DefaultPool
		capacity := 0
		if opt.Spec.Concurrency > agent.DefaultCapacity { // one agent must be able to hold a whole level
			capacity = opt.Spec.Concurrency
		}
		e, err := fleet.Start(ctx, opt.Spec.Agents, capacity, cli.Version)
		if err != nil {
			return nil, err
		}
		opt.Bus = e.Bus
		return e.Stop, nil
	}
	if err := referencesOnly(&opt.Spec.Target); err != nil {
		return nil, err
	}
	f.link.Messages = func(text string) { fmt.Fprintln(streams.Err, text) }
	b, err := f.link.Connect(ctx, "ordeal "+opt.Command, "")
	if err != nil {
		return nil, err
	}
	opt.Bus = b
	opt.Began = func(run string) { fmt.Fprintln(streams.Err, "run "+run) }
	if err := b.Setup(ctx, bus.Files); err != nil {
		b.Close()
		return nil, err
	}
	return func() error { b.Close(); return nil }, nil
}

// serve serves the metrics of a run when that was asked for.
func (f *fleetFlags) serve(ctx context.Context, opt *controller.Options) (stop func() error, err error) {
	if f.metrics == "" {
		return func() error { return nil }, nil
	}
	opt.Meter = prom.NewController()
	ready := func() error {
		if !opt.Bus.Connected() {
			return errors.New("no connection to NATS")
		}
		return nil
	}
	s, err := prom.Serve(ctx, prom.Options{Addr: f.metrics, Version: cli.Version, Ready: ready}, opt.Meter)
	if err != nil {
		return nil, err
	}
	return s.Stop, nil
}

// ended gives the end of a run its exit code.
func ended(err error) error {
	var stopped *controller.Stopped
	var halted *lead.Halted
	switch {
	case errors.As(err, &stopped) && !stopped.Budget:
		return &cli.Exit{Code: cli.Failed, Err: err}
	case errors.As(err, &halted):
		return &cli.Exit{Code: cli.Interrupted, Err: err}
	}
	return err
}
