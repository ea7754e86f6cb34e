package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordeal/controller/result"
	"ordeal/testdata/fleettest"
)

// BenchmarkTwentyMillion is a mock scan of 20,000,000 operations over four agent
// processes beside one of a hundredth of that: what memory they take must not
// hang on the number of operations.
func BenchmarkTwentyMillion(b *testing.B) {
	for b.Loop() {
		small, smallAgents, _ := longScan(b, 200_000)
		large, largeAgents, took := longScan(b, 20_000_000)
		b.ReportMetric(20/took.Seconds(), "Mops/s")
		b.ReportMetric(large, "controller-MiB")
		b.ReportMetric(large/small, "controller-ratio")
		b.ReportMetric(largeAgents, "agent-MiB")
		b.ReportMetric(largeAgents/smallAgents, "agent-ratio")
	}
}

// longScan returns the peak memory of the controller and of the largest agent, in
// MiB, and how long the scan took.
func longScan(b *testing.B, requests int) (controller, largest float64, took time.Duration) {
	b.Helper()
	nats := fleettest.StartNATS(b, fleettest.NATSOptions{})
	defer nats.Stop(b)
	agents := make([]*fleettest.Proc, 4)
	for i := range agents {
		agents[i] = fleettest.Agent(b, nats.URL(), fmt.Sprintf("a%d", i+1))
	}
	ordeal, _ := fleettest.Build(b)
	cmd := exec.Command(ordeal, "scan", "mock:healthy", "--requests", fmt.Sprint(requests), "--probes", "latency", "--scan-timeout", "10m", "--nats", nats.URL(), "--min-agents", "4", "--json")
	cmd.Stderr = os.Stderr
	begun := time.Now()
	out, err := cmd.Output()
	took = time.Since(begun)
	if err != nil {
		b.Fatal(err)
	}
	var doc result.Document
	if err := json.Unmarshal(out, &doc); err != nil {
		b.Fatal(err)
	}
	if doc.Run.Calls < int64(requests) || len(doc.Run.Fleet) != 4 && requests > 1_000_000 {
		b.Fatalf("%d calls by %d agents, want %d by 4", doc.Run.Calls, len(doc.Run.Fleet), requests)
	}
	for _, a := range agents {
		largest = max(largest, peak(b, a.Pid()))
		a.Term()
	}
	return float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024, largest, took
}

// peak is the peak resident memory of a process in MiB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	b.Fatal("no peak in the status of the process")
	return 0
}

// BenchmarkGangSkew starts a gang of 32 agents fifty times and reports how far
// apart its first and its last member began.
func BenchmarkGangSkew(b *testing.B) {
	const agents, rounds = 32, 50
	for b.Loop() {
		nats := fleettest.StartNATS(b, fleettest.NATSOptions{})
		setup(b, nats.URL())
		for i := range agents { // a process each, as on a host of many
			startAgents(b, nats.URL(), i, 1)
		}
		out, _, _ := runController(b, "gang", nats.URL(), agents, rounds)
		if len(out.Skews) != rounds || out.Merged != rounds*agents {
			b.Fatalf("%+v: want %d gangs of %d calls", out, rounds, agents)
		}
		slices.Sort(out.Skews)
		slices.Sort(out.Lates)
		b.ReportMetric(float64(out.Skews[rounds/2].Microseconds()), "skew-p50-us")
		b.ReportMetric(float64(out.Skews[rounds-1].Microseconds()), "skew-max-us")
		b.ReportMetric(float64(out.Lates[len(out.Lates)*99/100].Microseconds()), "late-p99-us")
		b.ReportMetric(float64(out.Bound.Microseconds()), "clock-bound-us")
		nats.Stop(b)
	}
}
