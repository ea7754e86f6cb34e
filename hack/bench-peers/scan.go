package main

import (
	"path/filepath"
	"strconv"
)

// The two scans do the same work: latency, a ramp of callers to 8, malformed calls.
// Injected faults are left out, since ordeal waits for a timeout to pass and
// ratemyagent says that it did. What is compared is the wall time of the process.

func ordealScan(bin string) peer {
	return peer{name: "ordeal-scan", opens: true, command: func(j job) command {
		return command{args: []string{bin, "scan", address(j), "--tool", "echo", "--tool-args", echoArgs, "--requests", strconv.Itoa(j.calls),
			"--concurrency", "8", "--warmup", "1", "--phases", "baseline", "--probes", "latency,concurrency,contract", "--json"}}
	}}
}

func rateMyAgent(t tools) peer {
	return peer{name: "ratemyagent", opens: true, command: func(j job) command {
		uri := address(j)
		if j.url == "" {
			uri = "stdio://" + uri
		}
		return command{args: []string{t.venv("ratemyagent"), "scan", "--target", "mcp", "--uri", uri, "--tool", "echo", "--tool-args", echoArgs, "--requests", strconv.Itoa(j.calls),
			"--concurrency", "8", "--warmup", "1", "--phases", "baseline", "--probes", "latency,concurrency,contract", "--json-out", filepath.Join(j.dir, "scan.json")}}
	}}
}
