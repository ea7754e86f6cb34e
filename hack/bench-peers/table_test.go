package main

import (
	"strings"
	"testing"
)

// reps are runs of two generators, the second at 10 µs a call: what ours took in each
// repetition, and which of them were loud.
func reps(micros []float64, loud ...bool) []run {
	var runs []run
	for rep, us := range micros {
		ours := run{Experiment: "bare", Peer: "ordeal", Rep: rep, CPUS: us, Said: said{Calls: 1_000_000}}
		ours.Loud = rep < len(loud) && loud[rep]
		runs = append(runs, ours, run{Experiment: "bare", Peer: "wrk", Rep: rep, CPUS: 10, Said: said{Calls: 1_000_000}})
	}
	return runs
}

func TestVerdict(t *testing.T) {
	g := cpu("1", "bare", "wrk", 1.5)
	failed := reps([]float64{12})
	failed[0].Failed = "exit status 1"
	everyTime := g
	everyTime.worst = true
	for _, tc := range []struct {
		name string
		g    goal
		runs []run
		want string
		met  bool
	}{
		{"MedianBelow", g, reps([]float64{12, 13, 40}), "pass", true},
		{"MedianAbove", g, reps([]float64{12, 16, 16}), "MISS", false},
		{"LoudLeftOut", g, reps([]float64{12, 13, 14, 90, 90}, false, false, false, true, true), "pass", true},
		{"TooFewQuiet", g, reps([]float64{12, 13, 90, 90, 90}, false, false, true, true, true), "MISS", false},
		{"WorstCounts", everyTime, reps([]float64{12, 12, 16}), "MISS", false},
		{"OursFailed", g, failed, "NOT MEASURED: bare/ordeal: exit status 1", false},
		{"PeerAbsent", g, reps([]float64{12})[:1], "not installed: bare/wrk", true},
		{"NothingRan", g, nil, "NOT MEASURED: ", false},
		{"NoBound", cpu("1", "bare", "wrk", none), reps([]float64{90}), "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, met := tc.g.verdict(tc.g.gather(tc.runs))
			if got != tc.want || met != tc.met {
				t.Errorf("got %q, %v; want %q, %v", got, met, tc.want, tc.met)
			}
		})
	}
}

func TestBestOfThoseThatRan(t *testing.T) {
	speedOf := func(peer string, calls int64) run {
		return run{Experiment: "bare", Peer: peer, Steady: steady{Calls: calls, S: 1}}
	}
	runs := []run{speedOf("ordeal", 50), speedOf("hey", 20), speedOf("fortio", 40), speedOf("vegeta", 90)}
	runs[3].Failed = "exit status 1"
	got := throughputGoals()[0].gather(runs)
	if len(got.values) != 1 || got.values[0] != 1.25 {
		t.Errorf("got %+v, want 1.25", got)
	}
}

func TestPrintGoalsFailsOnAMiss(t *testing.T) {
	goals := []goal{cpu("1", "bare", "wrk", 1.5)}
	var out strings.Builder
	if printGoals(&out, goals, reps([]float64{16})) {
		t.Error("a missed goal: got true, want false")
	}
	if want := "1.60 x - 1.60 x  1 of 1  MISS"; !strings.Contains(out.String(), want) {
		t.Errorf("table: got %q, want %q in it", out.String(), want)
	}
}
