// Package agentcmd is the command that joins a fleet and works: ordeal-agent,
// and ordeal agent, which are the same.
//
//	flags ── metrics server ── connection (waits) ── streams and queues, if it may ── agent.Run
package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/faultproxy/schedule"
	"ordeal/metrics/prom"
)

// setupWait bounds the try to create the fleet's streams, which fails slowly for
// an agent that may not.
const setupWait = 2 * time.Second

// refusedSetup is in what is said of a set-up that the server refuses: expected of
// an agent with the permissions that it needs.
const refusedSetup = `Permissions Violation for Publish to "$JS.API.`

// New is the command with the words it is called by.
func New(words string) *cobra.Command {
	var c command
	cmd := &cobra.Command{
		Use:   words[strings.LastIndexByte(words, ' ')+1:],
		Short: "Join a fleet and work the units it is given",
		Long: `Join the fleet on a NATS server and work the units it is given, near the target,
until SIGINT or SIGTERM: then the agent takes nothing new, has --drain-timeout
to finish what it has in hand, gives back what is left, closes every session and
process, and leaves. A second signal leaves at once.

The agent waits for servers that are not there yet. Secrets that work refers to,
as ${env:NAME} and ${file:/path}, are resolved here: set them in this
environment.`,
		Example: "  " + words + ` --nats nats://127.0.0.1:4222 --label zone=eu
  ` + words + ` --nats tls://nats.example.com:4222 --creds agent.creds --pool gpu --metrics-addr :9090`,
		Version:       cli.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	c.link.Bind(fs, true)
	fs.StringVar(&c.opt.ID, "name", defaultName(), "`name`, unique in the fleet (default: host name and process id)")
	fs.StringArrayVar(&c.labels, "label", nil, "`key=value` by which runs select agents, such as zone=eu, repeatable")
	fs.StringSliceVar(&c.opt.Pools, "pool", []string{wire.DefaultPool}, "`pools` to serve, repeatable (default: "+wire.DefaultPool+")")
	fs.IntVar(&c.opt.Capacity, "capacity", 0, fmt.Sprintf("callers to hold at once (0 = as many as fit, at most %d)", agent.DefaultCapacity))
	fs.StringVar(&c.metrics, "metrics-addr", "", "serve /metrics, /healthz and /readyz at this `address`, such as :9090")
	fs.DurationVar(&c.opt.Drain, "drain-timeout", agent.DefaultDrain, "time to finish what is in hand after the first signal")
	fs.Lookup("name").DefValue, fs.Lookup("pool").DefValue = "", "[]" // help has them in words
	return cmd
}

// command is one life of an agent.
type command struct {
	opt     agent.Options
	link    cli.LinkFlags
	labels  []string
	metrics string

	connected atomic.Pointer[bus.Bus]
	joined    atomic.Bool
	trying    atomic.Bool // to set the fleet up, which the server may refuse
}

// run returns nil when ctx ends, whatever was reached by then: an agent that is
// told to leave has done what it should.
func (c *command) run(ctx context.Context, stderr io.Writer) (err error) {
	if err := c.fill(); err != nil {
		return err
	}
	say := line(stderr)
	stop, err := c.serve(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	c.link.Messages = func(text string) {
		if !c.trying.Load() || !strings.Contains(text, refusedSetup) {
			say(text)
		}
	}
	c.link.Reconnected = c.opt.Metrics.Reconnects
	b, err := c.link.Connect(ctx, "ordeal-agent "+c.opt.ID, c.opt.ID)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer b.Close()
	say("connected to " + b.Server())
	c.connected.Store(b)
	c.setUp(ctx, b, say)
	c.opt.Log = say
	c.opt.Ready = func(err error) {
		if err == nil {
			c.joined.Store(true)
			c.trying.Store(false)
			say("agent " + c.opt.ID + " ready")
		}
	}
	if err := unlessEnded(ctx, agent.Run(ctx, b, c.opt)); err != nil {
		return err
	}
	say("agent " + c.opt.ID + " left")
	return nil
}

func unlessEnded(ctx context.Context, err error) error {
	if errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// line writes messages from any goroutine, one a line.
func line(w io.Writer) func(text string) {
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(w, text)
	}
}

// fill completes the options.
func (c *command) fill() error {
	c.opt.Version, c.opt.Digest = cli.Version, schedule.Digest()
	var problems []error
	if err := wire.CheckName("--name", c.opt.ID); err != nil {
		problems = append(problems, err)
	}
	for _, pool := range c.opt.Pools {
		if err := wire.CheckName("--pool", pool); err != nil {
			problems = append(problems, err)
		}
	}
	var err error
	if c.opt.Labels, err = parseLabels(c.labels); err != nil {
		problems = append(problems, err)
	}
	if c.opt.Capacity < 0 {
		problems = append(problems, fmt.Errorf("--capacity is %d: want 1 or more, or 0 for what fits this machine", c.opt.Capacity))
	}
	if c.opt.Drain < 0 {
		problems = append(problems, fmt.Errorf("--drain-timeout is %v: want 0 or more", c.opt.Drain))
	}
	return errors.Join(problems...)
}

// parseLabels reads key=value. One without a value is left out: a template whose
// variable is empty, such as a zone that the cluster does not know, says so.
func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	var problems []error
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if ok && value == "" && wire.CheckLabel(key, "x") == nil {
			continue
		}
		err := wire.CheckLabel(key, value)
		before, twice := labels[key]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("--label %q: want key=value, such as zone=eu", text))
		case err != nil:
			problems = append(problems, fmt.Errorf("--label %q: %w", text, err))
		case twice && before != value:
			problems = append(problems, fmt.Errorf("--label %s is given as %s and as %s: an agent has one value of a label", key, before, value))
		}
		labels[key] = value
	}
	return labels, errors.Join(problems...)
}

// setUp creates the fleet's streams when nobody has yet. An agent that may not
// goes on: it waits for a controller to do it.
func (c *command) setUp(ctx context.Context, b *bus.Bus, say func(string)) {
	if c.queuesStand(ctx, b) {
		return
	}
	c.trying.Store(true) // and agent.Run goes on to, now and then
	limited, cancel := context.WithTimeout(ctx, setupWait)
	defer cancel()
	err := b.Setup(limited, bus.Files)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, context.DeadlineExceeded): // nobody answers what is not allowed
		say("this agent may not set the fleet up: that is left to a controller")
	default:
		say("could not set the fleet up, that is left to a controller: " + err.Error())
	}
}

// queuesStand reports whether the queue of every pool is open.
func (c *command) queuesStand(ctx context.Context, b *bus.Bus) bool {
	limited, cancel := context.WithTimeout(ctx, setupWait)
	defer cancel()
	for _, pool := range c.opt.Pools {
		q, err := b.Queue(limited, wire.QueueName(pool, c.opt.Digest))
		if err != nil {
			return false
		}
		q.Close()
	}
	return true
}

// serve serves the metrics when that was asked for. It goes on while the agent
// drains, which is when they are of interest.
func (c *command) serve(ctx context.Context, say func(string)) (stop func() error, err error) {
	if c.metrics == "" {
		return func() error { return nil }, nil
	}
	c.opt.Metrics = prom.NewAgent(prom.AgentInfo{Version: cli.Version, ID: c.opt.ID, Zone: c.opt.Labels["zone"], Pool: strings.Join(c.opt.Pools, ",")})
	ready := func() error { return c.ready(ctx) }
	s, err := prom.Serve(context.WithoutCancel(ctx), prom.Options{Addr: c.metrics, Version: cli.Version, Ready: ready}, c.opt.Metrics)
	if err != nil {
		return nil, err
	}
	say("metrics on http://" + s.Addr() + "/metrics")
	return s.Stop, nil
}

// ready says why the agent can do no work now.
func (c *command) ready(ctx context.Context) error {
	b := c.connected.Load()
	switch {
	case ctx.Err() != nil:
		return errors.New("draining")
	case b == nil || !b.Connected():
		return errors.New("no connection to NATS")
	case !c.joined.Load():
		return errors.New("waiting for a controller to set the fleet up")
	}
	return nil
}
