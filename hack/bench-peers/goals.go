package main

import (
	"fmt"
	"math"
)

// goal is a number that the runs of one repetition give, and the bound it is held to.
// A goal without a bound is there to be read: what another generator does.
type goal struct {
	row, what string
	runs      []string // experiment/generator, as value takes them
	value     func([]run) float64
	limit     float64 // NaN: no bound
	least     bool    // the bound is a lower one
	worst     bool    // every repetition is held to it, not the median
	some      bool    // the first run and any other will do
	show      func(float64) string
}

func (g goal) meets(v float64) bool {
	if g.least {
		return v >= g.limit
	}
	return v <= g.limit
}

func (g goal) bounded() bool { return !math.IsNaN(g.limit) }

// none is the limit of a goal without one.
var none = math.NaN()

func times(v float64) string   { return fmt.Sprintf("%.2f x", v) }
func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
func millis(v float64) string  { return fmt.Sprintf("%.2f ms", 1e3*v) }
func micros(v float64) string  { return fmt.Sprintf("%.0f µs", 1e6*v) }
func mega(v float64) string    { return fmt.Sprintf("%.1f MB", v/1e6) }
func whole(v float64) string   { return fmt.Sprintf("%.0f", v) }

// cpu is our CPU time per call over another's.
func cpu(row, experiment, other string, limit float64) goal {
	return goal{row: row, what: experiment + ": CPU per call, ordeal / " + other, limit: limit, show: times,
		runs:  []string{experiment + "/ordeal", experiment + "/" + other},
		value: func(r []run) float64 { return r[0].perCall() / r[1].perCall() }}
}

// steadyCPU is the same of the middle of the runs, to read beside it.
func steadyCPU(row, experiment, other string) goal {
	g := cpu(row, experiment, other, none)
	g.what += ", start and end left out"
	g.value = func(r []run) float64 {
		return r[0].Steady.CPUS / float64(r[0].Steady.Calls) / (r[1].Steady.CPUS / float64(r[1].Steady.Calls))
	}
	return g
}

// speed is our calls/s over another's, in the middle of the runs.
func speed(row, experiment, other string, limit float64) goal {
	return goal{row: row, what: experiment + ": calls/s, ordeal / " + other, limit: limit, least: true, show: times,
		runs:  []string{experiment + "/ordeal", experiment + "/" + other},
		value: func(r []run) float64 { return r[0].Steady.rate() / r[1].Steady.rate() }}
}

// of is a number of one generator's run.
func of(row, experiment, name, what string, limit float64, show func(float64) string, value func(run) float64) goal {
	return goal{row: row, what: experiment + ": " + what + ", " + name, limit: limit, show: show, runs: []string{experiment + "/" + name},
		value: func(r []run) float64 { return value(r[0]) }}
}

// goalsOf are the rows, in order.
func goalsOf(o options) []goal {
	var all []goal
	for _, goals := range [][]goal{closedGoals(), stdioGoals(), stallGoals(stallOf(o).Seconds()), rateGoals(), lateGoals(), memoryGoals(), throughputGoals(), scanGoals()} {
		all = append(all, goals...)
	}
	return all
}

func closedGoals() []goal {
	return []goal{
		cpu("1", "bare", "wrk", 1.5), cpu("1", "bare", "vegeta", 0.5), cpu("1", "bare", "k6", 0.17), cpu("1", "bare", "fortio", 1.0),
		steadyCPU("1", "bare", "wrk"),
		cpu("2", "json", "wrk", 1.7), cpu("2", "json", "vegeta", 0.4), cpu("2", "json", "sdk", 0.15),
		steadyCPU("2", "json", "wrk"),
		cpu("2", "sse", "wrk", 1.6), cpu("2", "sse", "vegeta", 0.5), cpu("2", "sse", "sdk", 0.3),
		steadyCPU("2", "sse", "wrk"),
	}
}

func stdioGoals() []goal {
	var all []goal
	for _, e := range []string{"stdio-1", "stdio-8", "stdio-64"} {
		all = append(all, speed("3", e, "sdk", 1.3), cpu("3", e, "sdk", 0.25))
	}
	bare := of("3", "stdio-bare", "ordeal", "calls/s", 100_000, whole, func(r run) float64 { return r.Steady.rate() })
	bare.least = true
	return append(all, bare)
}

// stallGoals hold p99 to what arithmetic says: a tenth of the arrivals wait from the
// whole stall down to nothing, so the slowest hundredth waits nine tenths of it.
func stallGoals(stall float64) []goal {
	p99 := func(r run) float64 { return math.Abs(r.Said.P99/(0.9*stall) - 1) }
	p50 := func(r run) float64 { return math.Abs(r.Said.P50 - 0.0005) }
	lost := func(r run) float64 {
		planned := math.Round(1000 * 10 * stall)
		return math.Abs(planned-float64(r.Said.Calls+r.Said.Dropped)) + math.Abs(float64(r.Said.Scheduled-r.Said.Calls-r.Said.Dropped))
	}
	memory := goal{row: "4", what: "stall: peak memory, over that of the calm run, ordeal", runs: []string{"stall/ordeal", "rate-1000/ordeal"},
		limit: 2, show: times, value: func(r []run) float64 { return float64(r[0].PeakBytes) / float64(r[1].PeakBytes) }}
	return []goal{
		of("4", "stall", "ordeal", "error of p99", 0.02, percent, p99), of("4", "stall", "ordeal", "error of p50", 0.001, millis, p50),
		of("4", "stall", "ordeal", "arrivals unaccounted for", 0, whole, lost), memory,
		of("4", "stall", "vegeta", "error of p99", none, percent, p99), of("4", "stall", "k6", "error of p99", none, percent, p99),
	}
}

func rateGoals() []goal {
	total := func(r run) float64 { return math.Abs(r.Arrivals.Total) }
	cv := func(r run) float64 { return r.Arrivals.CV }
	lag := func(r run) float64 { return r.Arrivals.Lag }
	herds := func(name string, limit float64) goal {
		return goal{row: "5", what: "rate-5000: herds in two starts, " + name, runs: []string{"rate-5000/" + name, "start-5000/" + name},
			limit: limit, worst: true, show: whole, value: func(r []run) float64 { return one(r[0].Arrivals.Herd) + one(r[1].Arrivals.Herd) }}
	}
	return []goal{
		of("5", "rate-1000", "ordeal", "error of the total", 0.0005, percent, total),
		of("5", "rate-1000", "ordeal", "CV of 100 ms buckets", 0.01, percent, cv),
		of("5", "rate-1000", "ordeal", "lag of arrivals, p99", 0.002, millis, lag),
		of("5", "rate-1000", "vegeta", "CV of 100 ms buckets", none, percent, cv),
		of("5", "rate-1000", "vegeta", "lag of arrivals, p99", none, millis, lag),
		of("5", "rate-5000", "ordeal", "error of the total", 0.0005, percent, total),
		herds("ordeal", 0), herds("vegeta", none),
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func lateGoals() []goal {
	late := func(v *float64) float64 {
		if v == nil {
			return none
		}
		return *v
	}
	return []goal{
		of("6", "rate-1000", "ordeal", "lateness, p50", 50e-6, micros, func(r run) float64 { return late(r.Said.LateP50) }),
		of("6", "rate-1000", "ordeal", "lateness, p99", 600e-6, micros, func(r run) float64 { return late(r.Said.LateP99) }),
		cpu("6", "rate-1000", "vegeta", none),
	}
}

func memoryGoals() []goal {
	return []goal{
		of("17", "few", "ordeal", "peak memory after 100,000 calls", 32e6, mega, func(r run) float64 { return float64(r.PeakBytes) }),
		{row: "17", what: "many: peak memory, over that of 100,000 calls", runs: []string{"many/ordeal", "few/ordeal"}, limit: 1.05, show: times,
			value: func(r []run) float64 { return float64(r[0].PeakBytes) / float64(r[1].PeakBytes) }},
	}
}

// throughputGoals hold us to the best of those that do as we do; wrk parses nothing.
func throughputGoals() []goal {
	best := goal{row: "throughput", what: "bare: calls/s, ordeal / best of the others", limit: 1, least: true, some: true, show: times,
		runs: []string{"bare/ordeal", "bare/vegeta", "bare/fortio", "bare/hey", "bare/autocannon", "bare/k6"},
		value: func(r []run) float64 {
			var most float64
			for _, other := range r[1:] {
				most = max(most, other.Steady.rate())
			}
			return r[0].Steady.rate() / most
		}}
	return []goal{best, speed("throughput", "bare", "wrk", none), speed("throughput", "json", "vegeta", none), speed("throughput", "sse", "vegeta", none)}
}

func scanGoals() []goal {
	wall := func(experiment string, limit float64) goal {
		return goal{row: "scan", what: experiment + ": wall time, ordeal scan / ratemyagent", limit: limit, show: times,
			runs:  []string{experiment + "/ordeal-scan", experiment + "/ratemyagent"},
			value: func(r []run) float64 { return r[0].WallS / r[1].WallS }}
	}
	calls := goal{row: "scan", what: "scan-http: calls, ordeal scan / ratemyagent", limit: 0.99, least: true, show: times,
		runs:  []string{"scan-http/ordeal-scan", "scan-http/ratemyagent"},
		value: func(r []run) float64 { return float64(r[0].Arrived) / float64(r[1].Arrived) }}
	return []goal{wall("scan-stdio", 0.2), wall("scan-http", 0.2), calls, wall("scan-sdk-stdio", none), wall("scan-sdk-http", none)}
}
