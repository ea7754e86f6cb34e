package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"ordeal/agent"
	"ordeal/agent/wire"
	"ordeal/agent/wire/bus"
	"ordeal/cmd/internal/cli"
	"ordeal/controller/lead"
	"ordeal/controller/result"
	"ordeal/faultproxy/schedule"
)

func TestPickRun(t *testing.T) {
	all := []*wire.Run{{ID: "20261201-101500-aa"}, {ID: "20261201-101500-ab"}, {ID: "20261130-080000-cc"}, {ID: "20261201-101500-a"}}
	for word, want := range map[string]string{
		"last":               "20261201-101500-aa",
		"20261130":           "20261130-080000-cc",
		"20261130-080000-cc": "20261130-080000-cc",
		"20261201-101500-a":  "20261201-101500-a", // an id before the beginning of others
		"20261201-101500-ab": "20261201-101500-ab",
		"20261201":           `run "20261201" is not one but 3: 20261201-101500-aa, 20261201-101500-ab, 20261201-101500-a; write more of it`,
		"2026":               `run "2026" is not one but 4: 20261201-101500-aa, 20261201-101500-ab, 20261130-080000-cc and 1 more; write more of it`,
		"20261130-080000-cd": `no run "20261130-080000-cd" (did you mean 20261130-080000-cc?): see ordeal runs list`,
		"lst":                `no run "lst" (did you mean last?): see ordeal runs list`,
		"x":                  `no run "x": see ordeal runs list`,
		"":                   `no run "": see ordeal runs list`,
	} {
		r, err := pickRun(all, word)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = r.ID
		}
		if got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
	if _, err := pickRun(nil, "last"); err == nil || err.Error() != `no run "last": there is no run on these servers` {
		t.Errorf("without runs: %v", err)
	}
}

func TestPrintRuns(t *testing.T) {
	started := time.Date(2026, 12, 1, 10, 15, 0, 0, time.UTC)
	led := &wire.Run{ID: "r3", State: wire.Running, Command: "scan", Target: "mock:a\x1b[2J", Started: started, Stage: "latency", Done: 3, Units: 8, Holder: "h pid 1"}
	runs := []seenRun{{led, lead.Answers}, {led, lead.Gone}, {led, lead.Silent},
		{&wire.Run{ID: "r2", State: wire.Finished, Command: "ci", Target: "mock:b", Started: started, Done: 8, Units: 8, Holder: "h pid 1", Verdict: "FAIL: score 84.7 below 85, failed: error_rate."}, ""},
		{&wire.Run{ID: "r1", State: wire.Failed, Command: "scan", Target: "mock:c", Started: started, Holder: "h pid 1", Reason: strings.Repeat("no agents ", 9) + "\nhere"}, ""}}
	var out strings.Builder
	if err := printRuns(&out, runs); err != nil {
		t.Fatal(err)
	}
	want := `RUN  STATE     STARTED      VERDICT    TARGET      STAGE    UNITS  HOLDER
r3   running   12-01 10:15  -          mock:a?[2J  latency  3/8    h pid 1
r3   orphaned  12-01 10:15  -          mock:a?[2J  latency  3/8    h pid 1
r3   silent    12-01 10:15  -          mock:a?[2J  latency  3/8    h pid 1
r2   finished  12-01 10:15  FAIL 84.7  mock:b
r1   failed    12-01 10:15  -          mock:c
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := printRuns(&out, runs[3:4]); err != nil {
		t.Fatal(err)
	}
	want = "RUN  STATE     STARTED      VERDICT    TARGET\nr2   finished  12-01 10:15  FAIL 84.7  mock:b\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("runs that are over (-want +got):\n%s", diff)
	}
}

func TestShortVerdict(t *testing.T) {
	for text, want := range map[string]string{
		"PASS: score 100, pass score 85.":                              "PASS 100",
		"PASS (unproven: p95_latency_ms, x): score 91, pass score 85.": "PASS 91",
		"PASS: no check failed.":                                       "PASS",
		"FAIL: score 84.7 below 85, failed: error_rate.":               "FAIL 84.7",
		"FAIL: score 71.":                                              "FAIL 71",
		"FAIL: failed: p95_latency_ms.":                                "FAIL",
		"NO VERDICT: too little was measured. Partial run.":            "NO VERDICT",
		"NO SCORE: no threshold could be evaluated.":                   "NO SCORE",
		"": "",
	} {
		if got := shortVerdict(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A table cut to a terminal's width shows where it was cut.
func TestCutLines(t *testing.T) {
	for width, want := range map[int]string{0: "αβγδε\nab\n", 5: "αβγδε\nab\n", 4: "αβγ…\nab\n"} {
		if got := string(cutLines([]byte("αβγδε\nab\n"), width)); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

// What show prints as the command can be pasted into a shell.
func TestQuotedCommand(t *testing.T) {
	got := quoted([]string{"scan", "mock:a", "--stop-when", "error_rate>0.5/10s", "--header", "A: ${env:TOKEN}"})
	if want := "scan mock:a --stop-when 'error_rate>0.5/10s' --header 'A: ${env:TOKEN}'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// runsVerb runs ordeal runs.
func runsVerb(ctx context.Context, url string, args ...string) (stdout string, err error) {
	var out bytes.Buffer
	cmd := newRunsCmd(Streams{Out: &out, Err: os.Stderr})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "--nats", url))
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}

// prepareFleet creates on a server what the first scan would: an agent is ready
// once it has found that.
func prepareFleet(t *testing.T, url string) {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url, Name: "prepare"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(b.Setup(t.Context(), bus.Files), b.OpenQueue(t.Context(), wire.QueueName(wire.DefaultPool, schedule.Digest()))); err != nil {
		t.Fatal(err)
	}
}

// helper is an agent inside this process, reached over a socket.
func helper(t *testing.T, url string) {
	t.Helper()
	prepareFleet(t, url)
	b, err := bus.Connect(t.Context(), bus.Link{URLs: url, Name: "helper", Agent: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan error, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- agent.Run(ctx, b, agent.Options{ID: "helper", Version: cli.Version, Digest: schedule.Digest(), Ready: func(err error) { ready <- err }})
	}()
	t.Cleanup(func() { cancel(); <-ended; b.Close() })
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
}

// startScan runs a scan in a process of its own and returns the id of its run.
func startScan(t *testing.T, url string, args ...string) (cmd *exec.Cmd, run string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], append(append([]string{"scan"}, args...), "--nats", url, "--json-out", t.TempDir()+"/scan.json")...)
	cmd.Env = append(os.Environ(), "ORDEAL_TEST_MAIN=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var line [256]byte
	n, err := stderr.Read(line[:])
	text, ok := strings.CutPrefix(string(line[:n]), "run ")
	if err != nil || !ok {
		t.Fatalf("the scan says %q, %v; want its run", line[:n], err)
	}
	run, _, _ = strings.Cut(text, "\n")
	return cmd, run
}

// long is a scan of some seconds, in many units.
var long = []string{"mock:degraded", "--requests", "4000000", "--probes", "latency", "--lease-ttl", "2s"}

// A run whose controller is killed is shown as orphaned, and resume ends it as
// if nothing had happened.
func TestRunsResume(t *testing.T) {
	url := startNATS(t)
	helper(t, url)
	whole, err := scanJSON(t, append([]string{"scan"}, long...)...)
	if err != nil {
		t.Fatal(err)
	}
	results, enough := 0, make(chan struct{})
	onResult(t, url, func() {
		if results++; results == 10 {
			close(enough)
		}
	})
	scan, id := startScan(t, url, long...)
	<-enough
	if _, err := runsVerb(t.Context(), url, "resume", "last"); !errors.As(err, new(*lead.Led)) || cli.Code(err) != cli.Unmeasured {
		t.Errorf("resumed a run that is led: %v", err)
	}
	if err := scan.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = scan.Wait()
	if out, err := runsVerb(t.Context(), url, "list"); err != nil || !strings.Contains(out, id+"  orphaned") {
		t.Errorf("%v; list:\n%s", err, out)
	}
	if _, err := runsVerb(t.Context(), url, "report", id); err == nil || !strings.Contains(err.Error(), "has no report: it is running") {
		t.Errorf("report of half a run: %v", err)
	}
	out, err := runsVerb(t.Context(), url, "resume", id[:len(id)-2], "--json")
	if err != nil {
		t.Fatal(err)
	}
	doc := documentOf(t, out)
	if doc.Run.ID != id || doc.Run.Partial || doc.Run.Calls != whole.Run.Calls {
		t.Errorf("run %s, partial %v, %d calls; want %s, whole, %d", doc.Run.ID, doc.Run.Partial, doc.Run.Calls, id, whole.Run.Calls)
	}
	if diff := cmp.Diff(whole.Checks, doc.Checks); diff != "" {
		t.Errorf("checks (-undisturbed +resumed):\n%s", diff)
	}
	if stored, err := runsVerb(t.Context(), url, "report", id, "--format", "json"); err != nil || stored != out {
		t.Errorf("the stored report is another one, %v", err)
	}
	checkShown(t, url, id)
}

func documentOf(t *testing.T, text string) *result.Document {
	t.Helper()
	var doc result.Document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("no document: %v\n%s", err, text)
	}
	return &doc
}

// checkShown looks at the record of a run that two controllers have led.
func checkShown(t *testing.T, url, id string) {
	t.Helper()
	out, err := runsVerb(t.Context(), url, "show", id, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var shown runFile
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	r := shown.Run
	if r.ID != id || r.State != "finished" || r.Generation != 2 || !r.Report || r.TTLS != 2 || len(r.Order) == 0 || r.Controller != "" || r.Verdict == "" {
		t.Errorf("shown %+v", r)
	}
	text, err := runsVerb(t.Context(), url, "show", id)
	if err != nil || !strings.Contains(text, "generation 2") || !strings.Contains(text, "command     ordeal scan mock:degraded --probes latency --requests 4000000") {
		t.Errorf("%v; shown:\n%s", err, text)
	}
}

// Halt reaches the controller, and through it everybody.
func TestRunsHalt(t *testing.T) {
	url := startNATS(t)
	helper(t, url)
	enough := make(chan struct{})
	results := 0
	onResult(t, url, func() {
		if results++; results == 5 {
			close(enough)
		}
	})
	scan, id := startScan(t, url, long...)
	<-enough
	begun := time.Now()
	out, err := runsVerb(t.Context(), url, "halt", "last", "--reason", "too hot")
	if err != nil || !strings.Contains(out, "run "+id+" halted: its controller, ") {
		t.Fatalf("%s, %v", out, err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("halted after %v", took)
	}
	var exit *exec.ExitError
	if err := scan.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.Interrupted {
		t.Errorf("the halted scan: %v, want exit code %d", err, cli.Interrupted)
	}
	stored, err := runsVerb(t.Context(), url, "report", id, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	if doc := documentOf(t, stored); !doc.Run.Partial || !strings.Contains(doc.Run.PartialReason, "too hot") || doc.Run.Calls == 0 {
		t.Errorf("partial %v for %q, %d calls", doc.Run.Partial, doc.Run.PartialReason, doc.Run.Calls)
	}
	for _, verb := range []string{"halt", "resume"} {
		if _, err := runsVerb(t.Context(), url, verb, id); err == nil || !strings.Contains(err.Error(), "see ordeal runs report "+id) {
			t.Errorf("%s of a run that is over: %v", verb, err)
		}
	}
}

// A run that nobody leads is halted all the same, and can still be resumed.
func TestRunsHaltWithoutAController(t *testing.T) {
	url := startNATS(t)
	helper(t, url)
	enough := make(chan struct{})
	results := 0
	onResult(t, url, func() {
		if results++; results == 5 {
			close(enough)
		}
	})
	scan, id := startScan(t, url, long...)
	<-enough
	if err := scan.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = scan.Wait()
	out, err := runsVerb(t.Context(), url, "halt", id)
	if err != nil || !strings.Contains(out, "ordeal runs resume "+id+" goes on with it") {
		t.Fatalf("%s, %v", out, err)
	}
	if out, err := runsVerb(t.Context(), url, "show", id); err != nil || !strings.Contains(out, "stopped") || !strings.Contains(out, "halted: ordered by ") {
		t.Errorf("%v; shown:\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err = runsVerb(ctx, url, "resume", id, "--json")
	if err != nil {
		t.Fatal(err)
	}
	if doc := documentOf(t, out); doc.Run.ID != id || doc.Run.Partial {
		t.Errorf("run %s, partial %v; want the whole of %s", doc.Run.ID, doc.Run.Partial, id)
	}
}

func TestRunsWithoutServers(t *testing.T) {
	t.Setenv("NATS_URL", "")
	if _, err := runsVerb(t.Context(), "", "list"); err == nil || !strings.Contains(err.Error(), "--nats") {
		t.Errorf("err %v", err)
	}
}

// TestRunsStories are told on a server with an agent.
func TestRunsStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/runs",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			url := startNATS(t)
			helper(t, url)
			env.Setenv("NATS_URL", url)
			return nil
		},
	})
}
