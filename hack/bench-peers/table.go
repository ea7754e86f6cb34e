package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// outcome is what the repetitions came to for one goal.
type outcome struct {
	values  []float64 // one per repetition that had all its runs, or one per quiet one
	quiet   int
	missing string // why there is nothing, or not enough
}

// quietEnough is how many quiet repetitions do without the loud ones.
const quietEnough = 3

// gather takes each repetition's value. Loud ones count only where too few are quiet.
func (g goal) gather(runs []run) outcome {
	var out outcome
	var quiet []float64
	for rep := 0; ; rep++ {
		of, seen := g.pick(runs, rep)
		if !seen {
			break
		}
		if why := whyNot(of, g.some); why != "" {
			out.missing = why
			continue
		}
		v := g.value(of)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out.missing = "no number in the result"
			continue
		}
		out.values = append(out.values, v)
		if !slices.ContainsFunc(of, func(r run) bool { return r.Loud }) {
			quiet = append(quiet, v)
		}
	}
	out.quiet = len(quiet)
	if len(quiet) >= quietEnough {
		out.values = quiet
	}
	return out
}

// pick returns the goal's runs of a repetition, those that some could do without only
// where they are good, and whether that repetition had any.
func (g goal) pick(runs []run, rep int) (picked []run, seen bool) {
	for i, key := range g.runs {
		at := slices.IndexFunc(runs, func(r run) bool { return r.Rep == rep && r.key() == key })
		if at < 0 {
			if !g.some || i == 0 {
				picked = append(picked, run{Peer: key, Failed: absent})
			}
			continue
		}
		seen = true
		if r := runs[at]; !g.some || i == 0 || r.Failed == "" {
			picked = append(picked, r)
		}
	}
	return picked, seen
}

const absent = "not installed"

func whyNot(runs []run, some bool) string {
	for _, r := range runs {
		if r.Failed == absent {
			return absent + ": " + r.Peer
		}
		if r.Failed != "" {
			return r.key() + ": " + r.Failed
		}
	}
	if some && len(runs) < 2 {
		return "nothing to compare with"
	}
	return ""
}

// verdict of a goal, and whether it lets the whole pass.
func (g goal) verdict(o outcome) (string, bool) {
	switch {
	case strings.HasPrefix(o.missing, absent):
		return o.missing, true
	case len(o.values) == 0 || o.missing != "" && g.bounded():
		return fmt.Sprintf("NOT MEASURED: %.90s", o.missing), !g.bounded()
	case !g.bounded():
		return "", true
	}
	v := median(o.values)
	if g.worst {
		v = slices.MaxFunc(o.values, func(a, b float64) int { return int(one(g.meets(b)) - one(g.meets(a))) })
	}
	if g.meets(v) {
		return "pass", true
	}
	return "MISS", false
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// printGoals prints the table. It holds when nothing was missed.
func printGoals(w io.Writer, goals []goal, runs []run) bool {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\tgoal\twanted\tmedian\tmin - max\tquiet\t")
	all := true
	for _, g := range goals {
		o := g.gather(runs)
		verdict, met := g.verdict(o)
		all = all && met
		middle, extent := "-", "-"
		if len(o.values) > 0 {
			middle = g.show(median(o.values))
			extent = g.show(slices.Min(o.values)) + " - " + g.show(slices.Max(o.values))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", g.row, g.what, g.wanted(), middle, extent, o.quiet, max(o.quiet, len(o.values)), verdict)
	}
	t.Flush()
	return all
}

func (g goal) wanted() string {
	switch {
	case !g.bounded():
		return ""
	case g.least:
		return ">= " + g.show(g.limit)
	}
	return "<= " + g.show(g.limit)
}

// printDetail prints each generator's medians, to know the size of what was divided.
func printDetail(w io.Writer, runs []run) {
	var keys []string
	by := map[string][]run{}
	for _, r := range runs {
		if r.Failed != "" {
			continue
		}
		if by[r.key()] == nil {
			keys = append(keys, r.key())
		}
		by[r.key()] = append(by[r.key()], r)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "medians\truns\tcalls/s\tp50 ms\tp99 ms\tCPU µs/call\tsteady\tserver µs/call\tpeak MB\twall s\t")
	for _, key := range keys {
		rs := by[key]
		m := func(f func(run) float64) float64 {
			var values []float64
			for _, r := range rs {
				values = append(values, f(r))
			}
			return median(values)
		}
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.3f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t\n", key, len(rs),
			m(func(r run) float64 { return r.Steady.rate() }), 1e3*m(func(r run) float64 { return r.Said.P50 }), 1e3*m(func(r run) float64 { return r.Said.P99 }),
			1e6*m(func(r run) float64 { return r.CPUS / float64(max(1, r.Arrived)) }), 1e6*m(func(r run) float64 { return r.Steady.CPUS / float64(max(1, r.Steady.Calls)) }),
			1e6*m(func(r run) float64 { return r.ServerCPUS / float64(max(1, r.Arrived)) }), m(func(r run) float64 { return float64(r.PeakBytes) })/1e6, m(func(r run) float64 { return r.WallS }))
	}
	t.Flush()
}
