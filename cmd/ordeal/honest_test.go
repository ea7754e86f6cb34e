package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordeal/cmd/internal/cli"
	"ordeal/cmd/internal/fleet"
	"ordeal/controller"
	"ordeal/controller/policy"
	"ordeal/controller/result"
	"ordeal/controller/spec"
	"ordeal/metrics/price"
)

// mockScan runs one scan of a mock on a fleet that is already there.
func mockScan(t *testing.T, e *fleet.Embedded, set func(*spec.Spec)) *result.Document {
	t.Helper()
	s := spec.Default()
	set(&s)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	doc, err := controller.Run(t.Context(), controller.Options{Spec: s, Policy: policy.Default(), Prices: []*price.Table{price.Builtin()}, Bus: e.Bus,
		Command: "scan", Version: cli.Version})
	if err != nil {
		t.Fatalf("scan of %s with seed %s: %v", s.TargetText, s.Seed, err)
	}
	return doc
}

func startFleet(t *testing.T, agents int) *fleet.Embedded {
	t.Helper()
	e, err := fleet.Start(t.Context(), agents, 0, cli.Version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestFlawlessTargetIsNotFailedByTheSeed: over 400 seeds of a perfect target
// the share of failed verdicts stays below 1 %, and so does the share of any
// failed check.
func TestFlawlessTargetIsNotFailedByTheSeed(t *testing.T) {
	e := startFleet(t, 1)
	const seeds = 400
	failed, unsettled, checks := 0, 0, map[string]int{}
	for seed := range seeds {
		doc := mockScan(t, e, func(s *spec.Spec) { s.TargetText, s.Seed = "mock:healthy", fmt.Sprint(seed) })
		switch passed := doc.Verdict.Passed; {
		case passed == nil:
			unsettled++
		case !*passed:
			failed++
		}
		for _, c := range doc.Checks {
			if c.Status == result.Fail {
				checks[c.Key]++
			}
		}
	}
	t.Logf("%d seeds: %d failed verdicts, %d without a verdict, failed checks %v", seeds, failed, unsettled, checks)
	if failed*100 >= seeds {
		t.Errorf("%d of %d seeds failed a flawless target, want under 1 %%", failed, seeds)
	}
	if len(checks) > 0 {
		t.Errorf("failed checks of a flawless target: %v", checks)
	}
}

// TestAgentsDoNotChangeTheAnswer: the same scan on 1, 2, 4 and 16 agents is the
// same document, histograms included, but for who did the work and when.
func TestAgentsDoNotChangeTheAnswer(t *testing.T) {
	for _, profile := range spec.MockProfiles {
		t.Run(profile, func(t *testing.T) {
			var want string
			for _, agents := range []int{1, 2, 4, 16} {
				e := startFleet(t, agents)
				doc := mockScan(t, e, func(s *spec.Spec) {
					s.TargetText, s.Requests, s.Concurrency = "mock:"+profile, 120_000, 16
					s.Agents = 1 // the spec is part of the document; the fleet has the agents
				})
				if got := len(doc.Run.Fleet); agents > 1 && got < 2 {
					t.Errorf("%d of %d agents worked: the comparison proves nothing", got, agents)
				}
				got := timeless(t, doc)
				if want == "" {
					want = got
				}
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Fatalf("%d agents differ from one (-one +%d):\n%s", agents, agents, diff)
				}
			}
		})
	}
}

// timeless is the document without what says when, where and by whom.
func timeless(t *testing.T, doc *result.Document) string {
	t.Helper()
	d := *doc
	d.Run.ID, d.Run.StartedAt, d.Run.DurationS, d.Run.Fleet = "", time.Time{}, 0, nil
	d.Run.Time, d.Fleet = result.Time{}, nil
	d.Probes = append([]result.Probe{}, doc.Probes...)
	for i := range d.Probes {
		d.Probes[i].DurationS = 0
	}
	raw, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
