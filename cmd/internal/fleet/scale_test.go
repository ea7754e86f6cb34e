package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/dispatch"
	"ordeal/controller/lead"
	"ordeal/controller/merge"
	"ordeal/controller/plan"
	"ordeal/controller/roster"
	"ordeal/faultproxy/schedule"
	"ordeal/testdata/fleettest"
)

// The benchmarks of a fleet have their agents, their controller and their server
// in processes of their own: this test binary again, told by role what to be.
const (
	roleVar   = "ORDEAL_BENCH_ROLE" // agents, controller, gang
	urlVar    = "ORDEAL_BENCH_URL"
	countVar  = "ORDEAL_BENCH_COUNT"  // agents, units or gangs
	agentsVar = "ORDEAL_BENCH_AGENTS" // to wait for, or the number of the first
)

func TestMain(m *testing.M) {
	count, _ := strconv.Atoi(os.Getenv(countVar))
	agents, _ := strconv.Atoi(os.Getenv(agentsVar))
	cli.TuneGC() // as in the processes these stand for
	switch url := os.Getenv(urlVar); os.Getenv(roleVar) {
	case "agents":
		exit(beAgents(url, agents, count))
	case "controller":
		exit(beController(url, agents, manyUnits(count)))
	case "gang":
		exit(beController(url, agents, gangStages(agents, count)...))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beAgents runs count agents, numbered from first, each on a connection of its
// own, until standard input ends.
func beAgents(url string, first, count int) error {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	ready := make(chan error, count)
	for i := range count {
		id := fmt.Sprintf("sim-%05d", first+i)
		wg.Go(func() {
			b, err := bus.Connect(ctx, bus.Link{URLs: url, Name: id, Agent: id})
			if err != nil {
				ready <- err
				return
			}
			defer b.Close()
			err = agent.Run(ctx, b, agent.Options{ID: id, Version: "bench", Digest: schedule.Digest(), Capacity: 10,
				Labels: map[string]string{"zone": fmt.Sprintf("z%d", i%4)}, Ready: func(err error) { ready <- err }})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	for range count {
		if err := <-ready; err != nil {
			stop()
			return err
		}
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	stop()
	wg.Wait()
	return nil
}

// outcome is what the controller's process measured.
type outcome struct {
	Registered int
	Wait       time.Duration // until all agents were in the registry
	Stage      time.Duration
	Longest    time.Duration // between two results
	Results    int
	Calls      int64
	Merged     int64           // calls of the merged tallies
	Skews      []time.Duration // of gangs: between the first and the last start
	Lates      []time.Duration // of their members: start behind the time it was due
	Bound      time.Duration   // of the error of a skew, at most
}

// beController runs stages.
func beController(url string, agents int, stages ...*plan.Stage) error {
	ctx := context.Background()
	b, err := bus.Connect(ctx, bus.Link{URLs: url, Name: "controller"})
	if err != nil {
		return err
	}
	defer b.Close()
	leader, err := lead.Create(ctx, lead.Options{Bus: b, Record: wire.Run{ID: fmt.Sprintf("bench-%d", os.Getpid())}})
	if err != nil {
		return err
	}
	defer leader.Close()
	fleet, err := roster.Open(ctx, b)
	if err != nil {
		return err
	}
	defer fleet.Close()
	begun := time.Now()
	members, err := fleet.Wait(ctx, wire.DefaultPool, roster.Selector{}, agents, time.Minute)
	if err != nil {
		return err
	}
	out := outcome{Registered: len(members), Wait: time.Since(begun)}
	run := leader.Record().ID
	d, err := dispatch.New(ctx, dispatch.Options{Bus: b, Roster: fleet, Run: run, Pool: wire.DefaultPool, Generation: 1, Sure: leader.Sure,
		LeaseTTL: wire.LeaseTTL, Record: func(context.Context, wire.GangRecord) error { return nil }, Sent: func(string) int64 { return 0 }})
	if err != nil {
		return err
	}
	s := &counting{outcome: &out, merger: merge.Merger{Run: run}, last: time.Now()}
	begun = time.Now()
	for _, st := range stages {
		s.stage = st.Name
		if err := d.Stage(ctx, st, s); err != nil {
			return err
		}
	}
	out.Stage = time.Since(begun)
	summary := s.merger.Summary()
	out.Calls = summary.Calls
	for _, st := range stages {
		out.Merged += summary.Stage(st.Name).Tally.Calls()
	}
	if err := d.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

const benchOps = 10

func manyUnits(n int) *plan.Stage {
	st := &plan.Stage{Name: "many", Probe: "latency", Units: make([]wire.Unit, n)}
	whole := wire.Range{To: uint64(n * benchOps)}
	for i := range st.Units {
		st.Units[i] = wire.Unit{Kind: wire.LoadUnit, Target: wire.Target{Kind: wire.Mock, Profile: "healthy", Seed: "1", Timeout: time.Second},
			Call: wire.CallSpec{Tools: []wire.ToolCall{{Name: "echo", Args: []byte(`{"query":"x"}`)}}},
			Ops:  wire.Range{From: uint64(i * benchOps), To: uint64((i + 1) * benchOps)}, Load: &wire.Load{Workers: 1, Level: 1, Stage: whole}}
	}
	return st
}

// gangStages are gang stages in which every agent makes one call.
func gangStages(agents, rounds int) []*plan.Stage {
	var stages []*plan.Stage
	for i := range rounds {
		st := manyUnits(1)
		whole := wire.Range{To: uint64(agents)}
		st.Name, st.Gang, st.Units[0].Ops = fmt.Sprintf("gang-%d", i), true, whole
		st.Units[0].Load = &wire.Load{Workers: agents, Level: agents, Stage: whole}
		stages = append(stages, st)
	}
	return stages
}

// counting merges as a run does, and measures the gaps between results.
type counting struct {
	*outcome
	merger merge.Merger
	stage  string
	last   time.Time
}

func (c *counting) Planned(units []wire.Unit) {
	planned := make([]merge.Planned, len(units))
	for i := range units {
		planned[i] = merge.Planned{Unit: units[i].ID, Operations: plan.Operations(&units[i])}
	}
	c.merger.Stage(c.stage, "latency", 1, planned)
}

func (c *counting) Add(r *wire.Result) {
	now := time.Now()
	c.Longest, c.last = max(c.Longest, now.Sub(c.last)), now
	if c.merger.Add(r) {
		c.Results++
	}
}

func (c *counting) Gang(g merge.Gang) {
	var starts, bounds []time.Duration
	for _, m := range g.Agents {
		if m.Start == nil {
			continue // it failed: the count of calls shows it
		}
		starts = append(starts, time.Duration(m.Start.At)-m.Offset)
		bounds = append(bounds, m.Bound)
		c.Lates = append(c.Lates, time.Duration(m.Start.At-m.Start.Due))
	}
	slices.Sort(bounds)
	c.Skews = append(c.Skews, slices.Max(starts)-slices.Min(starts))
	c.Bound = max(c.Bound, bounds[len(bounds)-1]+bounds[len(bounds)-2])
}

func (c *counting) Lost(string) {}

// role starts this binary in a role and returns once it says ready, or at once
// for a controller.
func role(b *testing.B, env ...string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	return cmd
}

// startAgents starts a process of count agents, numbered from first.
func startAgents(b *testing.B, url string, first, count int) {
	b.Helper()
	cmd := role(b, roleVar+"=agents", urlVar+"="+url, agentsVar+"="+strconv.Itoa(first), countVar+"="+strconv.Itoa(count))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	if _, err := stdout.Read(make([]byte, 6)); err != nil {
		b.Fatalf("the agents did not get ready: %v", err)
	}
}

// runController returns what the controller measured and used.
func runController(b *testing.B, what, url string, agents, units int) (outcome, *syscall.Rusage, time.Duration) {
	b.Helper()
	cmd := role(b, roleVar+"="+what, urlVar+"="+url, countVar+"="+strconv.Itoa(units), agentsVar+"="+strconv.Itoa(agents))
	begun := time.Now()
	stdout, err := cmd.Output()
	wall := time.Since(begun)
	if err != nil {
		b.Fatal(err)
	}
	var out outcome
	if err := json.Unmarshal(stdout, &out); err != nil {
		b.Fatalf("%s: %v", stdout, err)
	}
	return out, cmd.ProcessState.SysUsage().(*syscall.Rusage), wall
}

// benchFleet runs one stage of units on a fleet of agents in one process.
func benchFleet(b *testing.B, agents, units int) {
	for b.Loop() {
		nats := fleettest.StartNATS(b, fleettest.NATSOptions{})
		setup(b, nats.URL())
		startAgents(b, nats.URL(), 0, agents)
		out, used, wall := runController(b, "controller", nats.URL(), agents, units)
		if out.Results != units || out.Merged != int64(units*benchOps) || out.Registered < agents {
			b.Fatalf("%+v: want %d results of %d calls each", out, units, benchOps)
		}
		cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
		b.ReportMetric(float64(units)/out.Stage.Seconds(), "units/s")
		b.ReportMetric(cpu.Seconds()/wall.Seconds(), "controller-cores")
		b.ReportMetric(float64(used.Maxrss)/1024, "controller-MiB")
		b.ReportMetric(out.Wait.Seconds(), "register-s")
		b.ReportMetric(float64(out.Longest.Milliseconds()), "longest-gap-ms")
		nats.Stop(b)
	}
}

func setup(b *testing.B, url string) {
	b.Helper()
	c, err := bus.Connect(b.Context(), bus.Link{URLs: url, Name: "setup"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.Setup(b.Context(), bus.Files); err != nil {
		b.Fatal(err)
	}
	if err := c.OpenQueue(b.Context(), wire.QueueName(wire.DefaultPool, schedule.Digest())); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkThousandAgents(b *testing.B) { benchFleet(b, 1000, 10_000) }

// BenchmarkDispatch is how fast units go out and their results come back and are
// merged, with file storage.
func BenchmarkDispatch(b *testing.B) { benchFleet(b, 8, 50_000) }

// BenchmarkMillionUnits is the same for long: a pause that comes now and then shows.
func BenchmarkMillionUnits(b *testing.B) { benchFleet(b, 8, 1_000_000) }
