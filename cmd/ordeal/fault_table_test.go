package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/controller/result"
)

// The fault tests break a fleet of real processes while it scans, and hold the
// final report against that of a run that nobody disturbed. Moments are drawn
// from the name of the scenario and their number.
//
//	ORDEAL_FAULTS=full        50 kills where 3 are the default, cuts of 30 s, and so on: some 20 minutes
//	ORDEAL_FAULTS_TABLE=path  append each run to this file, as a row of a Markdown table
var (
	faultsFull  = os.Getenv("ORDEAL_FAULTS") == "full"
	faultsTable = os.Getenv("ORDEAL_FAULTS_TABLE")
)

// ofFaults is few by default, and all of them when the full table is wanted.
func ofFaults[T any](few, all T) T {
	if faultsFull {
		return all
	}
	return few
}

// draw is the randomness of one moment of a scenario.
func draw(scenario string, moment int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(scenario)) // never fails
	return rand.New(rand.NewPCG(h.Sum64(), uint64(moment)))
}

// upTo is a random duration below d.
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// row is one run of the table.
type row struct {
	scenario string
	moment   string
	happened string
	equal    string // yes, no, or what else was compared
}

var tableFile sync.Mutex

// note shows a run in the log, and in the file that was asked for.
func (r row) note(t *testing.T) {
	t.Helper()
	if t.Failed() {
		r.equal += "; FAILED, see the log"
	}
	t.Logf("%-30s | %-28s | %-70s | %s", r.scenario, r.moment, r.happened, r.equal)
	if faultsTable == "" {
		return
	}
	tableFile.Lock()
	defer tableFile.Unlock()
	f, err := os.OpenFile(faultsTable, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "| %s | %s | %s | %s |\n", r.scenario, r.moment, r.happened, r.equal)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
}

// mockScanArgs is the deterministic scan that is disturbed: every probe, some 120
// units, a few seconds on two agents.
var mockScanArgs = []string{"mock:degraded", "--requests", "1500000"}

// undisturbed are the reports of embedded scans, by their arguments.
var undisturbed = struct {
	sync.Mutex
	reports map[string][]string
}{reports: map[string][]string{}}

// whole is the report of a scan that nobody disturbed.
func whole(t *testing.T, args []string) []string {
	t.Helper()
	undisturbed.Lock()
	defer undisturbed.Unlock()
	key := strings.Join(args, " ")
	if undisturbed.reports[key] == nil {
		doc, err := scanJSON(t, append([]string{"scan"}, args...)...)
		if err != nil {
			t.Fatalf("undisturbed scan: %v", err)
		}
		undisturbed.reports[key] = measured(t, doc)
	}
	return undisturbed.reports[key]
}

// measured is a report without what says when, where, by whom and how often it
// had to be tried.
func measured(t *testing.T, doc *result.Document) []string {
	t.Helper()
	d := *doc
	d.Fleet, d.Run.Reissued, d.Run.Invocation = nil, 0, nil
	return strings.Split(timeless(t, &d), "\n")
}

// sameAsWhole compares the report of a disturbed scan and says yes or no.
func sameAsWhole(t *testing.T, args []string, doc *result.Document) string {
	t.Helper()
	if diff := cmp.Diff(whole(t, args), measured(t, doc)); diff != "" {
		t.Errorf("the report differs (-undisturbed +disturbed):\n%s", diff)
		return "no"
	}
	return "yes"
}

// parse reads the document that a command printed.
func parse(t *testing.T, stdout string) *result.Document {
	t.Helper()
	var doc result.Document
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("no document on stdout: %v", err)
	}
	return &doc
}

// within bounds a step of a test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// scenario is a part of the table that mostly waits.
type scenario struct {
	name string
	run  func(*testing.T)
}

// together is how many scenarios run at once: they wait for leases and cables,
// but each scans for some seconds too.
const together = 6

// TestFaultsTogether runs the scenarios in which no time below a second is
// measured; the others have tests of their own, and the machine for themselves.
// Those that wait for a minute begin first. The rate of a load is measured while
// only they run.
func TestFaultsTogether(t *testing.T) {
	whole(t, mockScanArgs)
	whole(t, slowScanArgs)
	room := make(chan struct{}, together)
	var running sync.WaitGroup
	defer running.Wait()
	begin := func(scenarios ...scenario) {
		for _, s := range scenarios {
			room <- struct{}{}
			running.Go(func() {
				t.Run(s.name, s.run)
				<-room
			})
		}
	}
	begin(scenario{"DiskFull", diskFull}, scenario{"ResultStreamFull", resultStreamFull})
	t.Run("ControllerPaused", controllerPaused)
	begin([]scenario{
		{"Cluster", clusterLosesNode}, {"Cuts", cutOffs}, {"ServerRestarted", serverRestarted}, {"SlowConsumer", slowConsumer},
		{"AgentPausedInPoolUnit", agentPaused}, {"AgentKilledIdle", agentKilledIdle},
		{"AgentKilledInGang", agentKilledInGang}, {"AgentPausedInGang", agentPausedInGang}, {"AgentCutOffInGang", agentCutOffInGang},
		{"ServerRestartedInGang", serverRestartedInGang},
		{"ControllerKilled", controllerKilled}, {"ControllerKilledInGang", controllerKilledInGang}, {"ControllerCutOffInGang", controllerCutOffInGang},
		{"SecondController", secondControllerRefused}, {"ControllerReplaced", controllerReplaced},
	}...)
}

// times runs the moments of a scenario one after the other.
func times(t *testing.T, n int, run func(t *testing.T, moment int)) {
	t.Helper()
	for moment := range n {
		t.Run(fmt.Sprint(moment), func(t *testing.T) { run(t, moment) })
	}
}
