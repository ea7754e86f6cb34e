package main

import (
	"slices"
	"strings"
	"time"
)

// experiment is one server and one thing to do with it; each generator does it
// against a server of its own.
type experiment struct {
	name   string
	server string   // mode
	flags  []string // more of its flags
	job    job
}

func (e experiment) stdio() bool   { return strings.HasPrefix(e.server, "stdio") }
func (e experiment) session() bool { return e.server == "sse" }

// wanted are the generators whose run of this experiment some goal reads.
func (e experiment) wanted(needed map[string]bool) []string {
	var names []string
	for key := range needed {
		if experiment, name, _ := strings.Cut(key, "/"); experiment == e.name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// stallOf is how long the server holds its calls: a tenth of the stall run.
func stallOf(o options) time.Duration { return (o.length / 3).Truncate(10 * time.Millisecond) }

// most is the cap on calls in flight in an open loop: above what a stall of a second
// holds back.
const most = 1500

func experimentsOf(o options) []experiment {
	closed := func(callers int) job { return job{callers: callers, length: o.length} }
	open := func(rate int, length time.Duration) job {
		return job{callers: 32, rate: rate, inFlight: most, length: length}
	}
	stall := stallOf(o)
	many := 1_000_000
	if o.full {
		many = 10_000_000
	}
	return []experiment{
		{name: "bare", server: "bare", job: closed(32)},
		{name: "json", server: "json", job: closed(32)},
		{name: "sse", server: "sse", job: closed(32)},
		{name: "stdio-1", server: "stdio", job: closed(1)},
		{name: "stdio-8", server: "stdio", job: closed(8)},
		{name: "stdio-64", server: "stdio", job: closed(64)},
		{name: "stdio-bare", server: "stdio-bare", job: closed(8)},
		{name: "stall", server: "bare", job: open(1000, 10*stall),
			flags: []string{"-stall-at", (4 * stall).String(), "-stall-for", stall.String()}},
		{name: "rate-1000", server: "bare", job: open(1000, 2*o.length)},
		{name: "rate-5000", server: "bare", job: open(5000, 2*o.length)},
		{name: "start-5000", server: "bare", job: open(5000, time.Second)},
		{name: "few", server: "bare", job: job{callers: 32, calls: 100_000}},
		{name: "many", server: "bare", job: job{callers: 32, calls: many}},
		{name: "scan-http", server: "bare", job: job{calls: 500}},
		{name: "scan-stdio", server: "stdio-bare", job: job{calls: 500}},
		{name: "scan-sdk-http", server: "json", job: job{calls: 500}},
		{name: "scan-sdk-stdio", server: "stdio", job: job{calls: 500}},
	}
}
