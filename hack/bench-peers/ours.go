package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const echoArgs = `{"message":"hello"}`

// ordealPeer reads the document that `ordeal load --json` prints: what its readers
// read, nothing that only we know.
func ordealPeer(bin string) peer {
	return peer{name: "ordeal", opens: true, said: ordealSaid, command: func(j job) command {
		args := []string{bin, "load", address(j), "--tool", "echo", "--tool-args", echoArgs, "--protocol", protocol, "--warmup-time", "0s", "--json"}
		if j.rate > 0 {
			args = append(args, "--rate", strconv.Itoa(j.rate), "--max-in-flight", strconv.Itoa(j.inFlight))
		} else {
			args = append(args, "--concurrency", strconv.Itoa(j.callers))
		}
		if j.calls > 0 {
			args = append(args, "--requests", strconv.Itoa(j.calls))
		} else {
			args = append(args, "--duration", j.length.String())
		}
		return command{args: args}
	}}
}

// address is the target as ordeal and ratemyagent take it: a URL, or a command in
// one string. None of its words holds a space.
func address(j job) string {
	if j.url != "" {
		return j.url
	}
	return strings.Join(j.stdio, " ")
}

func ordealSaid(_ job, out []byte) (said, error) {
	type number struct{ Value *float64 }
	var doc struct {
		Load struct {
			Levels []struct {
				Scheduled, Dropped int64
				Outcomes           map[string]int64
				P50                number `json:"p50_s"`
				P99                number `json:"p99_s"`
				Generator          struct {
					LateP50 *float64 `json:"late_p50_s"`
					LateP99 *float64 `json:"late_p99_s"`
				}
			}
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return said{}, fmt.Errorf("document: %w", err)
	}
	if len(doc.Load.Levels) != 1 {
		return said{}, fmt.Errorf("document: %d levels, want 1", len(doc.Load.Levels))
	}
	l := doc.Load.Levels[0]
	s := said{Dropped: l.Dropped, Scheduled: l.Scheduled, LateP50: l.Generator.LateP50, LateP99: l.Generator.LateP99}
	for outcome, n := range l.Outcomes {
		s.Calls += n
		if outcome != "ok" {
			s.Errors += n
		}
	}
	if l.P50.Value != nil && l.P99.Value != nil {
		s.P50, s.P99 = *l.P50.Value, *l.P99.Value
	}
	return s, nil
}

// sdkPeer is the client of the Go SDK in a loop: sdkclient.
func sdkPeer(t tools) peer {
	return peer{
		name: "sdk", opens: true,
		command: func(j job) command {
			args := []string{t.bin("sdkclient"), "-callers", strconv.Itoa(j.callers), "-for", j.length.String()}
			if j.url != "" {
				return command{args: append(args, "-url", j.url)}
			}
			return command{args: append(args, j.stdio...)}
		},
		said: func(_ job, out []byte) (s said, err error) { return s, lastJSON(out, &s) },
	}
}
