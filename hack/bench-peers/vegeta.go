package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// vegetaTargets are so many calls that no two in flight have one id. It decodes them
// before it begins, so not more than needed.
func vegetaTargets(j job) *bytes.Buffer {
	head := map[string][]string{}
	for name, value := range headers(j.session) {
		head[name] = []string{value}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range 2000 {
		body := fmt.Sprintf(call, strconv.Itoa(100_000_000+i))
		enc.Encode(map[string]any{"method": "POST", "url": j.url, "header": head, "body": []byte(body)}) // to memory
	}
	return &b
}

// vegetaPeer leaves out of its figures what `vegeta report` uses, 5 µs a call.
func vegetaPeer(t tools) peer {
	bin := t.bin("vegeta")
	results := func(j job) string { return filepath.Join(j.dir, "vegeta.bin") }
	return peer{
		name: "vegeta",
		command: func(j job) command {
			args := []string{bin, "attack", "-format=json", "-duration=" + j.length.String(), "-output=" + results(j)}
			if j.rate > 0 {
				args = append(args, fmt.Sprintf("-rate=%d/s", j.rate))
			} else {
				args = append(args, "-rate=0", fmt.Sprintf("-workers=%d", j.callers), fmt.Sprintf("-max-workers=%d", j.callers))
			}
			return command{args: args, stdin: vegetaTargets(j)}
		},
		said: func(j job, _ []byte) (said, error) {
			out, err := exec.Command(bin, "report", "-type=json", results(j)).Output()
			if err != nil {
				return said{}, fmt.Errorf("vegeta report: %w", err)
			}
			var r struct {
				Requests  int64
				Success   float64
				Latencies struct {
					P50 float64 `json:"50th"` // ns
					P99 float64 `json:"99th"`
				}
			}
			if err := json.Unmarshal(out, &r); err != nil {
				return said{}, err
			}
			bad := r.Requests - int64(r.Success*float64(r.Requests)+0.5)
			return said{Calls: r.Requests, Errors: bad, P50: r.Latencies.P50 / 1e9, P99: r.Latencies.P99 / 1e9}, nil
		},
	}
}
